"""InterPodAffinity: where required terms, the pod's own and those of others, let a pod go."""

from __future__ import annotations

from typing import Any

import pytest
from crowds import HOST, ZONE, Crowd, Json, bare_node, namespace, node, pod, reasons, rejections

from kubesched.framework import CycleState
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.config import InterPodAffinityArgs
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity

ALONE = "UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules"
REPELLED = "Unschedulable: node(s) didn't match pod anti-affinity rules"
UNWELCOME = "Unschedulable: node(s) didn't satisfy existing pods anti-affinity rules"

WEB = {"app": "web"}
DB = {"app": "db"}


def term(labels: dict[str, str] | None = None, key: str = ZONE, **fields: Any) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": WEB if labels is None else labels}, **fields}


def near(*terms: Json) -> Json:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def away(*terms: Json) -> Json:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def rejected(incoming: Pod, *objects: KubeObject) -> dict[str, str] | None:
    crowd = Crowd(*objects)
    return rejections(InterPodAffinity(InterPodAffinityArgs(), crowd), crowd, incoming)


EVERYWHERE = dict.fromkeys(("a1", "a2", "b1", "none"), ALONE)
NODES = (node("a1", "a"), node("a2", "a"), node("b1", "b"), bare_node("none", **{HOST: "none"}))
WEB_ON_A1 = pod("web", labels=WEB, on="a1")
WEB_DB_ON_A1 = pod("both", labels={**WEB, "tier": "db"}, on="a1")


@pytest.mark.parametrize(
    ("terms", "pods", "expected"),
    [
        pytest.param([term()], [WEB_ON_A1], {"b1": ALONE, "none": ALONE}, id="only the zone of a matching pod"),
        pytest.param([term(key=HOST)], [WEB_ON_A1], {"a2": ALONE, "b1": ALONE, "none": ALONE}, id="only its host"),
        pytest.param([term()], [], EVERYWHERE, id="no such pod anywhere"),
        pytest.param(
            [term(), term({"tier": "db"})],
            [WEB_ON_A1, pod("db", labels={"tier": "db"}, on="a2")],
            EVERYWHERE,
            id="two pods that match a term each do not help",
        ),
        pytest.param(
            [term(), term({"tier": "db"}, HOST)],
            [WEB_DB_ON_A1],
            {"a2": ALONE, "b1": ALONE, "none": ALONE},
            id="one pod that matches both terms helps, in both topologies",
        ),
        pytest.param(
            [term()],
            [pod("web", labels=WEB, on="a1", terminating=True)],
            {"b1": ALONE, "none": ALONE},
            id="a pod being deleted counts",
        ),
        pytest.param(
            [term()],
            [pod("web", labels=WEB, on="none")],
            EVERYWHERE,
            id="a pod on a node without the label counts nowhere",
        ),
    ],
)
def test_affinity_needs_a_matching_pod_in_the_same_topology(
    terms: list[Json], pods: list[Pod], expected: dict[str, str]
) -> None:
    assert rejected(pod(labels={"app": "other"}, affinity=near(*terms)), *NODES, *pods) == expected


@pytest.mark.parametrize(
    ("terms", "pods", "expected"),
    [
        pytest.param([term()], [], {"none": ALONE}, id="nobody there yet: anywhere with the label"),
        pytest.param([term()], [WEB_ON_A1], {"b1": ALONE, "none": ALONE}, id="not when somebody is there"),
        pytest.param(
            [term()],
            [pod("web", labels=WEB, on="none")],
            {"none": ALONE},
            id="who stands on a node without the label is not there",
        ),
        pytest.param([term(), term({"tier": "db"})], [], EVERYWHERE, id="not for a pod that is not of the kind itself"),
        pytest.param([term(namespaces=["other"])], [], EVERYWHERE, id="not for a pod of another namespace than wanted"),
    ],
)
def test_the_first_pod_of_a_series_may_go_anywhere(
    terms: list[Json], pods: list[Pod], expected: dict[str, str]
) -> None:
    assert rejected(pod(labels=WEB, affinity=near(*terms)), *NODES, *pods) == expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([term()], {"a1": REPELLED, "a2": REPELLED}, id="not its zone"),
        pytest.param([term(key=HOST)], {"a1": REPELLED}, id="not its host"),
        pytest.param([term(DB), term(key=HOST)], {"a1": REPELLED}, id="one matching term is enough"),
        pytest.param([term(DB)], {}, id="no such pod: anywhere, with the label or without"),
        pytest.param([{"topologyKey": ZONE}], {}, id="no selector speaks of no pod"),
        pytest.param([{"topologyKey": ZONE, "labelSelector": {}}], {"a1": REPELLED, "a2": REPELLED}, id="any pod"),
    ],
)
def test_anti_affinity_keeps_away_from_matching_pods(terms: list[Json], expected: dict[str, str]) -> None:
    assert rejected(pod(labels=DB, affinity=away(*terms)), *NODES, WEB_ON_A1) == expected


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(away(term(DB)), {"a1": UNWELCOME, "a2": UNWELCOME}, id="not in its zone"),
        pytest.param(away(term(DB, HOST), term(DB, "rack")), {"a1": UNWELCOME}, id="not on its host"),
        pytest.param(away(term()), None, id="it does not mind this pod"),
        pytest.param(away(term(DB, "rack")), None, id="its node is in no such topology"),
        pytest.param(away(term(DB, namespaces=["other"])), None, id="it minds pods of another namespace"),
        pytest.param(
            away(term(DB, namespaceSelector={"matchLabels": {"team": "x"}})),
            {"a1": UNWELCOME, "a2": UNWELCOME},
            id="it minds pods of namespaces like this one",
        ),
        pytest.param(
            away(term(DB, namespaceSelector={"matchLabels": {"team": "y"}})),
            None,
            id="it minds pods of namespaces unlike this one",
        ),
        pytest.param(near(term(DB)), None, id="it likes this pod"),
    ],
)
def test_a_pod_keeps_away_from_pods_that_do_not_want_it(affinity: Json, expected: dict[str, str] | None) -> None:
    existing = pod("web", labels=WEB, on="a1", affinity=affinity)
    assert rejected(pod(labels=DB), *NODES, namespace("default", team="x"), existing) == expected


def test_of_several_reasons_affinity_comes_first_then_anti_affinity_then_that_of_others() -> None:
    incoming = pod(labels=DB, affinity={**near(term()), **away(term(DB, HOST))})
    minds = pod("web", labels=WEB, on="a2", affinity=away(term(DB)))
    found = rejected(incoming, *NODES, minds, pod("db", labels=DB, on="a1"), pod("db-b", labels=DB, on="b1"))
    assert found == {"a1": REPELLED, "a2": UNWELCOME, "b1": ALONE, "none": ALONE}


NOT_TEAM_X = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}
TEAMS = (namespace("default"), namespace("one", team="x"), namespace("two", team="y"), namespace("three"))


@pytest.mark.parametrize(
    ("fields", "found_in"),
    [
        pytest.param({}, {"default"}, id="the pod's own namespace"),
        pytest.param({"namespaces": ["one"]}, {"one"}, id="named ones, without its own"),
        pytest.param({"namespaceSelector": {}}, {"default", "one", "two", "three", "unknown"}, id="all"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "x"}}}, {"one"}, id="selected ones"),
        pytest.param(
            {"namespaces": ["two"], "namespaceSelector": {"matchLabels": {"team": "x"}}},
            {"one", "two"},
            id="named and selected ones",
        ),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}},
            {"one", "two"},
            id="those with a label",
        ),
        pytest.param(
            {"namespaceSelector": NOT_TEAM_X},
            {"default", "one", "two", "three", "unknown"},
            id="a selector that no labels at all would meet stands for all",
        ),
    ],
)
def test_a_term_speaks_of_pods_in_its_namespaces(fields: Json, found_in: set[str]) -> None:
    names = ("default", "one", "two", "three", "unknown")
    nodes = [node(f"in-{name}") for name in names]
    pods = [pod(f"web-{name}", namespace=name, labels=WEB, on=f"in-{name}") for name in names]
    found = rejected(pod(affinity=away(term(key=HOST, **fields))), *nodes, *pods, *TEAMS)
    assert found == {f"in-{name}": REPELLED for name in found_in}


def test_the_filter_is_left_out_where_nobody_requires_anything() -> None:
    preferring = {
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term()}]}
    }
    assert rejected(pod(labels=WEB, affinity=preferring), *NODES, WEB_ON_A1) is None


LIKE: Json = {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [{"key": "k", "operator": "Like"}]}}
IS: Json = {"topologyKey": ZONE, "namespaceSelector": {"matchExpressions": [{"key": "k", "operator": "Is"}]}}


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(near(LIKE), 'requiredAffinityTerms: "Like" is not a valid label selector operator', id="affinity"),
        pytest.param(
            away(term(), IS, LIKE),
            'requiredAntiAffinityTerms: "Is" is not a valid label selector operator',
            id="the first validation error of a list",
        ),
        pytest.param(
            {**near(LIKE), **away(IS)},
            '[requiredAffinityTerms: "Like" is not a valid label selector operator, '
            'requiredAntiAffinityTerms: "Is" is not a valid label selector operator]',
            id="two lists",
        ),
        pytest.param(
            {
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": LIKE}]
                }
            },
            'preferredAffinityTerms: "Like" is not a valid label selector operator',
            id="preferred terms, too",
        ),
    ],
)
def test_terms_that_cannot_be_understood_reject_the_pod(affinity: Json, expected: str) -> None:
    crowd = Crowd(*NODES)
    found = (
        InterPodAffinity(None, crowd).pre_filter(CycleState(), crowd.info(pod(affinity=affinity)), crowd.nodes).status
    )
    assert (found.code.value, found.message) == ("UnschedulableAndUnresolvable", f"parsing pod: {expected}")


def test_the_filter_without_its_preparation_is_an_error() -> None:
    crowd = Crowd(*NODES)
    plugin, info = InterPodAffinity(None, crowd), crowd.info(pod())
    message = 'error reading "PreFilterInterPodAffinity" from cycleState: not found'
    assert set(plugin.filter(CycleState(), info, crowd.nodes).errors.values()) == {message}
    assert plugin.add_pod(CycleState(), info, info, crowd.nodes.at(0)).message == message


INCOMING = pod("incoming", labels=DB, affinity={**near(term()), **away(term({"app": "cache"}))})


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(pod("x", labels=WEB), {}, id="one that it wants to be near"),
        pytest.param(
            pod("x", labels={"app": "cache"}), {"b1": ALONE}, id="one that it wants to be away from, too late"
        ),
        pytest.param(
            pod("x", labels={**WEB}, affinity=away(term(DB, "rack"))),
            {"b1": UNWELCOME},
            id="one that does not want it, in a topology not seen before",
        ),
    ],
)
def test_adding_and_removing_a_pod_undo_each_other(changed: Pod, expected: dict[str, str]) -> None:
    crowd = Crowd(node("a1", "a"), node("b1", "b", labels={"rack": "r"}), WEB_ON_A1)
    plugin, cycle, info = InterPodAffinity(None, crowd), CycleState(), crowd.info(INCOMING)
    plugin.pre_filter(cycle, info, crowd.nodes)
    other, at = crowd.info(changed), crowd.nodes.at(1)
    assert plugin.add_pod(cycle, info, other, at).is_success
    assert reasons(plugin.filter(cycle, info, crowd.nodes), crowd.nodes) == expected
    assert plugin.remove_pod(cycle, info, other, at).is_success
    assert reasons(plugin.filter(cycle, info, crowd.nodes), crowd.nodes) == {"b1": ALONE}


def test_removing_the_last_pod_of_a_series_makes_the_next_one_the_first() -> None:
    crowd = Crowd(node("a1", "a"), node("b1", "b"), WEB_ON_A1)
    plugin, cycle, info = (
        InterPodAffinity(None, crowd),
        CycleState(),
        crowd.info(pod(labels=WEB, affinity=near(term()))),
    )
    plugin.pre_filter(cycle, info, crowd.nodes)
    plugin.remove_pod(cycle, info, crowd.info(WEB_ON_A1), crowd.nodes.at(0))
    assert reasons(plugin.filter(cycle, info, crowd.nodes), crowd.nodes) == {}
