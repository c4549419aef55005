"""A hint about pods that have no subject in common with the change says SKIP: it need not be asked about them."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import event, given, settings
from hypothesis import strategies as st

from kubesched.framework import Handle, Hint
from kubesched.framework.events import RegisteredEvent
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.scheduler.cluster.cluster import Cluster
from kubesched.scheduler.newer.version import NewerInterPodAffinity
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread
from kubesched.testing.world import QuietHandle

Json = dict[str, Any]

KEYS = ("app", "tier")
VALUES = ("x", "y")
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
NAMESPACES = st.sampled_from(("one", "two"))


@st.composite
def _selectors(draw: st.DrawFn) -> Json | None:
    if draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from((None, {})))
    expressions = []
    for key in draw(st.lists(st.sampled_from(KEYS), max_size=2)):
        operator = draw(st.sampled_from(("In", "In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist")))
        if draw(st.integers(0, 30)) == 30:
            operator = "Typo"
        values = draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=2)) if "In" in operator else []
        expressions.append({"key": key, "operator": operator, "values": values})
    return {"matchLabels": draw(LABELS), "matchExpressions": expressions}


@st.composite
def _terms(draw: st.DrawFn) -> Json:
    term: Json = {"topologyKey": "zone", "labelSelector": draw(_selectors())}
    if draw(st.booleans()):
        term["namespaces"] = draw(st.lists(NAMESPACES, max_size=2))
    if draw(st.integers(0, 2)) == 0:
        term["namespaceSelector"] = draw(_selectors())
    return term


@st.composite
def _affinity(draw: st.DrawFn) -> Json:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    toward, away = (draw(st.lists(_terms(), max_size=2)) for _ in range(2))
    return {"podAffinity": {required: toward}, "podAntiAffinity": {required: away}}


@st.composite
def _constraints(draw: st.DrawFn) -> Json:
    return {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": draw(st.sampled_from(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))),
        "labelSelector": draw(_selectors()),
        "matchLabelKeys": draw(st.lists(st.sampled_from(KEYS), max_size=1)),
    }


@st.composite
def _pods(draw: st.DrawFn, name: str, *, may_have_node: bool = False) -> Pod:
    spec: Json = {"containers": [{"name": "c", "image": "i"}]}
    if draw(st.booleans()):
        spec["affinity"] = draw(_affinity())
    if draw(st.booleans()):
        spec["topologySpreadConstraints"] = draw(st.lists(_constraints(), max_size=2))
    if may_have_node and draw(st.integers(0, 3)):
        spec["nodeName"] = "n"
    metadata = {"name": name, "namespace": draw(NAMESPACES), "uid": name, "labels": draw(LABELS)}
    (pod,) = manifests.from_dicts([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}]).objects
    assert isinstance(pod, Pod)
    return pod


def _of_pods() -> list[RegisteredEvent]:
    handle = cast(Handle, QuietHandle())  # which these hints do not ask
    plugins = [kind(None, handle) for kind in (PodTopologySpread, InterPodAffinity, NewerInterPodAffinity)]
    registered = [entry for plugin in plugins for entry in plugin.events_to_register()]
    return [entry for entry in registered if entry.subjects is not None]


REGISTERED = _of_pods()


@settings(max_examples=300, deadline=None)
@given(
    waiting=_pods("waiting"),
    old=st.none() | _pods("changed", may_have_node=True),
    new=st.none() | _pods("changed", may_have_node=True),
)
def test_a_hint_skips_what_has_no_subject_in_common(waiting: Pod, old: Pod | None, new: Pod | None) -> None:
    (info,) = Cluster.from_objects([waiting]).pending.values()
    assert len(REGISTERED) == 3
    for entry in REGISTERED:
        assert entry.hint is not None and entry.subjects is not None and entry.by_signature
        of_pod, of_change = entry.subjects.of_pod(info), entry.subjects.of_change(old, new)
        has_common = of_pod is None or of_change is None or not set(of_pod).isdisjoint(of_change)
        event(f"common: {has_common}")
        if not has_common:
            assert entry.hint(info, old, new) is Hint.SKIP
