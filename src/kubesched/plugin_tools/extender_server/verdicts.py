"""Filter, prioritize, preempt and bind: the plugins are asked, and what they say is put as an extender says it.

Each call stands alone: kube-scheduler does not say which calls belong to one attempt. So PreFilter runs for each of
them, on the cluster as it is then. A plugin that fails raises `PluginError`, which names it.

To bind is PreBind, Bind and PostBind of the plugins; what no plugin binds, DefaultBinder does through the API server.
A pod that is bound here counts on its node at once, before the watch tells of it: the next call sees it there. And the
filters are asked once more: since kube-scheduler asked them, it may have sent other pods to the same node.

Next: `routes`, which calls this.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import MAX_NODE_SCORE
from kubesched.framework.status import Code, Status
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.requests import AmountError
from kubesched.plugin_tools.extender_server.messages import (
    BindRequest,
    NodesRequest,
    NodesVerdict,
    PreemptRequest,
    RequestError,
)
from kubesched.plugin_tools.extender_server.outside_profiles import OutsideProfiles
from kubesched.plugin_tools.extender_server.served_cluster import ServedCluster
from kubesched.scheduler.engine.bind import (
    PermitPassed,
    PreBindOver,
    plugins_that_prepare,
    run_post_bind,
    steps_to_bind,
)
from kubesched.scheduler.engine.extender.http_extender import MetaVictims
from kubesched.scheduler.engine.extender.verbs import MAX_EXTENDER_PRIORITY
from kubesched.scheduler.engine.filter import FilterOutcome, run_filters
from kubesched.scheduler.engine.observations import Observation, PluginBroke
from kubesched.scheduler.engine.preemption.victims import ImaginedTrial, Trial, trial_on
from kubesched.scheduler.engine.prefilter import PreFilterOutcome, run_pre_filter
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.row_check import steps_within_node
from kubesched.scheduler.engine.score import run_scores

NOT_KNOWN = "node(s) not known to the extender yet"


class CallError(Exception):
    """A call that cannot be answered, or did not bring about what it should; the text says why."""


class PluginVerdictService:
    """Asks the plugins of the profile that the pod's scheduler name stands for."""

    def __init__(self, served: ServedCluster, profiles: OutsideProfiles) -> None:
        self._served = served
        self._cluster = served.cluster
        self._profiles = profiles

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """By scheduler name."""
        return self._profiles.by_name

    # -- filter --------------------------------------------------------------------------------------------------------

    def filter(self, request: NodesRequest) -> NodesVerdict:
        profile, pod = self.profile_of(request.pod), self._info(request.pod)
        self._check_nodes_are_known(request)
        with self._served.nodes_of(request) as scope:
            verdict = NodesVerdict(failed=dict.fromkeys(scope.unknown, NOT_KNOWN))
            cycle = CycleState()
            prepared = run_pre_filter(profile, cycle, pod, self._cluster.nodes)
            if not prepared.status.is_success:
                _reject_all(verdict, scope.nodes, prepared.status)
                return verdict
            nodes = _narrowed(verdict, scope.nodes, prepared)
            _take_in(verdict, run_filters(profile, cycle, pod, nodes))
        return verdict

    def reason_against(self, profile: Profile, pod: PodInfo, node_name: str) -> str:
        """Why the pod cannot go to this node as things are now; empty if it can. A node that is not known is not
        judged."""
        row = self._cluster.table.rows.get(node_name)
        if row is None:
            return ""
        cycle, verdict = CycleState(), NodesVerdict()
        prepared = run_pre_filter(profile, cycle, pod, self._cluster.nodes)
        node = self._cluster.nodes.take(np.array([row], dtype=np.intp))
        if prepared.status.is_success:
            _take_in(verdict, run_filters(profile, cycle, pod, _narrowed(verdict, node, prepared)))
        else:
            _reject_all(verdict, node, prepared.status)
        return next(iter({**verdict.failed, **verdict.failed_for_good}.values()), "")

    # -- prioritize ----------------------------------------------------------------------------------------------------

    def prioritize(self, request: NodesRequest) -> list[int]:
        """Scores of 0 to 10, in the order of the request's nodes."""
        profile, pod = self.profile_of(request.pod), self._info(request.pod)
        self._check_nodes_are_known(request)
        if not profile.score:
            return [0] * len(request.node_names)
        with self._served.nodes_of(request) as scope:
            cycle = CycleState()
            if profile.pre_filter:
                run_pre_filter(profile, cycle, pod, self._cluster.nodes)
            total = run_scores(profile, cycle, pod, scope.nodes).total
            highest = MAX_NODE_SCORE * self._profiles.score_weight
            scaled = (2 * MAX_EXTENDER_PRIORITY * total + highest) // (2 * highest)
            by_name = dict(zip(scope.nodes.names, scaled.tolist(), strict=True))
        return [by_name.get(name, 0) for name in request.node_names]

    # -- preempt -------------------------------------------------------------------------------------------------------

    def preempt(self, request: PreemptRequest) -> dict[str, MetaVictims]:
        """The nodes on which the plugins let the pod in once the victims are gone, with the same victims."""
        profile, pod = self.profile_of(request.pod), self._info(request.pod)
        if not self._served.is_followed:
            raise CallError("preempt needs the pods of the cluster: start kubesched extender without --no-cluster")
        cycle = CycleState()
        prepared = run_pre_filter(profile, cycle, pod, self._cluster.nodes)
        if prepared.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return {}
        allowed = prepared.node_names
        return {
            name: victims
            for name, victims in request.victims.items()
            if (allowed is None or name in allowed) and self._fits_without(profile, cycle, pod, name, victims)
        }

    def _fits_without(self, profile: Profile, cycle: CycleState, pod: PodInfo, name: str, victims: MetaVictims) -> bool:
        row = self._cluster.table.rows.get(name)
        if row is None:
            return False
        leaving = [info for info in self._cluster.table.pods.on(row) if info.uid in victims.uids]
        trial = trial_on(self._cluster, profile, cycle, pod, row, steps_within_node(profile, cycle, pod))
        if isinstance(trial, ImaginedTrial):
            return _status_without(trial, leaving).is_success
        with self._table_restored(row):
            status = _status_without(trial, leaving)
            for info in leaving:
                trial.bring_back(info)  # the plugins' state serves for the next node
        return status.is_success

    @contextmanager
    def _table_restored(self, row: int) -> Iterator[None]:
        """Afterwards the row's pods are as before, also when a plugin broke over one that was away."""
        table = self._cluster.table
        order = list(table.pods.on(row))
        with table.journal.paused():
            try:
                yield
            finally:
                there = {info.uid for info in table.pods.on(row)}
                for info in order:
                    if info.uid not in there:
                        table.add_pod(info, row)
                table.pods.restore_order(row, order)

    # -- what a call is about ------------------------------------------------------------------------------------------

    def profile_of(self, pod: Pod) -> Profile:
        """Raises `CallError` if there is none, or nothing to look at yet."""
        if not self._served.is_ready():
            raise CallError("the extender has not listed the cluster yet")
        name = pod.spec.scheduler_name
        profile = self._profiles.profile_of(name)
        if profile is None:
            known = ", ".join(sorted(self._profiles.by_name))
            raise CallError(f'no profile for scheduler name "{name}" in the extender\'s configuration; it has {known}')
        return profile

    def _info(self, pod: Pod) -> PodInfo:
        info = self._cluster.signatures.info(pod)
        try:
            info.signature.resources  # noqa: B018  amounts that cannot be read are the request's fault, not a plugin's
        except AmountError as error:
            raise RequestError(f"Pod: {error}") from None
        return info

    def _check_nodes_are_known(self, request: NodesRequest) -> None:
        if request.nodes is None and not self._served.is_followed:
            raise CallError(
                "names of nodes are not enough without a cluster: set nodeCacheCapable to false, or start kubesched "
                "extender without --no-cluster"
            )


def _reject_all(verdict: NodesVerdict, nodes: NodeTable, status: Status) -> None:
    is_final = status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    reason = status.message or _nameless(status.plugin)
    (verdict.failed_for_good if is_final else verdict.failed).update(dict.fromkeys(nodes.names, reason))


def _narrowed(verdict: NodesVerdict, nodes: NodeTable, prepared: PreFilterOutcome) -> NodeTable:
    """The nodes that PreFilter left over; evictions do not bring the others back."""
    wanted = prepared.node_names
    if wanted is None:
        return nodes
    names = nodes.names
    reason = f"node(s) didn't satisfy plugin(s) [{' '.join(prepared.narrowed_by)}]"
    verdict.failed_for_good.update({name: reason for name in names if name not in wanted})
    return nodes.take(np.array([name in wanted for name in names], dtype=np.bool_))


def _take_in(verdict: NodesVerdict, outcome: FilterOutcome) -> None:
    """Every rejected node with the reasons of the plugin that was the first to reject it."""
    names = outcome.nodes.names
    for said in outcome.by_plugin:
        reasons: dict[bytes, str] = {}
        for index in np.flatnonzero(said.owned).tolist():
            position = index if said.asked is None else int(said.asked[index])
            pattern = said.verdicts.bits[:, index].tobytes()
            reason = reasons.get(pattern)
            if reason is None:
                reason = reasons[pattern] = said.verdicts.status(index).message or _nameless(said.plugin)
            is_final = said.verdicts.unresolvable[index]
            (verdict.failed_for_good if is_final else verdict.failed)[names[position]] = reason


def _nameless(plugin: str) -> str:
    """A rejection without a reason."""
    return f"node(s) didn't satisfy plugin {plugin}"


def _status_without(trial: Trial, leaving: list[PodInfo]) -> Status:
    for info in leaving:
        trial.take_away(info)
    return trial.status()


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
