"""Pods that would fit by themselves, and wait with their group: every view of them says so."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from kubesched.explanation.explain import build_cluster
from kubesched.explanation.overview import NodeOverview, PodsOverview
from kubesched.k8s.model import manifests
from kubesched.live.serving.live_sources import capture, explain_captured
from kubesched.scheduler.config.defaults import with_gates
from kubesched.scheduler.config.load import default

_WAITS = "its PodGroup g waits: 2 of the 3 pods that it needs find a node; g-2 does not"
_JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "g", "uid": "job", "controller": True}


def _object(api_version: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    namespace = {} if kind == "Node" else {"namespace": "ml"}
    metadata = {"name": name, "uid": f"{kind}-{name}", **namespace, **fields.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def _pods(group: str, n: int) -> list[dict[str, Any]]:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container], **({"schedulingGroup": {"podGroupName": group}} if group else {})}
    owned = {"ownerReferences": [_JOB]} if group == "g" else {}
    return [_object("v1", "Pod", f"{group or 'plain'}-{i}", metadata=owned, spec=spec) for i in range(n)]


def _cluster() -> list[dict[str, Any]]:
    gang = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    indexed = {"parallelism": 3, "completions": 3, "completionMode": "Indexed", "template": {"spec": {}}}
    return [
        _object("v1", "Node", "n", status={"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"}}),
        _object("batch/v1", "Job", "g", metadata={"uid": "job"}, spec=indexed),
        *(_object("scheduling.k8s.io/v1alpha2", "PodGroup", name, spec=gang) for name in ("g", "few")),
        *_pods("g", 3),
        *_pods("few", 1),
        *_pods("missing", 1),
        *_pods("", 1),
    ]


@pytest.mark.parametrize("about", ["", "namespace/ml", "ml/job/g"])
def test_an_overview_does_not_say_that_they_fit(about: str) -> None:
    found = kubesched.explain(_cluster(), about) if about else kubesched.explain(_cluster())
    assert isinstance(found, PodsOverview)
    told = {group.pods: group.cause.text for group in found.groups}
    assert told.pop(("ml/g-0", "ml/g-1", "ml/g-2")).startswith(_WAITS)
    if about != "ml/job/g":
        assert told.pop(("ml/few-0",)) == "its PodGroup few waits: 2 of the 3 pods that it needs do not exist"
        assert told.pop(("ml/missing-0",)) == "its PodGroup missing does not exist"
        assert told.pop(("ml/plain-0",)) == "fits on 1 of 1 node and would go to n"
    assert told == {}


def test_a_node_could_not_take_them() -> None:
    found = kubesched.explain(_cluster(), "node/n")
    assert isinstance(found, NodeOverview)
    assert found.could == ("ml/plain-0",)
    assert found.groups[0][1] == ("ml/g-0", "ml/g-1", "ml/g-2")
    assert found.groups[0][0].startswith(_WAITS)


@pytest.mark.parametrize("has_gates", [True, False])
def test_a_scheduler_that_runs_says_so_if_it_knows_groups(has_gates: bool) -> None:
    cluster = build_cluster(manifests.from_dicts(_cluster()))
    key = next(key for key in cluster.pending if key == "ml/g-0")
    gates = dict.fromkeys(("GenericWorkload", "GangScheduling") if has_gates else (), True)
    found = explain_captured(capture(cluster), key, with_gates(default(), gates))
    assert found.cause.text.startswith(_WAITS) is has_gates
