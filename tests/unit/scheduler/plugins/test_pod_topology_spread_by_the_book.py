"""PodTopologySpread on tables says what the rule says node by node, whatever the cluster and what is added to it."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import msgspec
from crowds import HOST, ZONE, Crowd, Json, node, pod, reasons, scores
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kubesched.framework import CycleState
from kubesched.k8s.model.core import Node, Pod, TopologySpreadConstraint
from kubesched.k8s.model.selectors import from_label_selector
from kubesched.k8s.model.taints import find_untolerated
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread

WEB, DB = {"app": "web"}, {"app": "db"}
TAINTS = [{"key": "k", "effect": "NoSchedule"}]
SKEWED = "Unschedulable: node(s) didn't match pod topology spread constraints"
UNLABELLED = (
    "UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints (missing required label)"
)
SELECTORS: list[Json | None] = [
    {"matchLabels": WEB},
    {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
    {},
    None,
]

# -- What may come -----------------------------------------------------------------------------------------------------

drawn_nodes = st.lists(
    st.tuples(
        st.sampled_from([None, "", "a", "b", "c"]), st.sampled_from([None, "r", "s"]), st.sampled_from([[], TAINTS])
    ),
    min_size=2,
    max_size=7,
)
drawn_pods = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from([WEB, WEB, DB, {}]), st.sampled_from(["default", "x"]), st.booleans()),
    min_size=3,
    max_size=16,
)
drawn_constraints = st.lists(
    st.fixed_dictionaries(
        {
            "topologyKey": st.sampled_from([ZONE, "rack", HOST]),
            "maxSkew": st.integers(1, 3),
            "labelSelector": st.sampled_from(SELECTORS),
            "nodeAffinityPolicy": st.sampled_from([None, "Honor", "Ignore"]),
            "nodeTaintsPolicy": st.sampled_from([None, "Honor", "Ignore"]),
            "minDomains": st.sampled_from([None, 1, 2, 4]),
        }
    ),
    min_size=1,
    max_size=3,
)


def make_nodes(drawn: list[tuple[str | None, str | None, list[Json]]]) -> list[Node]:
    return [
        node(f"n{i}", zone, labels={} if rack is None else {"rack": rack}, taints=taints)
        for i, (zone, rack, taints) in enumerate(drawn)
    ]


def make_pods(drawn: list[tuple[int, dict[str, str], str, bool]], n_nodes: int) -> list[Pod]:
    return [
        pod(f"p{i}", labels=labels, namespace=namespace, terminating=terminating, on=f"n{number % n_nodes}")
        for i, (number, labels, namespace, terminating) in enumerate(drawn)
    ]


def make_incoming(constraints: list[Json], action: str, zone: str | None) -> Pod:
    given_constraints = [{**constraint, "whenUnsatisfiable": action} for constraint in constraints]
    selector = None if zone is None else {ZONE: zone}
    return pod("incoming", labels=WEB, topologySpreadConstraints=given_constraints, nodeSelector=selector)


# -- The rule, one node at a time --------------------------------------------------------------------------------------


class ByTheBook:
    """Counts pods one by one, for one constraint."""

    def __init__(self, incoming: Pod, constraint: TopologySpreadConstraint, nodes: list[Node], pods: list[Pod]) -> None:
        self.key = constraint.topology_key
        self.constraint = constraint
        self.selector = from_label_selector(constraint.label_selector)
        keys = {c.topology_key for c in incoming.spec.topology_spread_constraints or ()}
        self.counted = [n for n in nodes if keys <= n.labels.keys() and self._is_included(incoming, n)]
        self.counts: Counter[str] = Counter()
        for each in self.counted:
            self.counts[each.labels[self.key]] += self.on(each, pods)

    def on(self, each: Node, pods: list[Pod]) -> int:
        here = [p for p in pods if p.spec.node_name == each.name and p.namespace == "default" and not p.is_terminating]
        return 0 if self.selector.is_everything else sum(self.selector.matches(p.labels) for p in here)

    def change(self, changed: Pod, at: Node, by: int) -> None:
        if at in self.counted and changed.namespace == "default" and self.selector.matches(changed.labels):
            self.counts[at.labels[self.key]] += by

    def reason(self, each: Node) -> str | None:
        if self.key not in each.labels:
            return UNLABELLED
        domains = {n.labels[self.key] for n in self.counted}
        enough = len(domains) >= (self.constraint.min_domains or 1)
        lowest = min(self.counts[domain] for domain in domains) if enough else 0
        skew = self.counts[each.labels[self.key]] + self.selector.matches(WEB) - lowest
        return SKEWED if skew > self.constraint.max_skew else None

    def _is_included(self, incoming: Pod, each: Node) -> bool:
        wanted = incoming.spec.node_selector or {}
        if self.constraint.node_affinity_policy != "Ignore" and not wanted.items() <= each.labels.items():
            return False
        honors_taints = self.constraint.node_taints_policy == "Honor"
        return not honors_taints or find_untolerated(each.spec.taints or (), ()) is None


def books(incoming: Pod, nodes: list[Node], pods: list[Pod]) -> list[ByTheBook]:
    return [ByTheBook(incoming, c, nodes, pods) for c in incoming.spec.topology_spread_constraints or ()]


def reasons_by_the_book(rules: list[ByTheBook], nodes: list[Node]) -> dict[str, str]:
    found = {n.name: next((r for rule in rules if (r := rule.reason(n)) is not None), None) for n in nodes}
    return {name: reason for name, reason in found.items() if reason is not None}


def raw_scores_by_the_book(rules: list[ByTheBook], pods: list[Pod], feasible: list[Node]) -> dict[str, int]:
    keys = {rule.key for rule in rules}
    scored = [n for n in feasible if keys <= n.labels.keys()]
    found = dict.fromkeys((n.name for n in feasible), 0)
    for each in scored:
        total = 0.0
        for rule in rules:
            n_domains = len({n.labels[rule.key] for n in scored})
            count = rule.on(each, pods) if rule.key == HOST else rule.counts[each.labels[rule.key]]
            total += (
                count * math.log((len(scored) if rule.key == HOST else n_domains) + 2) + rule.constraint.max_skew - 1
            )
        found[each.name] = math.floor(total + 0.5)
    return found


# -- The two agree -----------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(drawn_nodes, drawn_pods, drawn_constraints, st.sampled_from([None, None, "a"]), drawn_pods)
def test_the_filter_goes_by_the_book(
    given_nodes: Any, given_pods: Any, constraints: list[Json], zone: str | None, changes: Any
) -> None:
    nodes = make_nodes(given_nodes)
    pods = make_pods(given_pods, len(nodes))
    incoming = make_incoming(constraints, "DoNotSchedule", zone)
    crowd, rules = Crowd(*nodes, *pods), books(incoming, nodes, pods)
    plugin, cycle, info = PodTopologySpread(None, crowd), CycleState(), crowd.info(incoming)
    plugin.pre_filter(cycle, info, crowd.nodes)
    before = reasons(plugin.filter(cycle, info, crowd.nodes), crowd.nodes)
    assert before == reasons_by_the_book(rules, nodes)
    event(f"{len(set(before.values()))} kinds of reasons, {'some' if len(before) < len(nodes) else 'no'} nodes left")

    added = [msgspec.structs.replace(p) for p in make_pods(changes, len(nodes))]
    for change in added:
        row = crowd.nodes.row_of(change.spec.node_name)
        assert row is not None
        plugin.add_pod(cycle, info, crowd.info(change), crowd.nodes.at(row))
        for rule in rules:
            rule.change(change, nodes[row], +1)
        assert reasons(plugin.filter(cycle, info, crowd.nodes), crowd.nodes) == reasons_by_the_book(rules, nodes)
    for change in added:
        row = crowd.nodes.row_of(change.spec.node_name)
        assert row is not None
        plugin.remove_pod(cycle, info, crowd.info(change), crowd.nodes.at(row))
    assert reasons(plugin.filter(cycle, info, crowd.nodes), crowd.nodes) == before


@settings(deadline=None, max_examples=60)
@given(drawn_nodes, drawn_pods, drawn_constraints, st.sampled_from([None, None, "a"]), st.data())
def test_the_score_goes_by_the_book(
    given_nodes: Any, given_pods: Any, constraints: list[Json], zone: str | None, data: st.DataObject
) -> None:
    nodes = make_nodes(given_nodes)
    pods = make_pods(given_pods, len(nodes))
    incoming = make_incoming(constraints, "ScheduleAnyway", zone)
    feasible = sorted(data.draw(st.sets(st.integers(0, len(nodes) - 1), min_size=1)))
    crowd, rules = Crowd(*nodes, *pods), books(incoming, nodes, pods)
    found = scores(PodTopologySpread(None, crowd), crowd, incoming, feasible)
    assert found is not None
    raw = raw_scores_by_the_book(rules, pods, [nodes[i] for i in feasible])
    assert {name: score[0] for name, score in found.items()} == raw
    assert all(0 <= normalized <= 100 for _, normalized in found.values())
    event(f"{len(set(raw.values()))} different scores")
