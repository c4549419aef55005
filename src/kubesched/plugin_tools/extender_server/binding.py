"""Bind: PreBind, Bind and PostBind of the plugins; what no plugin binds, DefaultBinder does through the API server.

A pod that is bound here counts on its node at once, before the watch tells of it: the next call sees it there. And the
filters are asked once more: since kube-scheduler asked them, it may have sent other pods to the same node.

Next: `routes`, which calls this.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.plugin_tools.extender_server.messages import BindRequest
from kubesched.plugin_tools.extender_server.served_cluster import ServedCluster
from kubesched.plugin_tools.extender_server.verdicts import CallError, PluginVerdictService
from kubesched.scheduler.engine.bind import (
    PermitPassed,
    PreBindOver,
    plugins_that_prepare,
    run_post_bind,
    steps_to_bind,
)
from kubesched.scheduler.engine.observations import Observation, PluginBroke
from kubesched.scheduler.engine.profile import Profile

_log = logging.getLogger("kubesched.extender")

CarryOut = Callable[[object], Awaitable[object]]
"""Does what a plugin asks for (`framework.effects`), and gives what became of it."""
ReadPod = Callable[[PodKey], Awaitable[Pod | None]]
"""A pod as the API server has it; None if there is none."""


class PluginBinder:
    def __init__(
        self, served: ServedCluster, service: PluginVerdictService, carry_out: CarryOut, read_pod: ReadPod
    ) -> None:
        self._cluster = served.cluster
        self._service = service
        self._carry_out = carry_out
        self._read_pod = read_pod
        for profile in service.profiles.values():
            profile.observers.add(_log_broken, steps=False)

    async def bind(self, request: BindRequest) -> None:
        """Raises `PluginError` or `CallError` if the pod was not bound."""
        pod = await self._find(request)
        profile = self._service.profile_of(pod.pod)
        assumed = self._assume(profile, pod, request.node_name)
        is_bound = False
        try:
            status = await self._run(profile, pod if assumed is None else assumed, request.node_name)
            is_bound = status.is_success
        finally:
            if assumed is not None and not is_bound:
                self._cluster.forget(assumed)
        if not is_bound:
            raise CallError(status.message or f"plugin {status.plugin} refused to bind the pod")

    async def _find(self, request: BindRequest) -> PodInfo:
        key = PodKey(f"{request.namespace}/{request.name}")
        known = self._cluster.find_pod(key)
        if known is None or (request.uid and known.uid != request.uid):
            read = await self._read_pod(key)  # the watch may be behind kube-scheduler's
            known = None if read is None else self._cluster.signatures.info(read)
        if known is None or (request.uid and known.uid != request.uid):
            raise CallError(f'pods "{request.name}" not found')
        return known

    def _assume(self, profile: Profile, pod: PodInfo, node_name: str) -> PodInfo | None:
        """The pod on its node; None if it is placed already, or the node is not known yet. Raises `CallError` if the
        plugins do not want it there any more."""
        if pod.key in self._cluster.placed or node_name not in self._cluster.table.rows:
            return None
        reason = self._service.reason_against(profile, pod, node_name)
        if reason:
            raise CallError(f'node "{node_name}" was taken meanwhile: {reason}')
        return self._cluster.assume(pod, node_name)

    async def _run(self, profile: Profile, pod: PodInfo, node_name: str) -> Status:
        cycle = CycleState()
        preparing = plugins_that_prepare(profile, cycle, pod, node_name)
        steps = steps_to_bind(profile, cycle, pod, node_name, None, preparing)
        answer: object = None
        while True:
            try:
                action = steps.send(answer)
            except StopIteration as end:
                status: Status = end.value
                break
            is_note = isinstance(action, PermitPassed | PreBindOver)
            answer = None if is_note else await self._carry_out(action)
        if status.is_success:
            run_post_bind(profile, cycle, pod, node_name)
        return status


def _log_broken(seen: Observation) -> None:
    """The pod is bound, whatever PostBind plugins make of it."""
    if isinstance(seen, PluginBroke):
        _log.error("PostBind plugin failed", extra={"fields": {"plugin": seen.error.plugin, "err": seen.error.message}})
