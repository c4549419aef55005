"""InterPodAffinity: the index of terms finds every term that speaks of a pod, as groups of pods come and go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from crowds import Crowd, Json, node, pod

from kubesched.framework.pod_info import PodAffinityTerms
from kubesched.k8s.model.core import Pod
from kubesched.scheduler.plugins.inter_pod_affinity.terms import TermIndex, WeightedTerm

WEB: Json = {"matchLabels": {"app": "web"}}
WEB_OR_DB: Json = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db", "web"]}]}
FRONT_WEB: Json = {"matchLabels": {"app": "web", "tier": "front"}}
UNTIERED: Json = {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}


def existing(name: str, *selectors: Json | None) -> Pod:
    terms = [{"topologyKey": "zone", "labelSelector": selector} for selector in selectors]
    required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return pod(name, on="n", affinity=required)


def anti_terms(terms: PodAffinityTerms) -> Iterator[WeightedTerm]:
    return ((term, 1) for term in terms.required_anti)


def about(index: TermIndex, crowd: Crowd, incoming: Pod) -> list[str]:
    """The selectors of the terms that were found."""
    index.follow(crowd.nodes.pods.affinity_groups())
    return sorted(str(term.selector) for _, term, _ in index.about(crowd.info(incoming), {}))


FRONT = pod(labels={"app": "web", "tier": "front"})
BACK = pod(labels={"app": "web", "tier": "back"})
DATABASE = pod(labels={"app": "db"})
PLAIN = pod()


@pytest.mark.parametrize(
    ("incoming", "expected"),
    [
        pytest.param(FRONT, ["app in (db,web,web)", "app=web", "app=web,tier=front"], id="every label counts"),
        pytest.param(BACK, ["app in (db,web,web)", "app=web"], id="a term needs all that it asks for"),
        pytest.param(DATABASE, ["!tier", "app in (db,web,web)"], id="any of several values will do"),
        pytest.param(PLAIN, ["!tier"], id="terms that ask for no value are found without one"),
    ],
)
def test_each_term_that_speaks_of_the_pod_is_found_once(incoming: Pod, expected: list[str]) -> None:
    crowd = Crowd(node("n"), existing("one", WEB, WEB_OR_DB), existing("two", FRONT_WEB, UNTIERED, None))
    assert about(TermIndex(anti_terms), crowd, incoming) == expected


def test_the_index_follows_groups_that_come_and_go() -> None:
    index, crowd = TermIndex(anti_terms), Crowd(node("n"))
    first, second, twin = existing("first", WEB, WEB), existing("second", FRONT_WEB), existing("twin", WEB, WEB)
    assert about(index, crowd, FRONT) == []
    crowd.cluster.put(first)
    assert about(index, crowd, FRONT) == ["app=web", "app=web"]
    crowd.cluster.put(second)
    assert about(index, crowd, FRONT) == ["app=web", "app=web", "app=web,tier=front"]
    crowd.cluster.put(twin)
    crowd.cluster.remove(first)
    assert about(index, crowd, FRONT) == ["app=web", "app=web", "app=web,tier=front"]
    crowd.cluster.remove(twin)
    assert about(index, crowd, FRONT) == ["app=web,tier=front"]
    crowd.cluster.put(first)
    crowd.cluster.remove(second)
    assert about(index, crowd, FRONT) == ["app=web", "app=web"]
