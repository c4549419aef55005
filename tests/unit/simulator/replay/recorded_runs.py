"""Recordings of simulated clusters: what a recorder would have seen of a run."""

from __future__ import annotations

from pathlib import Path

from kubesched.k8s.loaded_cluster import read_objects
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.workloads.actions import Bursts, SeededNames
from kubesched.live.recorder import InformerStream, write_to
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.older.config.generations import generation_of
from kubesched.older.engine.build import variant_of
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.engine.score import Seeded
from kubesched.simulator.loading import SIMULATED_KINDS, load
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.recording.anonymous import Anonymiser
from kubesched.simulator.recording.lines import STRUCTS, RecordingWriter
from kubesched.simulator.recording.reader import Recorded
from kubesched.simulator.scenario import plan_scenario
from kubesched.simulator.virtual.cluster import VirtualCluster


def configuration(document: object = None) -> KubeSchedulerConfiguration:
    return GivenConfiguration.read(document, None, None, None).as_of_today().config  # type: ignore[arg-type]


def recorded_run(
    manifests: str, document: object = None, until_s: float = 600.0, seed: int = 3, emulate: str = ""
) -> list[Recorded]:
    """What happens when these manifests are simulated; nodes are there when the recording begins."""
    given = load(read_objects(manifests, SIMULATED_KINDS))
    if emulate:
        generation = generation_of(emulate)
        assert generation is not None
        emulation = GivenConfiguration.read(None, None, None, None).as_of(generation)
        loop = build_loop(emulation.config, Seeded(seed), variant=variant_of(emulation))
    else:
        loop = build_loop(configuration(document), Seeded(seed))
    options = SimulationOptions(until_s=until_s, seed=seed)
    cluster = VirtualCluster(loop, SeededNames(seed), options, Bursts())
    seen: list[Recorded] = []
    follower = InformerStream(seen.append, now_s=lambda: cluster.clock.now_s)

    def tell(before: KubeObject | None, after: KubeObject | None) -> None:
        if after is not None:
            follower.put(after)
        elif before is not None:
            follower.remove(before)

    cluster.store.listen(tell)
    plan_scenario(cluster, given.steps)
    early = [item for item in given.objects if type(item).__name__ in ("Node", "Namespace", "PriorityClass")]
    for item in early:
        cluster.admission.apply(item)
    follower.synced()
    for item in given.objects:
        if item not in early:
            cluster.admission.apply(item)
    cluster.run()
    return seen


def write(path: Path, events: list[Recorded], anonymiser: Anonymiser | None = None) -> Path:
    writer = RecordingWriter(path, sorted(STRUCTS), events[0].at_s, anonymised=anonymiser is not None)
    hand_on = write_to(writer, anonymiser)
    for event in events:
        hand_on(event)
    writer.close()
    return path


def manifests(n_nodes: int, more: str = "") -> str:
    """A cluster of three zones, and several deployments that spread, attract and keep apart."""
    nodes = "".join(
        f"""
apiVersion: v1
kind: Node
metadata:
  name: node-{i}
  labels:
    kubernetes.io/hostname: node-{i}
    topology.kubernetes.io/zone: {"abc"[i % 3]}
    disk: {"ssd" if i % 2 else "hdd"}
status:
  allocatable: {{cpu: "{4 + i % 3 * 4}", memory: {16 + i % 2 * 16}Gi, pods: "110"}}
---"""
        for i in range(n_nodes)
    )
    return nodes + _WORKLOADS + more


_WORKLOADS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 12
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {kubesched.dev/duration: 40s}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule,
         labelSelector: {matchLabels: {app: web}}}
      containers: [{name: c, image: web:1, resources: {requests: {cpu: 300m, memory: 1Gi}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cache, namespace: shop}
spec:
  replicas: 6
  selector: {matchLabels: {app: cache}}
  template:
    metadata: {labels: {app: cache}, annotations: {kubesched.dev/duration: 70s}}
    spec:
      affinity:
        podAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 60
            podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: [ssd]}]}]
      containers: [{name: c, image: cache:1, resources: {requests: {cpu: 700m, memory: 500Mi}}}]
---
"""
