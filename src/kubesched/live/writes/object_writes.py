"""What is written about pods, bindings, conditions, nominations and evictions, and the objects that plugins write.

And what all writes have in common. A write whose answer was lost is not repeated: the object is read until it tells
what became of it. Where a kind is served is known of those that the scheduler watches, and asked of the server for
others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from kubesched.framework.effects import (
    BindPod,
    Done,
    EvictPod,
    Failed,
    PatchObject,
    PatchPodGroupStatus,
    PatchPodStatus,
    WriteObject,
    Written,
)
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.requester import MERGE_PATCH, STRATEGIC_PATCH, Requester
from kubesched.k8s.client.resources import POD_GROUPS, RESOURCES, Resource, resource_of
from kubesched.k8s.client.rest import Again, Begun, Tell
from kubesched.k8s.model.core import Pod, PodCondition
from kubesched.k8s.model.meta import KubeObject, ObjectMeta, PodKey
from kubesched.live.writes.binding_body import PROTOBUF, binding_json, binding_message

LOOK_AGAIN_S = (0.2, 0.5, 1.0, 2.0)
"""After so long the server has surely ended a request whose connection broke."""


def utc_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def failed(problem: ApiError | Unreachable | AnswerLost) -> Failed:
    if isinstance(problem, ApiError):
        return Failed(problem.message or str(problem), is_gone=problem.is_not_found)
    return Failed(str(problem))


_log = logging.getLogger("kubesched.writes")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_KNOWN = {(resource.api_version, resource.kind): resource for resource in RESOURCES}
_NO_ANSWER = AnswerLost("no answer in the time that it may take")

Sleep = Callable[[float], Awaitable[object]]
Outcome = Written | Failed


class _Served(msgspec.Struct, rename="camel"):
    name: str = ""
    kind: str = ""
    namespaced: bool = False


class _ServedKinds(msgspec.Struct):
    resources: tuple[_Served, ...] = ()


_decode_kinds = msgspec.json.Decoder(_ServedKinds).decode


@dataclass(frozen=True, slots=True)
class _Write:
    """A request, where the object is afterwards, and what is in it then."""

    method: str
    path: str
    body: Mapping[str, Any]
    object_path: str
    content: Mapping[str, Any]


class ObjectWrites:
    def __init__(
        self, requests: Requester, sleep: Sleep = asyncio.sleep, pod_groups: Callable[[], Resource] = lambda: POD_GROUPS
    ) -> None:
        """`pod_groups` says where the server has them."""
        self._requests = requests
        self._sleep = sleep
        self._pod_groups = pod_groups
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By group: what was said of it last has to be written last."""
        self._asked: dict[tuple[str, str], Resource] = {}

    async def write(self, action: WriteObject) -> Outcome:
        return await self._carry_out(action)

    async def patch(self, action: PatchObject) -> Outcome:
        return await self._carry_out(action)

    async def patch_group_status(self, action: PatchPodGroupStatus) -> None:
        """Nobody waits for it, and it is not tried again: the group's next attempt writes what is true then."""
        condition = action.condition
        written: dict[str, Any] = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "observedGeneration": action.generation,
        }
        if action.is_turn:
            written["lastTransitionTime"] = utc_now()
        namespace, _, name = action.group.partition("/")
        body = _encode({"metadata": {"uid": action.uid}, "status": {"conditions": [written]}})
        path = self._pod_groups().path(namespace, name, "status")
        turn = self._turns.setdefault(action.group, asyncio.Lock())
        try:
            async with turn:
                await self._requests.request("PATCH", path, body=body, content_type=STRATEGIC_PATCH)
        except (ApiError, Unreachable, AnswerLost) as problem:
            fields = {"podGroup": action.group, "err": str(problem)}
            _log.error("Failed to update PodGroup status", extra={"fields": fields})

    async def find_out(self, action: WriteObject | PatchObject) -> Outcome:
        """What became of a write whose answer is lost."""
        try:
            return await self._settle(await self._request(action), _NO_ANSWER)
        except (ApiError, Unreachable, AnswerLost) as problem:
            return _failed(problem)

    async def _carry_out(self, action: WriteObject | PatchObject) -> Outcome:
        try:
            write = await self._request(action)
            content_type = MERGE_PATCH if write.method == "PATCH" else "application/json"
        except (ApiError, Unreachable, AnswerLost) as problem:
            return _failed(problem)
        try:
            answer = await self._requests.request(
                write.method, write.path, body=_encode(write.body), content_type=content_type
            )
            return _written(_decode(answer))
        except (ApiError, Unreachable) as problem:
            return _failed(problem)
        except AnswerLost as problem:
            return await self._settle(write, problem)

    # -- where and what ------------------------------------------------------------------------------------------------

    async def _request(self, action: WriteObject | PatchObject) -> _Write:
        if isinstance(action, PatchObject):
            namespace, _, name = action.key.rpartition("/")
            resource = await self._resource(action.api_version, action.kind)
            path = resource.path(namespace, name)
            return _Write("PATCH", f"{path}/{action.subresource}".rstrip("/"), action.patch, path, action.patch)
        manifest = action.manifest
        metadata: Mapping[str, Any] = manifest.get("metadata", {})
        resource = await self._resource(manifest.get("apiVersion", ""), manifest.get("kind", ""))
        namespace, name = metadata.get("namespace") or "default", metadata.get("name", "")
        object_path = resource.path(namespace, name) if name else ""
        if metadata.get("resourceVersion"):
            return _Write("PUT", object_path, manifest, object_path, manifest)
        return _Write("POST", resource.path(namespace), manifest, object_path, manifest)

    async def _resource(self, api_version: str, kind: str) -> Resource:
        wanted = api_version, kind
        known = _KNOWN.get(wanted) or self._asked.get(wanted)
        if known is not None:
            return known
        group, _, version = api_version.rpartition("/")
        missing = ApiError(404, "NotFound", f'no matches for kind "{kind}" in version "{api_version}"')
        if not version or not kind:
            raise missing
        try:
            answer = await self._requests.request("GET", f"/apis/{api_version}" if group else f"/api/{api_version}")
        except ApiError as problem:
            raise (missing if problem.is_not_found else problem) from problem
        for served in _decode_kinds(answer).resources:
            if served.kind == kind and "/" not in served.name:
                found = Resource(KubeObject, group, version, served.name, served.namespaced, kind_name=kind)
                self._asked[wanted] = found
                return found
        raise missing

    # -- lost answers --------------------------------------------------------------------------------------------------

    async def _settle(self, write: _Write, problem: AnswerLost) -> Outcome:
        """What became of a write, by what the object looks like afterwards. One that the server was to name cannot be
        told from others."""
        for pause_s in LOOK_AGAIN_S if write.object_path else ():
            await self._sleep(pause_s)
            try:
                found = _decode(await self._requests.request("GET", write.object_path))
            except ApiError as answer:
                if answer.is_not_found and write.method != "POST":
                    return _failed(answer)
                continue
            except (Unreachable, AnswerLost, msgspec.DecodeError):
                continue
            if _has(found, write.content):
                return _written(found)
        return Failed(f"no answer, and the write has not come about: {problem}")


def _has(found: Any, content: Any, at: str = "") -> bool:
    """Whether all that was written is there. A version was what the write was based on."""
    if isinstance(content, Mapping):
        if not isinstance(found, Mapping):
            return not content
        return all(
            f"{at}/{name}" == "/metadata/resourceVersion" or _has(found.get(name), value, f"{at}/{name}")
            for name, value in content.items()
        )
    if isinstance(content, list | tuple):
        return bool(list(content) == found)
    return bool(found == content)


def _written(found: Mapping[str, Any]) -> Written:
    metadata = msgspec.convert(found.get("metadata", {}), ObjectMeta)
    return Written(metadata.resource_version, metadata.name, metadata.uid)


def _failed(problem: ApiError | Unreachable | AnswerLost) -> Failed:
    if isinstance(problem, ApiError):
        return Failed(problem.message or str(problem), is_gone=problem.is_not_found, reason=problem.reason)
    return Failed(str(problem))


_decode_pod = msgspec.json.Decoder(Pod).decode
_PODS = resource_of(Pod)

_DONE = Done()

_PATCH_PAUSES_S = (0.01, 0.05, 0.25)

BeginPost = Callable[[str, bytes, str, Tell], Begun | None]
"""(path, body, content type, who is told) -> how to call it off; None if it has to wait."""
BindingOutcome = Done | Failed | Coroutine[None, None, Done | Failed]
"""Or how to find it out."""
FindPod = Callable[[PodKey], PodInfo | None]


class PodWrites:
    """`find_pod` gives a pod as the loop knows it."""

    def __init__(
        self,
        requests: Requester,
        find_pod: FindPod,
        now: Callable[[], str] = utc_now,
        sleep: Sleep = asyncio.sleep,
        *,
        binds_in_protobuf: bool = False,
        begin: BeginPost | None = None,
    ) -> None:
        """`begin` posts at once, where that can be done."""
        self._requests = requests
        self._begin = begin
        self._binds_in_protobuf = binds_in_protobuf
        self._find_pod = find_pod
        self._now = now
        self._sleep = sleep

    # -- bindings ------------------------------------------------------------------------------------------------------

    async def bind(self, action: BindPod) -> Done | Failed:
        path, body, content_type = self._binding(action)
        try:
            await self._requests.request("POST", path, body=body, content_type=content_type)
        except (ApiError, Unreachable) as problem:
            return failed(problem)
        except AnswerLost as problem:
            return await self.find_binding(action, problem)
        return _DONE

    def begin_binding(self, action: BindPod, tell: Callable[[BindingOutcome], None]) -> Begun | None:
        """The same without a task, as most bindings go; gives how to call it off. None, and nothing was done, if it
        cannot be sent at once."""
        if self._begin is None:
            return None
        path, body, content_type = self._binding(action)
        return self._begin(path, body, content_type, lambda answer: tell(self._outcome(action, answer)))

    def _outcome(self, action: BindPod, answer: bytes | ApiError | AnswerLost | Again) -> BindingOutcome:
        if isinstance(answer, bytes):
            return _DONE
        if isinstance(answer, ApiError):
            return failed(answer)
        if isinstance(answer, AnswerLost):
            return self.find_binding(action, answer)
        return self._bind_after(answer.pause_s, action)

    async def _bind_after(self, pause_s: float, action: BindPod) -> Done | Failed:
        await self._sleep(pause_s)
        return await self.bind(action)

    def _binding(self, action: BindPod) -> tuple[str, bytes, str]:
        """Path, body and type of what is posted."""
        namespace, _, name = action.pod.partition("/")
        path = _PODS.path(namespace, name, "binding")
        if self._binds_in_protobuf:
            return path, binding_message(namespace, name, action.uid, action.node_name), PROTOBUF
        return path, binding_json(namespace, name, action.uid, action.node_name), "application/json"

    async def find_binding(self, action: BindPod, problem: AnswerLost = _NO_ANSWER) -> Done | Failed:
        """What became of a binding whose answer is lost."""
        return await self._settle(action.pod, action.uid, lambda pod: pod.spec.node_name == action.node_name, problem)

    # -- conditions and nominations ------------------------------------------------------------------------------------

    async def patch_status(self, action: PatchPodStatus) -> None:
        """Nobody waits for it; the next failed attempt of the pod writes it again."""
        try:
            condition = None if action.condition is None else self._condition(action.pod, action.condition)
            if condition is not None and action.is_probe:
                condition["lastProbeTime"] = self._now()
            await self._patch(action.pod, action.uid, condition, action.nominated_node_name)
        except (ApiError, Unreachable, AnswerLost) as problem:
            if not (isinstance(problem, ApiError) and problem.is_not_found):
                _log.error("Error updating pod", extra={"fields": {"pod": action.pod, "err": str(problem)}})

    async def _patch(
        self, key: PodKey, uid: str, condition: dict[str, Any] | None, nominated_node_name: str | None
    ) -> None:
        namespace, _, name = key.partition("/")
        status: dict[str, Any] = {}
        if condition is not None:
            status["conditions"] = [condition]
        if nominated_node_name is not None:
            status["nominatedNodeName"] = nominated_node_name or None
        body = _encode({"metadata": {"uid": uid}, "status": status})
        path = _PODS.path(namespace, name, "status")
        for pause_s in (*_PATCH_PAUSES_S, None):
            try:
                await self._requests.request("PATCH", path, body=body, content_type=STRATEGIC_PATCH)
                return
            except (ApiError, Unreachable) as problem:
                if pause_s is None or not _is_passing(problem):
                    raise
            await self._sleep(pause_s)

    def _condition(self, key: PodKey, condition: PodCondition) -> dict[str, Any]:
        """As it is written: with the time of the last transition, unless it is none."""
        known = self._find_pod(key)
        written: dict[str, Any] = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "lastProbeTime": None,
        }
        if known is None or condition.status not in _statuses(known.pod, condition.type):
            written["lastTransitionTime"] = self._now()
        if known is not None and known.pod.metadata.generation:
            written["observedGeneration"] = known.pod.metadata.generation
        return written

    # -- evictions -----------------------------------------------------------------------------------------------------

    async def evict(self, action: EvictPod) -> Done | Failed:
        """A pod that was gone before is told as such: nobody evicted it."""
        namespace, _, name = action.pod.partition("/")
        body = _encode({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": action.uid}})
        try:
            known = self._find_pod(action.pod)
            if known is None or action.condition not in (known.pod.status.conditions or ()):
                await self._patch(action.pod, action.uid, self._condition(action.pod, action.condition), None)
            await self._requests.request("DELETE", _PODS.path(namespace, name), body=body)
        except (ApiError, Unreachable) as problem:
            return failed(problem)
        except AnswerLost as problem:
            return await self.find_eviction(action, problem)
        return _DONE

    async def find_eviction(self, action: EvictPod, problem: AnswerLost = _NO_ANSWER) -> Done | Failed:
        return await self._settle(action.pod, action.uid, lambda pod: pod.is_terminating, problem, gone=_DONE)

    # -- lost answers --------------------------------------------------------------------------------------------------

    async def _settle(
        self,
        key: PodKey,
        uid: str,
        is_done: Callable[[Pod], bool],
        problem: AnswerLost,
        gone: Done | Failed | None = None,
    ) -> Done | Failed:
        """What became of a write, by what the pod looks like afterwards."""
        namespace, _, name = key.partition("/")
        for pause_s in LOOK_AGAIN_S:
            await self._sleep(pause_s)
            try:
                pod = _decode_pod(await self._requests.request("GET", _PODS.path(namespace, name)))
            except ApiError as answer:
                if answer.is_not_found:
                    return gone or failed(answer)
                continue
            except (Unreachable, AnswerLost, msgspec.DecodeError):
                continue
            if pod.metadata.uid != uid:
                return gone or Failed(f'pods "{name}" not found', is_gone=True)
            if is_done(pod):
                return _DONE
        return Failed(f"no answer, and the write has not come about: {problem}")


def _is_passing(problem: ApiError | Unreachable) -> bool:
    """Whether it is worth another try at once. A server that is out of reach will be so for longer."""
    return isinstance(problem, ApiError) and problem.status in (409, 500, 503)


def _statuses(pod: Pod, condition_type: str) -> Iterator[str]:
    return (known.status for known in pod.status.conditions or () if known.type == condition_type)
