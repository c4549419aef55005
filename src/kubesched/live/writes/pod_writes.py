"""What is written about pods: bindings, conditions and nominations, evictions.

A write whose answer was lost is not repeated: the pod is read until it tells what became of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec

from kubesched.framework.effects import BindPod, Done, EvictPod, Failed, PatchPodStatus
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.requester import STRATEGIC_PATCH, Requester
from kubesched.k8s.client.resources import resource_of
from kubesched.k8s.model.core import Pod, PodCondition
from kubesched.k8s.model.meta import PodKey
from kubesched.live.writes.object_writes import LOOK_AGAIN_S, failed, utc_now

_log = logging.getLogger("kubesched.writes")
_encode = msgspec.json.Encoder().encode
_decode_pod = msgspec.json.Decoder(Pod).decode
_PODS = resource_of(Pod)

_DONE = Done()
_NO_ANSWER = AnswerLost("no answer in the time that it may take")
_PATCH_PAUSES_S = (0.01, 0.05, 0.25)

FindPod = Callable[[PodKey], PodInfo | None]
Sleep = Callable[[float], Awaitable[object]]


class PodWrites:
    """`find_pod` gives a pod as the loop knows it."""

    def __init__(
        self,
        requests: Requester,
        find_pod: FindPod,
        now: Callable[[], str] = utc_now,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._requests = requests
        self._find_pod = find_pod
        self._now = now
        self._sleep = sleep

    # -- bindings ------------------------------------------------------------------------------------------------------

    async def bind(self, action: BindPod) -> Done | Failed:
        namespace, _, name = action.pod.partition("/")
        body = _encode(
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name, "namespace": namespace, "uid": action.uid},
                "target": {"kind": "Node", "name": action.node_name},
            }
        )
        try:
            await self._requests.request("POST", _PODS.path(namespace, name, "binding"), body=body)
        except (ApiError, Unreachable) as problem:
            return failed(problem)
        except AnswerLost as problem:
            return await self.find_binding(action, problem)
        return _DONE

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
