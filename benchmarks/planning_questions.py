"""How long `capacity`, `compare` and `check` take, for `planning`: times of the processor, loading included."""

from __future__ import annotations

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from planning_worlds import filled_cluster

import kubesched


def capacity_of_a_plain_pod() -> tuple[float, int]:
    """100,000 copies on 5,000 nodes that hold 20,000 pods; gives seconds in all, and copies a second after loading."""
    cluster = filled_cluster(5000, 20_000)
    begun_s = time.process_time()
    world = kubesched.world(cluster)
    loaded_s = time.process_time()
    report = kubesched.capacity(world, shapes=["10m/16Mi"], remedies=False)
    ended_s = time.process_time()
    return ended_s - begun_s, round(report.fits / (ended_s - loaded_s))


def headroom_matrix() -> float:
    """6 shapes by 3 zones and all nodes, on 1,000 nodes that hold 20,000 pods."""
    cluster = filled_cluster(1000, 20_000)
    begun_s = time.process_time()
    shapes = ["250m/512Mi", "500m/1Gi", "1/2Gi", "2/4Gi", "2/8Gi", "4/8Gi"]
    kubesched.capacity(cluster, shapes=shapes, by=["zone"])
    return time.process_time() - begun_s


def room_of_every_workload() -> tuple[float, int]:
    """On 1,000 nodes; gives seconds and the number of workloads."""
    cluster = filled_cluster(1000, 5_800)
    begun_s = time.process_time()
    report = kubesched.capacity(cluster, every=True)
    return time.process_time() - begun_s, len(report.answers)


def comparison() -> float:
    """20 seeds, 2 variants, 5,000 pods that come at once to 300 nodes, in one process."""
    nodes = [item for item in filled_cluster(300, 0) if item["kind"] == "Node"]
    labels = {"app": "web"}
    containers = [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": 5000, "selector": {"matchLabels": labels}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    begun_s = time.process_time()
    kubesched.compare([*nodes, web], {"base": {}, "again": {"resize": "memory*0.9"}}, seeds=20)
    return time.process_time() - begun_s


def check_of_a_dump() -> tuple[float, int]:
    """5 checks with 5 seeds on 300 nodes and 6,000 pods; gives seconds, and the length of the Markdown."""
    cluster = filled_cluster(300, 6000)
    change = next(item for item in cluster if item["kind"] == "Deployment")
    change = {**change, "spec": {**change["spec"], "replicas": change["spec"]["replicas"] + 5}}
    checks = [
        {"name": "fits", "fits": {}},
        {"name": "rollout", "fits": {"rollingUpdate": True}},
        {"name": "headroom", "capacity": {"shape": "1/2Gi", "by": "zone", "atLeast": 10}},
        {"name": "nodes", "outage": {"every": "node"}},
        {"name": "money", "cost": {"atMost": "+5%"}},
    ]
    record = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Check", "checks": checks, "seeds": 5}
    with TemporaryDirectory() as directory:
        place = Path(directory)
        dump = {"apiVersion": "v1", "kind": "List", "items": cluster}
        (place / "dump.json").write_text(json.dumps(dump))
        (place / "change.json").write_text(json.dumps(change))
        asked = {**record, "cluster": {"file": "dump.json"}, "change": [{"file": "change.json"}]}
        (place / "check.json").write_text(json.dumps(asked))
        begun_s = time.process_time()
        report = kubesched.check(place / "check.json")
        return time.process_time() - begun_s, len(report.to_markdown())
