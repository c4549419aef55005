"""What an explanation costs from a cold start, and a decision on a warm table.

    python benchmarks/decide.py [--nodes 5000] [--pods 20000]

Prints ratios and microseconds; asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from kubesched.explanation.explain import build_cluster, explain_pod
from kubesched.k8s.model import manifests
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.config import default
from kubesched.scheduler.engine.score import ByName
from kubesched.testing import make
from kubesched.testing.make import HOSTNAME, ZONE, Manifest

N_APPS = 100


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


if __name__ == "__main__":
    main()
