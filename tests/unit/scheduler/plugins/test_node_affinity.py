"""NodeAffinity: what is required of a node, and what is preferred."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from small_clusters import NO_HANDLE, node, pod_info, statuses, table

from kubesched.framework import OK, CycleState, Hint, Status
from kubesched.framework.status import SKIP
from kubesched.k8s.model.core import Node
from kubesched.scheduler.config.plugin_args import NodeAffinityArgs
from kubesched.scheduler.plugins.node_affinity import NodeAffinity

PLUGIN = NodeAffinity(NodeAffinityArgs(), NO_HANDLE)
UNMATCHED = ("UnschedulableAndUnresolvable", "node(s) didn't match Pod's node affinity/selector")
ENFORCED = ("UnschedulableAndUnresolvable", "node(s) didn't match scheduler-enforced node affinity")

NODES = [
    node("a", labels={"disk": "ssd", "gen": "3"}),
    node("b", labels={"disk": "hdd", "gen": "10"}),
    node("c", labels={"gen": "old"}),
]

Spec = dict[str, Any]


def adding(**affinity: Any) -> NodeAffinity:
    return NodeAffinity(msgspec.convert({"addedAffinity": affinity}, NodeAffinityArgs), NO_HANDLE)


def expression(key: str, operator: str, *values: str) -> Spec:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def term(*expressions: Spec, fields: list[Spec] | None = None) -> Spec:
    return {"matchExpressions": list(expressions), "matchFields": fields or []}


def named(*values: str, operator: str = "In") -> Spec:
    return expression("metadata.name", operator, *values)


def requiring(*terms: Spec, **more: Any) -> Spec:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}, **more}


def preferring(*weighted: tuple[int, Spec]) -> Spec:
    terms = [{"weight": weight, "preference": preference} for weight, preference in weighted]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


def fitting(spec: Spec, plugin: NodeAffinity = PLUGIN) -> str:
    """The names of the nodes that are left, when the narrowing by name is not used."""
    nodes, cycle, incoming = table(*NODES), CycleState(), pod_info(**spec)
    plugin.pre_filter(cycle, incoming, nodes)
    rejected = statuses(plugin.filter(cycle, incoming, nodes), nodes)
    assert set(rejected.values()) <= {UNMATCHED, ENFORCED}
    assert rejected == statuses(plugin.filter(CycleState(), incoming, nodes), nodes), "pre_filter only saves work"
    return "".join(name for name in nodes.names if name not in rejected)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"nodeSelector": {"disk": "ssd"}}, "a", id="a node selector"),
        pytest.param({"nodeSelector": {"disk": "ssd", "gen": "10"}}, "", id="a node selector that no node meets whole"),
        pytest.param({"nodeSelector": {}}, "abc", id="an empty node selector"),
        pytest.param(requiring(term(expression("disk", "In", "ssd", "hdd"))), "ab", id="In"),
        pytest.param(requiring(term(expression("disk", "NotIn", "ssd"))), "bc", id="NotIn, also without the label"),
        pytest.param(requiring(term(expression("disk", "Exists"))), "ab", id="Exists"),
        pytest.param(requiring(term(expression("disk", "DoesNotExist"))), "c", id="DoesNotExist"),
        pytest.param(requiring(term(expression("gen", "Gt", "3"))), "b", id="Gt, as numbers, not as text"),
        pytest.param(requiring(term(expression("gen", "Lt", "4"))), "a", id="Lt, not for text"),
        pytest.param(
            requiring(term(expression("disk", "In", "ssd"), expression("gen", "In", "10"))), "", id="all of a term"
        ),
        pytest.param(
            requiring(term(expression("disk", "In", "ssd")), term(expression("gen", "In", "10"))), "ab", id="any term"
        ),
        pytest.param(
            requiring(term(expression("disk", "Exists")), nodeSelector={"gen": "3"}), "a", id="selector and affinity"
        ),
        pytest.param(requiring(), "", id="no terms, no nodes"),
        pytest.param(requiring(term()), "", id="an empty term matches nothing"),
        pytest.param(requiring(term(), term(expression("gen", "Exists"))), "abc", id="an empty term beside another"),
        pytest.param(requiring(term(fields=[named("b")])), "b", id="by name"),
        pytest.param(requiring(term(fields=[named("b", operator="NotIn")])), "ac", id="by other names"),
        pytest.param(requiring(term(expression("disk", "In", "ssd"), fields=[named("b")])), "", id="name and label"),
        pytest.param(
            requiring(term(fields=[named("a", "b")])), "", id="two names in one requirement are a validation error"
        ),
        pytest.param(
            requiring(term(fields=[expression("spec.x", "NotIn", "v")])), "abc", id="a field that nodes do not have"
        ),
        pytest.param(requiring(term(fields=[expression("spec.x", "In", "v")])), "", id="such a field wanted"),
    ],
)
def test_a_pod_goes_where_selector_and_affinity_allow(spec: Spec, expected: str) -> None:
    assert fitting(spec) == expected


MISTAKES = [
    pytest.param(expression("gen", "Gt", "three"), id="text under Gt"),
    pytest.param(expression("gen", "Gt", "1", "2"), id="two values under Gt"),
    pytest.param(expression("gen", "In"), id="no value under In"),
    pytest.param(expression("gen", "Exists", "x"), id="a value under Exists"),
    pytest.param(expression("gen", "Near", "x"), id="an unknown operator"),
]


@pytest.mark.parametrize("problem", MISTAKES)
def test_a_required_term_with_a_mistake_matches_nothing_and_spoils_nothing(problem: Spec) -> None:
    assert fitting(requiring(term(problem))) == ""
    assert fitting(requiring(term(problem), term(expression("disk", "In", "hdd")))) == "b"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, (SKIP, None), id="nothing required: skipped"),
        pytest.param(preferring((1, term(named("a")))), (SKIP, None), id="only preferred: skipped"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, (OK, None), id="a node selector"),
        pytest.param(requiring(), (OK, None), id="no terms"),
        pytest.param(requiring(term(fields=[named("a")])), (OK, {"a"}), id="one name"),
        pytest.param(requiring(term(fields=[named("zz")])), (OK, {"zz"}), id="a name that does not exist"),
        pytest.param(requiring(term(fields=[named("a")]), term(fields=[named("b")])), (OK, {"a", "b"}), id="two terms"),
        pytest.param(
            requiring(term(fields=[named("a")]), term(expression("disk", "Exists"))),
            (OK, None),
            id="one term names none",
        ),
        pytest.param(requiring(term(fields=[named("a")]), term()), (OK, None), id="an empty term names none"),
        pytest.param(requiring(term(fields=[named("a", operator="NotIn")])), (OK, None), id="NotIn does not narrow"),
        pytest.param(
            requiring(term(expression("disk", "Exists"), fields=[named("a")])), (OK, {"a"}), id="beside a label"
        ),
        pytest.param(
            requiring(term(fields=[named("a"), named("b")])),
            (Status.unresolvable("pod affinity terms conflict"), None),
            id="two names at once",
        ),
        pytest.param(
            requiring(term(fields=[named("a"), named("b")]), term(fields=[named("b")])),
            (OK, {"b"}),
            id="a conflict beside a good term",
        ),
    ],
)
def test_affinity_by_name_narrows_the_search(spec: Spec, expected: tuple[Status, set[str] | None]) -> None:
    result = PLUGIN.pre_filter(CycleState(), pod_info(**spec), table(*NODES))
    assert (result.status, result.node_names) == expected


def test_what_the_profile_adds_is_checked_first_and_has_its_own_reason() -> None:
    required = {"nodeSelectorTerms": [term(expression("disk", "Exists"))]}
    plugin = adding(requiredDuringSchedulingIgnoredDuringExecution=required)
    nodes, cycle, incoming = table(*NODES), CycleState(), pod_info(nodeSelector={"gen": "3"})
    assert plugin.pre_filter(cycle, incoming, nodes).status == OK
    assert statuses(plugin.filter(cycle, incoming, nodes), nodes) == {"b": UNMATCHED, "c": ENFORCED}
    assert fitting({}, plugin) == "ab"


def scores(spec: Spec, plugin: NodeAffinity = PLUGIN) -> tuple[list[int], list[int]]:
    """Raw and normalized."""
    nodes, cycle, incoming = table(*NODES), CycleState(), pod_info(**spec)
    assert plugin.pre_score(cycle, incoming, nodes) == OK
    raw = plugin.score(cycle, incoming, nodes)
    assert raw.tolist() == plugin.score(CycleState(), incoming, nodes).tolist(), "pre_score only saves work"
    return raw.tolist(), plugin.normalize_score(cycle, incoming, nodes, raw).tolist()


@pytest.mark.parametrize(
    ("spec", "raw", "normalized"),
    [
        pytest.param(preferring(), [0, 0, 0], [0, 0, 0], id="an empty list"),
        pytest.param(preferring((5, term(expression("disk", "In", "ssd")))), [5, 0, 0], [100, 0, 0], id="one term"),
        pytest.param(
            preferring((2, term(expression("disk", "Exists"))), (1, term(expression("gen", "Gt", "3")))),
            [2, 3, 0],
            [66, 100, 0],
            id="weights add up, and scale to the best",
        ),
        pytest.param(preferring((0, term(expression("gen", "Gt", "x")))), [0, 0, 0], [0, 0, 0], id="weight 0"),
        pytest.param(preferring((9, term())), [0, 0, 0], [0, 0, 0], id="an empty term"),
        pytest.param(preferring((3, term(fields=[named("b")]))), [0, 3, 0], [0, 100, 0], id="by name"),
    ],
)
def test_a_node_scores_the_weights_of_what_it_meets(spec: Spec, raw: list[int], normalized: list[int]) -> None:
    assert scores(spec) == (raw, normalized)


def test_what_the_profile_prefers_adds_to_the_pods_own_wishes() -> None:
    added = [{"weight": 4, "preference": term(expression("disk", "In", "hdd"))}]
    plugin = adding(preferredDuringSchedulingIgnoredDuringExecution=added)
    assert scores({}, plugin) == ([0, 4, 0], [0, 100, 0])
    assert scores(preferring((3, term(expression("disk", "Exists")))), plugin) == ([3, 7, 0], [42, 100, 0])


def test_a_pod_without_wishes_is_skipped() -> None:
    assert PLUGIN.pre_score(CycleState(), pod_info(), table(*NODES)) == SKIP
    assert PLUGIN.pre_score(CycleState(), pod_info(**requiring(term(named("a")))), table(*NODES)) == SKIP
    assert adding().pre_score(CycleState(), pod_info(), table(*NODES)) == SKIP


LABEL_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("weighted", "expected"),
    [
        pytest.param(
            [(1, term(expression("gen", "Gt", "three")))],
            "[0].matchExpressions[0].values[0]: Invalid value: \"three\": for 'Gt', 'Lt' operators, the value must be "
            "an integer",
            id="text under Gt",
        ),
        pytest.param(
            [
                (0, term(expression("gen", "Gt", "x"))),
                (1, term(expression("ok", "Exists"), expression("k", "In", "a b"))),
            ],
            f'[1].matchExpressions[1].values[0][k]: Invalid value: "a b": {LABEL_RULE}',
            id="a value that no label can have",
        ),
        pytest.param(
            [(1, term(expression("k", "In"))), (1, term(fields=[named("a", "b")]))],
            "[[0].matchExpressions[0].values: Invalid value: null: for 'in', 'notin' operators, values set can't be "
            'empty, [1].matchFields[0].values: Invalid value: ["a","b"]: must have one element]',
            id="two validation errors",
        ),
    ],
)
def test_a_mistake_in_a_preferred_term_is_an_error(weighted: list[tuple[int, Spec]], expected: str) -> None:
    incoming = pod_info(**preferring(*weighted))
    assert PLUGIN.pre_score(CycleState(), incoming, table(*NODES)) == Status.error(expected)


SSD, HDD = node("n", labels={"disk": "ssd"}), node("n", labels={"disk": "hdd"})
NEEDS_SSD: Spec = {"nodeSelector": {"disk": "ssd"}}


@pytest.mark.parametrize(
    ("spec", "old", "new", "expected"),
    [
        pytest.param(NEEDS_SSD, None, SSD, Hint.QUEUE, id="a matching node came"),
        pytest.param(NEEDS_SSD, None, HDD, Hint.SKIP, id="another node came"),
        pytest.param(NEEDS_SSD, HDD, SSD, Hint.QUEUE, id="a node matches now"),
        pytest.param(NEEDS_SSD, SSD, SSD, Hint.SKIP, id="a node matched before"),
        pytest.param(NEEDS_SSD, SSD, HDD, Hint.SKIP, id="a node matches no longer"),
        pytest.param(
            requiring(term(expression("disk", "Gt", "x"))), None, HDD, Hint.QUEUE, id="a term with a validation error"
        ),
        pytest.param(
            requiring(term(expression("disk", "Gt", "x")), **NEEDS_SSD), None, HDD, Hint.SKIP, id="the selector decides"
        ),
        pytest.param(
            requiring(term(expression("disk", "Gt", "x")), term(expression("disk", "In", "hdd"))),
            SSD,
            HDD,
            Hint.QUEUE,
            id="a validation error beside a term that matches now",
        ),
        pytest.param({}, None, None, Hint.QUEUE, id="something that cannot be, to be safe"),
    ],
)
def test_a_node_that_comes_to_match_is_worth_a_try(
    spec: Spec, old: Node | None, new: Node | None, expected: Hint
) -> None:
    [registered] = PLUGIN.events_to_register()
    assert registered.hint is not None
    assert registered.hint(pod_info(**spec), old, new) == expected


def test_a_node_that_the_profile_rules_out_is_not_worth_a_try() -> None:
    required = {"nodeSelectorTerms": [term(expression("disk", "In", "ssd"))]}
    [registered] = adding(requiredDuringSchedulingIgnoredDuringExecution=required).events_to_register()
    assert registered.hint is not None
    assert registered.hint(pod_info(), None, HDD) == Hint.SKIP
    assert registered.hint(pod_info(), None, SSD) == Hint.QUEUE
