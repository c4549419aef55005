"""InterPodAffinity: how preferred terms, the pod's own and those of others, score nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from crowds import HOST, ZONE, Crowd, Json, bare_node, namespace, node, pod, scores

from kubesched.framework import CycleState
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.config import InterPodAffinityArgs
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.scheduler.plugins.inter_pod_affinity.scoring import normalize

WEB = {"app": "web"}
DB = {"app": "db"}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
Score = tuple[int, int]


def term(labels: dict[str, str], key: str = ZONE, **fields: Any) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **fields}


def prefers(kind: str, *weighted: tuple[int, Json]) -> Json:
    return {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": item} for weight, item in weighted]}}


def near(*weighted: tuple[int, Json]) -> Json:
    return prefers("podAffinity", *weighted)


def away(*weighted: tuple[int, Json]) -> Json:
    return prefers("podAntiAffinity", *weighted)


def scored(incoming: Pod, *objects: KubeObject, args: InterPodAffinityArgs | None = None) -> dict[str, Score] | None:
    crowd = Crowd(*objects)
    return scores(InterPodAffinity(args or InterPodAffinityArgs(), crowd), crowd, incoming)


NODES = (node("a1", "a"), node("a2", "a"), node("b1", "b"), bare_node("none"))
WEB_ON_A1 = pod("web-1", labels=WEB, on="a1")
WEB_ON_A2 = pod("web-2", labels=WEB, on="a2")
WEB_ON_B1 = pod("web-3", labels=WEB, on="b1")


@pytest.mark.parametrize(
    ("affinity", "pods", "expected"),
    [
        pytest.param(
            near((5, term(WEB))),
            [WEB_ON_A1],
            {"a1": (5, 100), "a2": (5, 100), "b1": (0, 0), "none": (0, 0)},
            id="near a pod that it likes",
        ),
        pytest.param(
            away((5, term(WEB))),
            [WEB_ON_A1],
            {"a1": (-5, 0), "a2": (-5, 0), "b1": (0, 100), "none": (0, 100)},
            id="away from one it dislikes",
        ),
        pytest.param(
            near((5, term(WEB)), (2, term(WEB, HOST))),
            [WEB_ON_A1],
            {"a1": (7, 100), "a2": (5, 71), "b1": (0, 0), "none": (0, 0)},
            id="terms add up",
        ),
        pytest.param(
            near((5, term(WEB))),
            [WEB_ON_A1, WEB_ON_A2, WEB_ON_B1],
            {"a1": (10, 100), "a2": (10, 100), "b1": (5, 50), "none": (0, 0)},
            id="pods add up",
        ),
        pytest.param(
            {**near((5, term(WEB))), **away((5, term(WEB)))},
            [WEB_ON_A1],
            {"a1": (0, 0), "a2": (0, 0), "b1": (0, 0), "none": (0, 0)},
            id="terms that cancel out still score",
        ),
        pytest.param(near((5, term(DB))), [WEB_ON_A1], None, id="nobody that it likes"),
        pytest.param(near((5, term(WEB, "rack"))), [WEB_ON_A1], None, id="nobody in such a topology"),
        pytest.param(near((5, term(WEB, namespaces=["x"]))), [WEB_ON_A1], None, id="nobody in such a namespace"),
    ],
)
def test_a_node_scores_by_the_pods_around_it(
    affinity: Json, pods: list[Pod], expected: dict[str, Score] | None
) -> None:
    assert scored(pod(labels=DB, affinity=affinity), *NODES, *pods) == expected


def liking(affinity: Json, on: str = "a1") -> Pod:
    return pod(f"liking-{on}", labels=WEB, on=on, affinity=affinity)


ZONE_A_5 = {"a1": (5, 100), "a2": (5, 100), "b1": (0, 0), "none": (0, 0)}
ZONE_A_MINUS_5 = {"a1": (-5, 0), "a2": (-5, 0), "b1": (0, 100), "none": (0, 100)}
TEAM_X = {"matchLabels": {"team": "x"}}
TEAM_Y = {"matchLabels": {"team": "y"}}


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(near((5, term(DB))), ZONE_A_5, id="it likes this pod"),
        pytest.param(away((5, term(DB))), ZONE_A_MINUS_5, id="it dislikes this pod"),
        pytest.param({"podAffinity": {REQUIRED: [term(DB)]}}, ZONE_A_5, id="it must be near such a pod"),
        pytest.param({"podAntiAffinity": {REQUIRED: [term(DB)]}}, None, id="who must be away from it scores nothing"),
        pytest.param(near((5, term(WEB))), None, id="it likes others"),
        pytest.param(near((5, term(DB, namespaceSelector=TEAM_X))), ZONE_A_5, id="it likes pods of such a namespace"),
        pytest.param(near((5, term(DB, namespaceSelector=TEAM_Y))), None, id="it likes pods of other namespaces"),
    ],
)
def test_what_other_pods_prefer_counts_as_well(affinity: Json, expected: dict[str, Score] | None) -> None:
    args = InterPodAffinityArgs(hard_pod_affinity_weight=5)
    objects = (*NODES, namespace("default", team="x"), liking(affinity))
    assert scored(pod(labels=DB), *objects, args=args) == expected


def test_the_weight_of_required_affinity_may_be_zero() -> None:
    args = InterPodAffinityArgs(hard_pod_affinity_weight=0)
    assert scored(pod(labels=DB), *NODES, liking({"podAffinity": {REQUIRED: [term(DB)]}}), args=args) is None


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        pytest.param(None, None, id="not for a pod without preferences"),
        pytest.param({"podAffinity": {REQUIRED: [term(WEB)]}}, None, id="not for a pod that only requires"),
        pytest.param(
            near((1, term(WEB))),
            {"a1": (6, 100), "a2": (6, 100), "b1": (0, 0), "none": (0, 0)},
            id="for a pod with preferences they do",
        ),
    ],
)
def test_preferences_of_others_can_be_ignored(affinity: Json | None, expected: dict[str, Score] | None) -> None:
    args = InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True)
    assert scored(pod(labels=DB, affinity=affinity), *NODES, liking(near((5, term(DB)))), args=args) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param([3, 3], [0, 0], id="all alike"),
        pytest.param([-10, 0, 20], [0, 33, 100], id="from the lowest to the highest, cut to whole numbers"),
        pytest.param([0, 29, 50], [0, 57, 100], id="divided before multiplied, as floating point has it"),
        pytest.param([7], [0], id="a single node"),
    ],
)
def test_scores_are_stretched_over_the_range_that_occurs(raw: list[int], expected: list[int]) -> None:
    assert normalize(np.array(raw)).tolist() == expected


def test_terms_that_cannot_be_understood_are_an_error() -> None:
    crowd = Crowd(*NODES)
    broken = {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [{"key": "k", "operator": "Like"}]}}
    info = crowd.info(pod(affinity=away((1, broken))))
    found = InterPodAffinity(None, crowd).pre_score(CycleState(), info, crowd.nodes)
    message = 'failed to parse pod: preferredAntiAffinityTerms: "Like" is not a valid label selector operator'
    assert (found.code.value, found.message) == ("Error", message)


def test_the_score_without_its_preparation_is_an_error() -> None:
    crowd = Crowd(*NODES)
    with pytest.raises(LookupError, match=r'^failed to read "PreScoreInterPodAffinity" from cycleState: not found$'):
        InterPodAffinity(None, crowd).score(CycleState(), crowd.info(pod()), crowd.nodes)
