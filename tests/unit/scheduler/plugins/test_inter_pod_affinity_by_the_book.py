"""InterPodAffinity on tables says what the rule says pod by pod, whatever the cluster and whatever is added to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from crowds import HOST, ZONE, Crowd, Json, namespace, node, pod, reasons, scores
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kubesched.framework import AffinityTerm, CycleState
from kubesched.framework.pod_info import compile_pod_affinity
from kubesched.k8s.model.core import Node, Pod
from kubesched.scheduler.config import InterPodAffinityArgs
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity

ALONE = "UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules"
REPELLED = "Unschedulable: node(s) didn't match pod anti-affinity rules"
UNWELCOME = "Unschedulable: node(s) didn't satisfy existing pods anti-affinity rules"
NAMESPACES = {"default": {"team": "x"}, "one": {"team": "y"}, "two": {}}
WEB, DB = {"app": "web"}, {"app": "db", "tier": "back"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

# -- What may come -----------------------------------------------------------------------------------------------------

selectors: list[Json | None] = [
    {"matchLabels": {"app": "web"}},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db", "web"]}]},
    {"matchLabels": {"app": "db", "tier": "back"}},
    {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
    {},
    None,
]
namespace_selectors: list[Json | None] = [
    {},
    {"matchLabels": {"team": "y"}},
    {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["y"]}]},
]
drawn_term = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from([ZONE, HOST, "rack"]), "labelSelector": st.sampled_from(selectors)},
    optional={
        "namespaces": st.sampled_from([["one"], ["default", "two"]]),
        "namespaceSelector": st.sampled_from(namespace_selectors),
    },
)
drawn_terms = st.lists(drawn_term, max_size=2)
drawn_weighted = st.lists(
    st.fixed_dictionaries({"weight": st.integers(1, 100), "podAffinityTerm": drawn_term}), max_size=2
)
drawn_affinity = st.fixed_dictionaries(
    {
        "podAffinity": st.fixed_dictionaries({REQUIRED: drawn_terms, PREFERRED: drawn_weighted}),
        "podAntiAffinity": st.fixed_dictionaries({REQUIRED: drawn_terms, PREFERRED: drawn_weighted}),
    }
)
drawn_labels = st.sampled_from([WEB, DB, {}])
drawn_incoming = st.builds(pod, st.just("incoming"), labels=drawn_labels, affinity=drawn_affinity)
drawn_nodes = st.lists(
    st.tuples(st.sampled_from([None, "", "a", "b"]), st.sampled_from([None, "r", "s"])), min_size=1, max_size=6
)
drawn_pods = st.lists(
    st.tuples(
        st.integers(0, 5),
        drawn_labels,
        st.sampled_from([*NAMESPACES, "unknown"]),
        st.none() | drawn_affinity,
    ),
    min_size=2,
    max_size=8,
)


def make_nodes(drawn: list[tuple[str | None, str | None]]) -> list[Node]:
    return [node(f"n{i}", zone, labels={} if rack is None else {"rack": rack}) for i, (zone, rack) in enumerate(drawn)]


def make_pods(drawn: list[tuple[int, dict[str, str], str, Json | None]], n_nodes: int) -> list[Pod]:
    return [
        pod(f"p{i}", labels=labels, namespace=where, affinity=affinity, on=f"n{number % n_nodes}")
        for i, (number, labels, where, affinity) in enumerate(drawn)
    ]


def make_crowd(nodes: list[Node], pods: list[Pod]) -> Crowd:
    return Crowd(*nodes, *pods, *(namespace(name, **labels) for name, labels in NAMESPACES.items()))


# -- The rule, one pod at a time ---------------------------------------------------------------------------------------


def speaks_of(term: AffinityTerm, other: Pod, *, incoming: bool) -> bool:
    """Terms of the incoming pod ask an unlabelled namespace in the place of namespaces that are not known."""
    labels = NAMESPACES.get(other.namespace, {})
    selector = term.namespace_selector
    in_scope = other.namespace in term.namespaces or selector.matches(labels) or (incoming and selector.matches({}))
    return in_scope and term.selector.matches(other.labels)


def share(key: str, one: Node, other: Node) -> bool:
    return key in one.labels and one.labels.get(key) == other.labels.get(key)


class ByTheBook:
    def __init__(self, incoming: Pod, nodes: list[Node], pods: list[Pod]) -> None:
        self.incoming = incoming
        self.terms = compile_pod_affinity(incoming)
        self.nodes = {each.name: each for each in nodes}
        self.pods = list(pods)

    def reason(self, at: Node) -> str | None:
        if self._is_alone(at):
            return ALONE
        if any(self._meets(at, term, other) for term in self.terms.required_anti for other in self.pods):
            return REPELLED
        minding = any(
            speaks_of(term, self.incoming, incoming=False) and share(term.topology_key, self._node(other), at)
            for other in self.pods
            for term in compile_pod_affinity(other).required_anti
        )
        return UNWELCOME if minding else None

    def _is_alone(self, at: Node) -> bool:
        terms = self.terms.required
        if any(term.topology_key not in at.labels for term in terms):
            return True
        company = [p for p in self.pods if all(speaks_of(term, p, incoming=True) for term in terms)]
        if all(any(share(t.topology_key, self._node(p), at) for p in company) for t in terms):
            return False
        nobody = not any(t.topology_key in self._node(p).labels for p in company for t in terms)
        return not (nobody and all(speaks_of(term, self.incoming, incoming=True) for term in terms))

    def raw_score(self, at: Node, hard_weight: int) -> int:
        return sum(weight for key, where, weight in self.preferences(hard_weight) if share(key, where, at))

    def preferences(self, hard_weight: int) -> Iterable[tuple[str, Node, int]]:
        """Topology key, node and weight of whatever is liked or disliked."""
        for other in self.pods:
            where, theirs = self._node(other), compile_pod_affinity(other)
            own = [(t, t.weight) for t in self.terms.preferred] + [(t, -t.weight) for t in self.terms.preferred_anti]
            yield from ((t.topology_key, where, w) for t, w in own if speaks_of(t, other, incoming=True))
            others = [(t, t.weight) for t in theirs.preferred] + [(t, -t.weight) for t in theirs.preferred_anti]
            others += [(t, hard_weight) for t in theirs.required if hard_weight]
            yield from ((t.topology_key, where, w) for t, w in others if speaks_of(t, self.incoming, incoming=False))

    def _meets(self, at: Node, term: AffinityTerm, other: Pod) -> bool:
        return speaks_of(term, other, incoming=True) and share(term.topology_key, self._node(other), at)

    def _node(self, of_pod: Pod) -> Node:
        return self.nodes[of_pod.spec.node_name]

    def reasons(self) -> dict[str, str]:
        found = {each.name: self.reason(each) for each in self.nodes.values()}
        return {name: reason for name, reason in found.items() if reason is not None}


# -- The two agree -----------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(drawn_nodes, drawn_pods, drawn_incoming, drawn_pods)
def test_the_filter_goes_by_the_book(given_nodes: Any, given_pods: Any, incoming: Pod, changes: Any) -> None:
    nodes = make_nodes(given_nodes)
    pods = make_pods(given_pods, len(nodes))
    crowd, book = make_crowd(nodes, pods), ByTheBook(incoming, nodes, pods)
    plugin, cycle, info = InterPodAffinity(None, crowd), CycleState(), crowd.info(incoming)
    if plugin.pre_filter(cycle, info, crowd.nodes).status.is_skip:
        assert book.reasons() == {}
        return
    before = reasons(plugin.filter(cycle, info, crowd.nodes), crowd.nodes)
    assert before == book.reasons()
    event(f"reasons: {sorted(Counter(before.values()))}")

    added = make_pods(changes, len(nodes))
    for change in added:
        row = crowd.nodes.row_of(change.spec.node_name)
        assert row is not None
        plugin.add_pod(cycle, info, crowd.info(change), crowd.nodes.at(row))
        book.pods.append(change)
        assert reasons(plugin.filter(cycle, info, crowd.nodes), crowd.nodes) == book.reasons()
    for change in added:
        row = crowd.nodes.row_of(change.spec.node_name)
        assert row is not None
        plugin.remove_pod(cycle, info, crowd.info(change), crowd.nodes.at(row))
    assert reasons(plugin.filter(cycle, info, crowd.nodes), crowd.nodes) == before


@settings(deadline=None, max_examples=60)
@given(drawn_nodes, drawn_pods, drawn_incoming, st.sampled_from([0, 1, 50]))
def test_the_score_goes_by_the_book(given_nodes: Any, given_pods: Any, incoming: Pod, hard_weight: int) -> None:
    nodes = make_nodes(given_nodes)
    pods = make_pods(given_pods, len(nodes))
    crowd, book = make_crowd(nodes, pods), ByTheBook(incoming, nodes, pods)
    args = InterPodAffinityArgs(hard_pod_affinity_weight=hard_weight)
    found = scores(InterPodAffinity(args, crowd), crowd, incoming)
    if found is None:
        assert not any(key in where.labels for key, where, _ in book.preferences(hard_weight))
        return
    assert {name: score[0] for name, score in found.items()} == {n.name: book.raw_score(n, hard_weight) for n in nodes}
    assert all(0 <= normalized <= 100 for _, normalized in found.values())
    event(f"{len(set(found.values()))} different scores")
