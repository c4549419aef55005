"""One run of a workload: what its operations share.

Next: `runner`, which goes through the operations; `steps`, which carries them out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.core import Namespace, Pod
from kubesched.k8s.model.meta import KubeObject, ObjectMeta, PodKey
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import ConfigError, default, load
from kubesched.scheduler.config.defaults import with_gates
from kubesched.scheduler.engine.score import Seeded
from kubesched.scheduler.plugin_loading import Assembly, assemble
from kubesched.simulator.bench.driver import Driver, Measurement, Progress
from kubesched.simulator.bench.object_factory import ObjectFactory
from kubesched.simulator.bench.operations import Operation, WorkloadError
from kubesched.simulator.bench.templates import Template, load_template
from kubesched.simulator.bench.workload_file import BenchWorkload
from kubesched.simulator.bench.world import BenchWorld

PATIENCE_S = 600.0
"""So long, in virtual time, pods are waited for when none gets a node."""


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How workloads are run."""

    seed: int = 0
    keeps_classes: bool = True
    plugin_files: tuple[str, ...] = ()
    """Python files with plugins to run beside the others."""


class NotPlacedError(KubeschedError):
    """Pods that should have been placed were not."""


class BenchRun:
    def __init__(self, workload: BenchWorkload, settings: BenchSettings, progress: Progress | None = None) -> None:
        self.workload = workload
        self.factory = ObjectFactory()
        self.measurement = Measurement()
        assembled = _assembled(workload, settings.plugin_files)
        loop = build_loop(
            assembled.config,
            Seeded(settings.seed),
            registry=assembled.registry,
            keeps_classes=settings.keeps_classes,
            source=workload.scheduler_config_path,
        )
        self.world = BenchWorld(loop, self.factory, eviction_delay_s=workload.eviction_delay_s)
        self.world.bound = self.measurement.pod_bound
        self.driver = Driver(self.world, self.measurement, progress)
        self.n_nodes = 0
        self.not_awaited: set[PodKey] = set()
        """Pods that no operation has waited for yet."""
        self._templates: dict[str, Template] = {}
        self._namespaces: set[str] = set()

    def where(self, number: int, operation: Operation) -> str:
        return f"operation {number} ({operation.opcode})"

    def template(self, path: str) -> Template:
        found = self._templates.get(path)
        if found is None:
            found = self._templates[path] = load_template(self.workload.path(path))
        return found

    # -- objects -------------------------------------------------------------------------------------------------------

    def add(self, items: Iterable[KubeObject]) -> list[PodKey]:
        """Shows objects to the loop, which are made before the time is taken; the keys of the pods among them."""
        with self.measurement.paused():
            made = list(items)
        keys = []
        for item in made:
            self.world.put(item)
            if isinstance(item, Pod):
                keys.append(item.pod_key)
                self.measurement.pod_created(item)
        return keys

    def ensure_namespace(self, name: str) -> None:
        if name and name not in self._namespaces:
            uid, version = self.factory.next_uid(), self.factory.next_version()
            self.add_namespace(Namespace(ObjectMeta(name=name, uid=uid, resource_version=version)))

    def add_namespace(self, namespace: KubeObject) -> None:
        self._namespaces.add(namespace.name)
        self.world.put(namespace)

    # -- waiting -------------------------------------------------------------------------------------------------------

    def wait_until_bound(self, keys: Iterable[PodKey], where: str) -> None:
        world = self.world
        world.unbound = {key for key in keys if not self._is_bound_or_gone(key)}
        n_awaited = len(world.unbound)
        if not self.driver.run_until(lambda: not world.unbound, PATIENCE_S):
            raise NotPlacedError(f"{where}: {self._missing(world.unbound, n_awaited)}")

    def wait_until_attempted(self, keys: Iterable[PodKey], where: str) -> None:
        world = self.world
        world.unattempted = {key for key in keys if not self._is_attempted(key)}
        n_awaited = len(world.unattempted)
        if not self.driver.run_until(lambda: not world.unattempted, PATIENCE_S):
            raise NotPlacedError(f"{where}: {len(world.unattempted)} of {n_awaited} pods were not even tried")

    def _is_bound_or_gone(self, key: PodKey) -> bool:
        pod = self.world.pods.get(key)
        return pod is None or bool(pod.spec.node_name)

    def _is_attempted(self, key: PodKey) -> bool:
        """A pod behind a gate is not tried, and says so from the beginning."""
        pod = self.world.pods.get(key)
        if pod is None or pod.spec.node_name or pod.spec.scheduling_gates or pod.is_terminating:
            return True
        return any(condition.type == "PodScheduled" for condition in pod.status.conditions or ())

    def _missing(self, keys: set[PodKey], n_awaited: int) -> str:
        first = min(keys)
        conditions = self.world.pods[first].status.conditions or ()
        reason = next((c.message for c in conditions if c.type == "PodScheduled"), "never tried")
        return f"{len(keys)} of {n_awaited} pods were not placed; {first}: {reason}"


def _assembled(workload: BenchWorkload, plugin_files: tuple[str, ...]) -> Assembly:
    path = workload.path(workload.scheduler_config_path) if workload.scheduler_config_path else None
    try:
        config = default() if path is None else load(path.read_bytes(), str(path))
        return assemble(with_gates(config, workload.gates), "" if path is None else str(path), files=plugin_files)
    except OSError as problem:
        raise WorkloadError(str(path), "", problem.strerror or str(problem)) from None
    except ConfigError as problem:
        raise WorkloadError("", "", str(problem)) from None
