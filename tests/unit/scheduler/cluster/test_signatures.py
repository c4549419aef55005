"""Which pods have the same signature, and what of a pod does not count for that."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.cluster import Cluster
from kubesched.testing import make
from kubesched.testing.make import Manifest


def _infos(*specs: Manifest) -> list[PodInfo]:
    signatures = Cluster().signatures
    pods = manifests.from_dicts([make.pod(f"p{i}", spec=spec) for i, spec in enumerate(specs)]).objects
    return [signatures.info(pod) for pod in pods if isinstance(pod, Pod)]


def _daemon(name: str, *expressions: Manifest, operator: str = "In", key: str = "metadata.name") -> Manifest:
    term: dict[str, Any] = {"matchFields": [{"key": key, "operator": operator, "values": [name]}]}
    if expressions:
        term["matchExpressions"] = list(expressions)
    required = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


DISK: Manifest = {"key": "disk", "operator": "In", "values": ["ssd"]}


def _or(one: Manifest, other: Manifest) -> Manifest:
    """Either term will do."""
    path = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    terms: list[Manifest] = []
    for spec in (one, other):
        found: Any = spec
        for key in path:
            found = found[key]
        terms += found
    required = {"nodeSelectorTerms": terms}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def _token(name: str) -> Manifest:
    return {"volumes": [{"name": name, "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]}


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param({}, {}, True, id="pods that differ in name only"),
        pytest.param(_daemon("a"), _daemon("b"), True, id="daemons of one set on different nodes"),
        pytest.param(_daemon("a", DISK), _daemon("b", DISK), True, id="with the same expressions beside"),
        pytest.param(_daemon("a", DISK), _daemon("a"), False, id="with other expressions beside"),
        pytest.param(_daemon("a", operator="NotIn"), _daemon("b", operator="NotIn"), False, id="not a pin: NotIn"),
        pytest.param(_or(_daemon("a"), _daemon("c")), _or(_daemon("b"), _daemon("c")), False, id="not a pin: or"),
        pytest.param(_token("kube-api-access-1"), _token("kube-api-access-2"), True, id="tokens of other names"),
        pytest.param(
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "one"}}]},
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "two"}}]},
            False,
            id="claims",
        ),
        pytest.param({"nodeName": "a"}, {"nodeName": "b"}, True, id="on different nodes"),
        pytest.param({"priority": 1}, {"priority": 2}, False, id="of different priority"),
    ],
)
def test_the_signature_is_the_same_if_pods_agree_in_what_counts(one: Manifest, other: Manifest, is_same: bool) -> None:
    first, second = _infos(one, other)
    assert (first.signature is second.signature) == is_same


@pytest.mark.parametrize(
    ("spec", "pin"),
    [
        pytest.param({}, "", id="no affinity"),
        pytest.param(_daemon("a"), "a", id="the one node that a field names"),
        pytest.param(_daemon("a", DISK), "a", id="also with expressions"),
        pytest.param(_daemon("a", operator="NotIn"), "", id="any node but one"),
        pytest.param(_or(_daemon("a"), _daemon("b")), "", id="one of two"),
    ],
)
def test_a_pod_is_pinned_by_the_field_of_its_only_term(spec: Manifest, pin: str) -> None:
    assert _infos(spec)[0].pin == pin


def test_the_pod_of_a_shape_is_not_pinned_but_keeps_the_rest() -> None:
    (info,) = _infos(_daemon("a", DISK))
    affinity = info.signature.pod.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    (term,) = required.node_selector_terms
    assert not term.match_fields
    assert term.match_expressions


def test_a_newer_state_of_a_pod_keeps_signature_and_pin() -> None:
    cluster = Cluster()
    first, second = (
        pod for pod in manifests.from_dicts([make.pod("p", spec=_daemon("a"))] * 2).objects if isinstance(pod, Pod)
    )
    known = cluster.signatures.info(first)
    newer = cluster.signatures.info_like(second, known, second.pod_key)
    assert newer.signature is known.signature
    assert newer.pin == "a"


@pytest.mark.parametrize(
    ("condition", "is_asked"),
    [
        pytest.param("PodScheduled", False, id="that of a binding does not count"),
        pytest.param("PodResizePending", True, id="that of a resize does"),
    ],
)
def test_a_condition_is_looked_at_only_where_it_changes_what_a_pod_requests(
    condition: str, is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = [make.pod("p"), make.pod("p", status={"conditions": [{"type": condition, "status": "True"}]})]
    before, after = (pod for pod in manifests.from_dicts(pods).objects if isinstance(pod, Pod))
    signatures = Cluster().signatures
    known = signatures.info(before)
    asked: list[Pod] = []

    def ask(pod: Pod, key: PodKey) -> PodInfo:
        asked.append(pod)
        return PodInfo(pod, known.signature, key)

    monkeypatch.setattr(signatures, "info", ask)
    assert signatures.info_like(after, known, after.pod_key).signature is known.signature
    assert asked == ([after] if is_asked else [])


def _volume_of(claim_name: str) -> Manifest:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}]}


def _device_of(claim_name: str) -> Manifest:
    return {"resourceClaims": [{"name": "d", "resourceClaimName": claim_name}]}


@pytest.mark.parametrize("of", [_volume_of, _device_of], ids=["volume", "device"])
def test_pods_that_differ_in_the_names_of_claims_have_a_signature_without_these_in_common(of: Any) -> None:
    one, other, same = _infos(of("a"), of("b"), of("a"))
    assert one.signature is same.signature
    assert one.signature is not other.signature
    assert one.signature.without_claims is other.signature.without_claims
    assert one.resources is other.resources


def test_a_signature_without_names_of_claims_is_the_one_in_common() -> None:
    plain, volume, device, made = _infos(
        {},
        _volume_of("a"),
        _device_of("a"),
        {"resourceClaims": [{"name": "d", "resourceClaimTemplateName": "a"}]},
    )
    assert plain.signature.without_claims is plain.signature
    assert made.signature.without_claims is made.signature
    assert len({info.signature.without_claims for info in (plain, volume, device, made)}) == 4
