"""What belongs to others: deleted with them, before them, or left behind; and namespaces, emptied."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from recording_api import RecordingApi

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import ObjectMeta, OwnerReference
from kubesched.playground.controllers.cluster_view import ClusterView
from kubesched.playground.controllers.controller import ControllerContext, PlanWriter
from kubesched.playground.controllers.garbage_collector import FOREGROUND, ORPHAN, GarbageCollector
from kubesched.playground.controllers.kinds import DiscoveredKinds, NamespacePhase
from kubesched.playground.controllers.namespace_controllers import NamespaceController

PODS = {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["list", "delete", "watch", "deletecollection"]}
OWNER = "/api/v1/namespaces/d/pods/owner"
DEPENDENT = "/api/v1/namespaces/d/pods/dependent"


class _Yard:
    def __init__(self) -> None:
        self.api = RecordingApi()
        self.api.answers = {"/apis": {"groups": []}, "/api/v1": {"resources": [PODS]}}
        self.view = ClusterView()
        self.context = ControllerContext(self.view, PlanWriter(self.api, self.view))
        self.kinds = DiscoveredKinds(self.api, lambda: 0.0)
        self.collector = GarbageCollector(self.context, self.kinds)

    def look_at(self, uid: str) -> list[tuple[str, str]]:
        asyncio.run(self.collector.reconcile(uid))
        return self.api.written()


def _pod(name: str, *owners: str, finalizer: str = "", blocks: bool = True) -> Pod:
    references = tuple(OwnerReference("Pod", owner, f"u-{owner}", "v1", True, blocks) for owner in owners)
    metadata = ObjectMeta(
        name=name,
        namespace="d",
        uid=f"u-{name}",
        resource_version="1",
        owner_references=references or None,
        finalizers=(finalizer,) if finalizer else None,
        deletion_timestamp="2026-01-01T00:00:00Z" if finalizer else None,
    )
    return Pod(metadata)


def test_an_object_without_any_owner_left_is_deleted() -> None:
    yard = _Yard()
    yard.view.put(_pod("dependent", "owner"))
    assert yard.look_at("u-dependent") == [("DELETE", DEPENDENT)]


def test_an_owner_that_is_not_known_here_is_asked_for_first() -> None:
    yard = _Yard()
    yard.view.put(_pod("dependent", "owner"))
    yard.api.answers[OWNER] = {"metadata": {"name": "owner", "uid": "u-owner"}}
    assert yard.look_at("u-dependent") == []


def test_a_namesake_of_the_owner_is_not_the_owner() -> None:
    yard = _Yard()
    yard.view.put(_pod("dependent", "owner"))
    yard.api.answers[OWNER] = {"metadata": {"name": "owner", "uid": "another"}}
    assert yard.look_at("u-dependent") == [("DELETE", DEPENDENT)]


def test_an_object_with_an_owner_left_only_loses_the_reference() -> None:
    yard = _Yard()
    yard.view.put(_pod("stays"))
    yard.view.put(_pod("dependent", "owner", "stays"))
    assert yard.look_at("u-dependent") == [("PATCH", DEPENDENT)]
    patch: dict[str, Any] = yard.api.asked[-1][2]
    assert patch == {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "u-owner"}]}}


def test_in_the_foreground_dependents_go_first() -> None:
    yard = _Yard()
    owner, dependent = _pod("owner", finalizer=FOREGROUND), _pod("dependent", "owner")
    yard.view.put(owner)
    yard.view.put(dependent)
    assert set(yard.collector.concerned(None, owner)) == {"u-owner", "u-dependent"}
    assert yard.look_at("u-owner") == []  # the dependent blocks it
    assert yard.look_at("u-dependent") == [("DELETE", DEPENDENT)]
    assert "u-owner" in yard.collector.concerned(dependent, None)
    assert yard.look_at("u-owner")[1:] == [("PATCH", OWNER)]
    assert yard.api.asked[-1][2]["metadata"]["finalizers"] == []


def test_a_dependent_that_does_not_block_is_not_waited_for() -> None:
    yard = _Yard()
    yard.view.put(_pod("owner", finalizer=FOREGROUND))
    yard.view.put(_pod("dependent", "owner", blocks=False))
    assert yard.look_at("u-owner") == [("PATCH", OWNER)]


def test_a_dependent_with_another_owner_outlives_one_that_goes() -> None:
    yard = _Yard()
    yard.view.put(_pod("owner", finalizer=FOREGROUND))
    yard.view.put(_pod("stays"))
    before = _pod("dependent", "owner", "stays")
    yard.view.put(before)
    assert yard.look_at("u-dependent") == [("PATCH", DEPENDENT)]
    patch: dict[str, Any] = yard.api.asked[-1][2]
    assert patch == {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "u-owner"}]}}
    assert list(yard.collector.concerned(before, _pod("dependent", "stays"))) == ["u-owner"]  # it may be alone now


def test_a_circle_is_broken_where_it_is_looked_at() -> None:
    yard = _Yard()
    yard.view.put(_pod("owner", "dependent", finalizer=FOREGROUND))
    yard.view.put(_pod("dependent", "owner"))
    assert yard.look_at("u-dependent") == [("PATCH", DEPENDENT), ("DELETE", DEPENDENT)]
    unblocked: dict[str, Any] = yard.api.asked[-2][2]["metadata"]
    assert [one["blockOwnerDeletion"] for one in unblocked["ownerReferences"]] == [False]
    assert yard.api.asked[-1][2]["propagationPolicy"] == "Foreground"


def test_an_owner_in_another_namespace_is_none() -> None:
    yard = _Yard()
    yard.view.put(msgspec.structs.replace(_pod("owner"), metadata=ObjectMeta("owner", "far", "u-owner", "1")))
    yard.view.put(_pod("dependent", "owner"))
    assert yard.look_at("u-dependent") == [("DELETE", DEPENDENT)]


def test_orphans_stay_and_lose_the_reference() -> None:
    yard = _Yard()
    yard.view.put(_pod("owner", finalizer=ORPHAN))
    yard.view.put(_pod("dependent", "owner"))
    assert yard.look_at("u-owner") == [("PATCH", DEPENDENT), ("PATCH", OWNER)]


def test_pods_leave_a_namespace_before_everything_else() -> None:
    yard = _Yard()
    config_maps = {"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["list", "delete", "watch"]}
    yard.api.answers["/api/v1"] = {"resources": [config_maps, PODS]}
    controller = NamespaceController(yard.context, yard.kinds)
    metadata = ObjectMeta(name="d", uid="u", resource_version="3", deletion_timestamp="2026-01-01T00:00:00Z")
    yard.view.put(NamespacePhase(metadata, {"finalizers": ["kubernetes"]}))
    pods, maps = "/api/v1/namespaces/d/pods", "/api/v1/namespaces/d/configmaps"
    held = {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}
    yard.api.answers |= {pods: {"items": [{"metadata": held}]}, maps: {"items": [{"metadata": {"name": "m"}}]}}
    assert asyncio.run(controller.reconcile("d")) is not None
    told = {one["type"]: one for one in yard.api.asked[-1][2]["status"]["conditions"]}
    assert told["NamespaceFinalizersRemaining"]["message"].endswith("remaining: a/b in 1 resource instances")
    assert ("DELETE", f"{maps}/m") not in yard.api.written()
    yard.api.answers[pods] = {"items": []}
    asyncio.run(controller.reconcile("d"))
    assert ("DELETE", f"{maps}/m") in yard.api.written()


def test_a_namespace_is_emptied_and_then_let_go() -> None:
    yard = _Yard()
    controller = NamespaceController(yard.context, yard.kinds)
    metadata = ObjectMeta(name="d", uid="u", resource_version="3", deletion_timestamp="2026-01-01T00:00:00Z")
    yard.view.put(NamespacePhase(metadata, {"finalizers": ["kubernetes"]}))
    pods = "/api/v1/namespaces/d/pods"
    yard.api.answers[pods] = {"items": [{"metadata": {"name": "p"}}]}
    assert asyncio.run(controller.reconcile("d")) is not None
    status = "/api/v1/namespaces/d/status"
    assert yard.api.written() == [("DELETE", pods), ("PATCH", status)]
    told = {one["type"]: one for one in yard.api.asked[-1][2]["status"]["conditions"]}
    assert told["NamespaceContentRemaining"]["message"] == (
        "Some resources are remaining: pods. has 1 resource instances"
    )
    assert told["NamespaceDeletionContentFailure"]["status"] == "False"
    yard.api.answers[pods] = {"items": []}
    assert asyncio.run(controller.reconcile("d")) is None
    method, path, body = yard.api.asked[-1]
    assert (method, path, body["spec"]) == ("PUT", "/api/v1/namespaces/d/finalize", {"finalizers": []})
