"""Reads workload files, test cases, each with operations and with workloads, and says which of them are run.

Workloads are sets of parameters for the operations of their test case. A file is checked when it is read: operations
and fields that are not known are refused by name. What a workload says about thresholds, metrics to collect, and
feature gates that switch nothing here is read and left aside.

Workloads are selected by name, by label, and at other sizes than their files say. `affinity` is a test case,
`affinity/small` one of its workloads. A test case stands for its workload `default`, or if it has none, for all its
workloads.

Next: `operations` for what can stand in a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from kubesched.k8s.model.kubernetes_yaml import load_document, yaml_problem
from kubesched.k8s.model.spelling import did_you_mean
from kubesched.k8s.model.times import Duration, DurationError
from kubesched.scheduler.config.feature_gates import SWITCHES
from kubesched.simulator.bench.operations import (
    OPERATIONS,
    CreateNodesOp,
    CreatePodSetsOp,
    CreatePodsOp,
    Operation,
    WorkloadError,
)

Param = int | float | str | bool
Text = TypeVar("Text", bound=msgspec.Struct)

DEFAULT_WORKLOAD = "default"
"""The workload that stands for its test case."""


class _WorkloadText(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: str
    params: dict[str, Param] = {}
    labels: tuple[str, ...] = ()
    feature_gates: dict[str, bool] = {}
    threshold: Any = None
    threshold_metric_selector: Any = None


class _TestCaseText(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: str
    workload_template: list[dict[str, Any]]
    workloads: tuple[_WorkloadText, ...]
    description: str = ""
    default_pod_template_path: str = ""
    scheduler_config_path: str = ""
    eviction_milliseconds: int = 0
    feature_gates: dict[str, bool] = {}
    labels: tuple[str, ...] = ()
    metrics_collector_config: Any = None
    default_threshold_metric_selector: Any = None


@dataclass(frozen=True, slots=True)
class BenchWorkload:
    """One run: the operations of a test case with one set of parameters."""

    source: str
    case: str
    name: str
    description: str
    operations: tuple[Operation, ...]
    params: Mapping[str, Param]
    labels: frozenset[str]
    default_pod_template_path: str = ""
    scheduler_config_path: str = ""
    eviction_delay_s: float = 0.0
    """How long it takes until a victim of preemption is gone. Ours."""
    gates_off: tuple[str, ...] = field(default=())
    gates: Mapping[str, bool] = field(default_factory=dict)
    """Those that switch something here."""

    @property
    def title(self) -> str:
        return self.case if self.name == DEFAULT_WORKLOAD else f"{self.case}/{self.name}"

    def path(self, relative: str) -> Path:
        """Paths in a file are relative to it."""
        return Path(self.source).parent / relative

    def refuse(self, where: str, problem: str) -> WorkloadError:
        return WorkloadError(self.source, f"{self.title}: {where}" if where else self.title, problem)

    def with_params(self, changed: Mapping[str, Param]) -> BenchWorkload:
        return replace(self, params={**self.params, **changed})

    # -- parameters ----------------------------------------------------------------------------------------------------

    def number(self, where: str, value: int | None, param: str) -> int:
        """A count, or the parameter that stands in for it."""
        if param:
            found = self._param(where, param)
            if isinstance(found, bool) or not isinstance(found, int | float):
                raise self.refuse(where, f"{param}: a number is expected, not {found!r}")
            value = int(found)
        if value is None or value < 0:
            raise self.refuse(where, f"a count of 0 or more is expected, not {value}")
        return value

    def pod_count(self, where: str, operation: CreatePodsOp, n_nodes: int) -> int:
        if operation.count_per_node_param:
            return int(self._ratio(where, operation.count_per_node_param) * n_nodes)
        return self.number(where, operation.count, operation.count_param)

    def _ratio(self, where: str, param: str) -> float:
        found = self._param(where, param)
        if isinstance(found, bool) or not isinstance(found, int | float) or found < 0:
            raise self.refuse(where, f"{param}: a number of 0 or more is expected, not {found!r}")
        return float(found)

    def flag(self, where: str, value: bool, param: str) -> bool:
        if not param:
            return value
        found = self._param(where, param)
        if not isinstance(found, bool):
            raise self.refuse(where, f"{param}: true or false is expected, not {found!r}")
        return found

    def seconds(self, where: str, value: str, param: str) -> float:
        text = self._param(where, param) if param else value
        try:
            return Duration.parse(str(text)).seconds
        except DurationError as problem:
            raise self.refuse(where, str(problem)) from None

    def expected_pods(self) -> int:
        """How many pods are to get a node, as far as can be told beforehand."""
        n_nodes = n_pods = 0
        for operation in self.operations:
            if isinstance(operation, CreateNodesOp):
                n_nodes += self.number("", operation.count, operation.count_param)
            elif isinstance(operation, CreatePodsOp):
                n_pods += self.pod_count("", operation, n_nodes)
            elif isinstance(operation, CreatePodSetsOp):
                n_sets = self.number("", operation.count, operation.count_param)
                n_pods += n_sets * self.pod_count("", operation.create_pods_op, n_nodes)
        return n_pods

    def _param(self, where: str, name: str) -> Param:
        if not name.startswith("$"):
            raise self.refuse(where, f"a parameter begins with $, and this does not: {name!r}")
        if name[1:] not in self.params:
            raise self.refuse(where, f"parameter {name} is not defined")
        return self.params[name[1:]]


def read_workloads(path: Path) -> list[BenchWorkload]:
    """All workloads of a file, in their order."""
    source = str(path)
    try:
        text = path.read_bytes()
    except OSError as problem:
        raise WorkloadError(source, "", problem.strerror or str(problem)) from None
    try:
        data = load_document(text)
    except yaml.YAMLError as problem:
        raise WorkloadError(source, "", yaml_problem(problem, text)) from None
    if not isinstance(data, list):
        raise WorkloadError(source, "", "a list of test cases is expected")
    return [workload for index, case in enumerate(data) for workload in _read_case(case, index, source)]


def _read_case(data: object, index: int, source: str) -> list[BenchWorkload]:
    name = data.get("name") if isinstance(data, dict) else None
    case = _convert(data, _TestCaseText, source, str(name or f"test case {index}"))
    operations = tuple(
        _read_operation(item, source, f"{case.name}: operation {number}")
        for number, item in enumerate(case.workload_template)
    )
    if not any(operation.is_measured for operation in operations):
        raise WorkloadError(source, case.name, "no operation collects metrics")
    return [_workload(case, text, operations, source) for text in case.workloads]


def _workload(
    case: _TestCaseText, text: _WorkloadText, operations: tuple[Operation, ...], source: str
) -> BenchWorkload:
    gates = {**case.feature_gates, **text.feature_gates}
    return BenchWorkload(
        source=source,
        case=case.name,
        name=text.name,
        description=case.description,
        operations=operations,
        params=text.params,
        labels=frozenset((*case.labels, *text.labels)),
        default_pod_template_path=case.default_pod_template_path,
        scheduler_config_path=case.scheduler_config_path,
        eviction_delay_s=case.eviction_milliseconds / 1000,
        gates_off=tuple(sorted(gate for gate, is_on in gates.items() if not is_on)),
        gates={gate: is_on for gate, is_on in gates.items() if gate in SWITCHES},
    )


def _read_operation(item: object, source: str, where: str) -> Operation:
    opcode = item.get("opcode") if isinstance(item, dict) else None
    if opcode is None:
        raise WorkloadError(source, where, "opcode: an operation is expected")
    struct = OPERATIONS.get(str(opcode))
    if struct is None:
        raise WorkloadError(source, where, f"opcode: unknown operation {opcode!r}")
    operation = _convert(item, struct, source, f"{where} ({opcode})")
    pods = operation.create_pods_op if isinstance(operation, CreatePodSetsOp) else operation
    if isinstance(pods, CreatePodsOp):
        _check_pods(pods, source, f"{where} ({opcode})")
    return operation


def _check_pods(operation: CreatePodsOp, source: str, where: str) -> None:
    if operation.skip_wait_to_completion and operation.collect_metrics:
        raise WorkloadError(source, where, "collectMetrics and skipWaitToCompletion cannot both be true")
    if operation.skip_wait_to_completion and operation.steady_state:
        raise WorkloadError(source, where, "steadyState and skipWaitToCompletion cannot both be true")
    if operation.persistent_volume_template_path and not operation.persistent_volume_claim_template_path:
        raise WorkloadError(source, where, "persistentVolumeTemplatePath needs persistentVolumeClaimTemplatePath")


def _convert(data: object, struct: type[Text], source: str, where: str) -> Text:
    try:
        return msgspec.convert(data, struct)
    except msgspec.ValidationError as problem:
        raise WorkloadError(source, where, _plain(str(problem))) from None


def _plain(text: str) -> str:
    """msgspec's `Expected `int`, got `str` - at `$.count`` as `count: expected int, got str`."""
    text, _, path = text.partition(" - at `$")
    text = text.replace("`", "")
    text = text[:1].lower() + text[1:]
    path = path.rstrip("`").lstrip(".")
    return f"{path}: {text}" if path else text


FAMILIES = Path(__file__).parent / "workloads"
"""The workloads that come with kubesched."""

_NODE_PARAMS = ("initNodes", "nodes")
_POD_PARAM = "measurePods"


def load_workloads(files: Sequence[str]) -> list[BenchWorkload]:
    """All workloads of these files; of none, those that come with kubesched, by name."""
    if files:
        return [workload for file in files for workload in read_workloads(Path(file))]
    found = [workload for path in sorted(FAMILIES.glob("*.yaml")) for workload in read_workloads(path)]
    return sorted(found, key=lambda workload: workload.case)


def select_workloads(
    workloads: Sequence[BenchWorkload], names: Iterable[str], labels: Collection[str]
) -> list[BenchWorkload]:
    """Those named, or all; of these, those that have all the labels. Without labels, test cases stand for their
    default workloads."""
    wanted = list(names) or list(dict.fromkeys(workload.case for workload in workloads))
    found: list[BenchWorkload] = []
    for name in wanted:
        of_case = [workload for workload in workloads if workload.case == name]
        if not of_case:
            found.extend(_by_full_name(workloads, name))
        elif labels:
            found.extend(workload for workload in of_case if workload.labels.issuperset(labels))
        else:
            defaults = [workload for workload in of_case if workload.name == DEFAULT_WORKLOAD]
            found.extend(defaults or of_case)
    if not found:
        raise WorkloadError("", "", f"no workload has the label {' and '.join(labels)}")
    return found


def resized(workload: BenchWorkload, n_nodes: int | None, n_pods: int | None) -> BenchWorkload:
    """The workload with other numbers of nodes and of measured pods."""
    changed: dict[str, Param] = {}
    if n_nodes is not None:
        changed[_param(workload, _NODE_PARAMS, "nodes")] = n_nodes
    if n_pods is not None:
        changed[_param(workload, (_POD_PARAM,), "pods")] = n_pods
    return workload.with_params(changed) if changed else workload


def _by_full_name(workloads: Sequence[BenchWorkload], name: str) -> list[BenchWorkload]:
    found = [workload for workload in workloads if f"{workload.case}/{workload.name}" == name]
    if found:
        return found
    known = dict.fromkeys(title for workload in workloads for title in (workload.case, workload.title))
    raise WorkloadError("", "", f"unknown workload {name!r}{did_you_mean(name, known)}")


def _param(workload: BenchWorkload, names: Iterable[str], what: str) -> str:
    for name in names:
        if name in workload.params:
            return name
    raise workload.refuse("params", f"has no parameter {' or '.join(names)}, so --{what} cannot change it")
