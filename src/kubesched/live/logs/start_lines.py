"""What `kubesched run` says when it starts and stops.

Next: `scheduling_lines`, for all that it says in between.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.live.logs.scheduling_lines import error, info
from kubesched.scheduler.engine.profile import Profile

STARTING = info("Starting Kubernetes Scheduler", 0, "version emulates leaderElection", "The process starts.")
CONFIGURATION = info("Using component config", 2, "config", "The effective configuration, flags and defaults included.")
PLUGINS = info(
    "the scheduler starts to work with those plugins", 2, "Plugins", "The plugins of a profile, by extension point."
)
HANDLERS_SYNCED = info("Handlers synced", 3, "", "The initial lists were handled: scheduling may begin.")
WAITING_FOR_SYNC = info(
    "Starting informers and waiting for sync...", 0, "", "With `delayCacheUntilActive`, once this replica leads."
)
SYNC_COMPLETED = info("Sync completed", 0, "", "The same, done.")
QUEUE_CLOSED = info("Scheduling queue is closed", 2, "", "No pod is tried any more.")
TERMINATING = info("Requested to terminate, exiting", 0, "", "It got a signal to stop, and exits with code 0.")
LEADER_ELECTION_LOST = error("Leaderelection lost", "", "Another replica leads, or may: it exits with code 1.")


def plugins_of(profile: Profile) -> dict[str, object]:
    """As kube-scheduler writes them: by extension point, what is enabled, in order."""
    scored = [(step.name, step.weight) for step in profile.score]
    return {
        "PreEnqueue": _enabled(profile.pre_enqueue),
        "QueueSort": _enabled(profile.queue_sort),
        "PreFilter": _enabled(profile.pre_filter),
        "Filter": _enabled(profile.filter),
        "PostFilter": _enabled(profile.post_filter),
        "PreScore": _enabled(profile.pre_score),
        "Score": _set(scored),
        "Reserve": _enabled(profile.reserve),
        "Permit": _enabled(profile.permit),
        "PreBind": _enabled(profile.pre_bind),
        "Bind": _enabled(profile.bind),
        "PostBind": _enabled(profile.post_bind),
    }


def _enabled(plugins: Iterable[object]) -> dict[str, object]:
    return _set((str(plugin.name), 0) for plugin in plugins)  # type: ignore[attr-defined]


def _set(plugins: Iterable[tuple[str, int]]) -> dict[str, object]:
    return {"Enabled": [{"Name": name, "Weight": weight} for name, weight in plugins] or None, "Disabled": None}
