"""PreFilter: can the pod go anywhere, and if only to some nodes, to which?

A plugin may reject the pod as a whole, narrow the search to some nodes, or have nothing to say (then its Filter is
left out). Next: `filter`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Code, Status
from kubesched.scheduler.engine.metrics.timing import timed_extension_point
from kubesched.scheduler.engine.plugin_call import PluginError, guarded
from kubesched.scheduler.engine.profile import Profile


@dataclass(frozen=True, slots=True)
class PreFilterOutcome:
    """`node_names` None means all nodes. `narrowed_by` are the plugins that left nodes out, sorted."""

    status: Status = OK
    node_names: frozenset[str] | None = None
    narrowed_by: tuple[str, ...] = ()


@timed_extension_point("PreFilter")
def run_pre_filter(profile: Profile, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterOutcome:
    skipped: set[str] = set()
    try:
        return _run(profile, cycle, pod, nodes, skipped)
    finally:
        cycle.skip_filter = frozenset(skipped)


def _run(profile: Profile, cycle: CycleState, pod: PodInfo, nodes: NodeTable, skipped: set[str]) -> PreFilterOutcome:
    names: frozenset[str] | None = None
    narrowed_by: list[str] = []
    rejection = OK
    for plugin in profile.pre_filter:
        with guarded(plugin.name, 'running PreFilter plugin "{}"'):
            result = plugin.pre_filter(cycle, pod, nodes)
        status = result.status
        if status.is_skip:
            skipped.add(plugin.name)
            continue
        if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return PreFilterOutcome(status.by(plugin.name))
        if status.code is Code.UNSCHEDULABLE:
            rejection = status.by(plugin.name)  # preemption may still help: the others must prepare for it
            continue
        if not status.is_success:
            raise PluginError(plugin.name, f'running PreFilter plugin "{plugin.name}": {status.message}')
        if result.node_names is not None:
            narrowed_by.append(plugin.name)
            names = result.node_names if names is None else names & result.node_names
            if not names:
                return PreFilterOutcome(_nothing_left(sorted(narrowed_by)), names, tuple(sorted(narrowed_by)))
    return PreFilterOutcome(rejection, names, tuple(sorted(narrowed_by)))


def _nothing_left(plugins: list[str]) -> Status:
    if len(plugins) == 1:
        return Status.unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously")
