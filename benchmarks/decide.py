"""What an explanation costs from a cold start, a decision on a warm table, a trial on a loaded cluster, and the library
beside the engine alone.

    python benchmarks/decide.py [--nodes 5000] [--pods 20000]

Prints ratios and times; asserts nothing. A trial evicts 30 pods of 20 Deployments, settles and is reverted; its time is
that of the processor. The library simulates as many plain pods as `kubesched bench basic` measures, half as many as
`--pods`, on as many nodes; reading their manifests is left aside.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from random import Random
from typing import Any

from scale import deployments, nodes

import kubesched
from kubesched.explanation.explain import build_cluster, explain_pod
from kubesched.k8s.model import manifests
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.config import default
from kubesched.scheduler.engine.score import ByName
from kubesched.simulator.bench.runner import run_workload
from kubesched.simulator.bench.workload_file import load_workloads, resized, select_workloads
from kubesched.simulator.library import checked_input
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.run import run_simulation
from kubesched.testing import make
from kubesched.testing.make import HOSTNAME, ZONE, Manifest

N_APPS = 100
N_EVICTED = 30
N_TRIALS = 50


def dump(n_nodes: int, n_pods: int) -> bytes:
    """A cluster as `kubectl get … -o json` prints it, with the fields that real objects carry."""
    items: list[Manifest] = [_node(i) for i in range(n_nodes)]
    items += [_pod(i, n_nodes) for i in range(n_pods)]
    items += list(_pending().values())
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def _node(i: int) -> Manifest:
    node = make.node(
        f"node-{i:05}",
        cpu=str(8 + 8 * (i % 3)),
        memory=f"{32 + 32 * (i % 3)}Gi",
        labels={ZONE: f"zone-{i % 3}", "pool": f"pool-{i % 7}", "kubernetes.io/arch": "amd64"},
        taints=[make.taint("dedicated", "infra")] if i % 50 == 0 else [],
        images={f"registry.example.com/app-{k}:1": 50_000_000 + k for k in range(i % N_APPS, i % N_APPS + 10)},
    )
    node["status"]["conditions"] = [
        {"type": t, "status": "False", "reason": "KubeletHasSufficient", "message": "ok"}
        for t in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    return node


def _pod(i: int, n_nodes: int) -> Manifest:
    app = f"app-{i % N_APPS}"
    pod = make.pod(
        f"{app}-{i:06}",
        namespace=f"ns-{i % 10}",
        on=f"node-{(i * 7919) % n_nodes:05}",
        cpu=f"{100 * (1 + i % 5)}m",
        memory=f"{128 * (1 + i % 4)}Mi",
        labels={"app": app, "pod-template-hash": f"{i % N_APPS:08x}"},
        image=f"registry.example.com/{app}:1",
        started="2026-01-01T00:00:00Z",
    )
    pod["spec"]["tolerations"] = [
        {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for why in ("not-ready", "unreachable")
    ]
    if i % 10 == 0:
        pod["spec"]["affinity"] = {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 100, "podAffinityTerm": make.affinity_term(HOSTNAME, {"app": app})}
                ]
            }
        }
    pod["status"]["conditions"] = [{"type": t, "status": "True"} for t in ("PodScheduled", "Initialized", "Ready")]
    return pod


def _pending() -> dict[str, Manifest]:
    """The pods whose decision is timed."""
    labels = {"app": "app-1"}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    specs: dict[str, dict[str, Any]] = {
        "plain": {},
        "spread": {
            "topologySpreadConstraints": [
                make.spread(ZONE, max_skew=5000, labels=labels),
                make.spread(HOSTNAME, hard=False, labels=labels),
            ]
        },
        "affinity": {"affinity": {"podAffinity": {required: [make.affinity_term(ZONE, labels)]}}},
        "anti-affinity": {"affinity": {"podAntiAffinity": {required: [make.affinity_term(HOSTNAME, labels)]}}},
    }
    return {
        name: make.pod(name, namespace="ns-1", cpu="500m", memory="512Mi", labels=labels, spec=spec)
        for name, spec in specs.items()
    }


def _best_of(times: int, work: Callable[[], object]) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def _bare_decoding(data: bytes) -> None:
    manifests.read(data, "dump.json")


def trials_ms(n_nodes: int, n_pods: int) -> list[float]:
    """One trial after another; the first ones meet every kind of pod for the first time."""
    world = kubesched.world(nodes(n_nodes), deployments(n_pods))
    with world.trial() as trial:
        trial.settle()
        trial.commit()
    placed = sorted(world.placed)
    took = []
    for seed in range(N_TRIALS):
        leaving = Random(seed).sample(placed, N_EVICTED)
        start_s = time.process_time()
        with world.trial() as trial:
            trial.evict(*leaving)
            trial.settle()
        took.append((time.process_time() - start_s) * 1e3)
    return took


def library_us(n_nodes: int, n_pods: int) -> tuple[float, float]:
    """Of the library, for each pod: all that comes after loading; and without putting the objects into the cluster."""
    pods = [make.pod(f"pod-{i}", cpu="100m", memory="500Mi", image="registry.example.com/app:1") for i in range(n_pods)]
    cluster = checked_input(
        kubesched.load([make.node(f"node-{i}", cpu=4, memory="32Gi") for i in range(n_nodes)], pods)
    )
    start_s = time.perf_counter()
    put_s = start_s

    def all_are_put(_: object) -> None:
        nonlocal put_s
        put_s = time.perf_counter()

    options = SimulationOptions()
    report = SimulationReport(run_simulation(cluster, default(), options, before=all_are_put), options)
    assert report.summary["states"] == {"Running": n_pods}
    end_s = time.perf_counter()
    return (end_s - start_s) / n_pods * 1e6, (end_s - put_s) / n_pods * 1e6


def engine_us(n_nodes: int, n_pods: int) -> float:
    """Of the engine with its loop and queue, for each pod."""
    (workload,) = select_workloads(load_workloads(()), ["basic"], ())
    return 1e6 / run_workload(resized(workload, n_nodes, n_pods)).pods_per_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=20000)
    options = parser.parse_args()
    data = dump(options.nodes, options.pods)
    print(f"{options.nodes} nodes, {options.pods} pods, {len(data) / 1e6:.1f} MB of JSON")
    decoding = _best_of(5, lambda: _bare_decoding(data))
    whole = _best_of(3, lambda: explain_pod(manifests.read(data, "dump.json"), "ns-1/plain", default()).to_dict())
    print(f"decode {decoding * 1e3:.0f} ms, explain from the dump {whole * 1e3:.0f} ms: {whole / decoding:.1f} times")
    cluster = build_cluster(manifests.read(data, "dump.json"))
    scheduler = build_schedulers(cluster, default(), ByName(), percentage=100)["default-scheduler"]
    for name in _pending():
        info = next(info for info in cluster.pending.values() if info.name == name)
        scheduler.decide(info)
        took = []
        for _ in range(50):
            start = time.perf_counter()
            scheduler.decide(info)
            took.append((time.perf_counter() - start) * 1e6)
        print(f"decide {name:14} {statistics.median(took):7.0f} us (best {min(took):.0f})")
    first, second, *others = trials_ms(options.nodes, options.pods)
    print(
        f"trial: {N_EVICTED} pods evicted, settled and reverted {statistics.median(others):.2f} ms "
        f"(the first {first:.1f}, the second {second:.1f}, the longest of the others {max(others):.2f})"
    )
    n_measured = options.pods // 2
    rounds = [(engine_us(options.nodes, n_measured), *library_us(options.nodes, n_measured)) for _ in range(3)]
    engine, everything, without_putting = (min(values) for values in zip(*rounds, strict=True))
    print(
        f"basic, for each pod: engine {engine:.1f} us; library {everything:.1f} us, {everything / engine:.2f} times; "
        f"without putting nodes and pods in {without_putting:.1f} us, {without_putting / engine:.2f} times"
    )


if __name__ == "__main__":
    main()
