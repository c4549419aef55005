"""A training job of 64 GPUs goes to one rack, or waits."""

from __future__ import annotations

from pathlib import Path

import kubesched
from kubesched.explanation.pod_groups import PodGroupExplanation
from kubesched.k8s.model.kubernetes_yaml import load_documents

HERE = Path(__file__).parents[3] / "examples" / "training-on-racks"
CLUSTER, TRAINING, WAITING, CONFIG = (
    HERE / name for name in ("cluster.yaml", "training.yaml", "waiting-pods.yaml", "config.yaml")
)


def _racks(report: kubesched.SimulationReport) -> set[str]:
    return {str(row.node)[:6] for row in report.pods.named() if str(row.name).startswith("training") and row.node}


def test_all_workers_are_in_one_rack() -> None:
    report = kubesched.simulate([CLUSTER, TRAINING], config=CONFIG)
    assert _racks(report) == {"rack-2"}
    (group,) = report.pod_groups
    assert (group["placed"], group["scheduled"]) == (8, True)
    assert "ml         training   at least 8  8 of 8            after 0s  scheduled" in str(report)


def test_without_the_gates_they_are_anywhere() -> None:
    assert len(_racks(kubesched.simulate([CLUSTER, TRAINING]))) > 1


def test_the_gang_is_explained() -> None:
    found = kubesched.explain([CLUSTER, TRAINING, WAITING], "ml/podgroup/training")
    shown = "\n".join(line.rstrip() for line in str(found).splitlines())
    assert shown in (HERE / "README.md").read_text()
    assert isinstance(found, PodGroupExplanation) and not found.is_unschedulable
    assert [one["fitting"] for one in found.to_dict()["placements"]] == [8, 8, 5]


def test_a_gang_that_fits_in_no_rack_is_told_which_came_nearest() -> None:
    busy = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"busy-{rack}-{i}", "namespace": "ml", "uid": f"busy-{rack}-{i}"},
            "spec": {
                "nodeName": f"rack-{rack}-node-{i}",
                "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "8"}}}],
            },
        }
        for rack in (2, 3)
        for i in range(1, 4)
    ]
    documents = [item for path in (CLUSTER, TRAINING, WAITING) for item in load_documents(path.read_bytes())]
    found = kubesched.explain([*documents, *busy], "ml/podgroup/training")
    assert isinstance(found, PodGroupExplanation) and found.is_unschedulable
    assert found.headline == (
        "PodGroup ml/training waits: the nearest placement is example.com/rack=rack-3, where 7 of the 8 pods that it "
        "needs find a node; training-7 does not: 0/10 nodes are available: 10 Insufficient nvidia.com/gpu."
    )


def test_a_gang_whose_pods_do_not_exist_says_so() -> None:
    found = kubesched.explain([CLUSTER, TRAINING], "ml/podgroup/training")
    assert found.headline == "PodGroup ml/training waits: none of the 8 pods that it needs exists."
