"""NodeAffinity asks whole tables; asked node by node, the same selector must give the same answers."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st
from small_clusters import node, table

from kubesched.k8s.model import selectors
from kubesched.k8s.model.core import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.scheduler.plugins.node_affinity import PreferredNodeAffinity, RequiredNodeAffinity, named_nodes

KEYS = st.sampled_from(["disk", "gen", "metadata.name"])
VALUES = st.sampled_from(["", "ssd", "3", "-4", "+5", "n1", "n2", "99999999999999999999"])
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"])
LABELS = st.dictionaries(KEYS, VALUES, max_size=3)

REQUIREMENTS = st.builds(NodeSelectorRequirement, KEYS, OPERATORS, st.none() | st.lists(VALUES, max_size=2).map(tuple))
FIELDS = st.builds(
    NodeSelectorRequirement,
    st.sampled_from(["metadata.name", "spec.unschedulable"]),
    st.sampled_from(["In", "NotIn", "Exists"]),
    st.lists(VALUES, min_size=1, max_size=2).map(tuple),
)
TERMS = st.builds(
    NodeSelectorTerm,
    st.none() | st.lists(REQUIREMENTS, max_size=2).map(tuple),
    st.none() | st.lists(FIELDS, max_size=2).map(tuple),
)
NODES = st.lists(LABELS, max_size=5).map(lambda found: [node(f"n{i}", labels=labels) for i, labels in enumerate(found)])


@given(NODES, st.lists(TERMS, max_size=3), st.none() | LABELS)
def test_required_affinity_of_a_table_is_that_of_its_nodes(
    nodes: list[Node], terms: list[NodeSelectorTerm], node_selector: dict[str, str] | None
) -> None:
    selector = NodeSelector(tuple(terms))
    required = RequiredNodeAffinity(selectors.from_labels(node_selector), selectors.from_node_selector(selector))
    matched = required.on_table(table(*nodes)).tolist()
    assert matched == [required.on_node(each) for each in nodes]
    event(f"some match: {any(matched)}, some do not: {not all(matched)}")


@given(NODES, st.lists(TERMS, max_size=3))
def test_no_node_outside_the_narrowed_search_could_match(nodes: list[Node], terms: list[NodeSelectorTerm]) -> None:
    selector = NodeSelector(tuple(terms))
    names = named_nodes(selector)
    event(f"narrowed: {names is not None}")
    if names is not None:
        matching = {each.name for each in nodes if selectors.from_node_selector(selector).matches(each)}
        assert matching <= names


@given(NODES, st.lists(st.tuples(TERMS, st.integers(1, 100)), max_size=3))
def test_preferred_affinity_of_a_table_is_that_of_its_nodes(
    nodes: list[Node], weighted: list[tuple[NodeSelectorTerm, int]]
) -> None:
    compiled = tuple((selectors.compile_node_term(term), weight) for term, weight in weighted)
    expected = [sum(weight for term, weight in compiled if term.matches(each.labels, each.name)) for each in nodes]
    assert PreferredNodeAffinity(compiled).on_table(table(*nodes)).tolist() == expected
