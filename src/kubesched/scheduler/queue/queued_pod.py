"""A pod in the queue, and what the queue remembers of it between attempts.

Next: `sub_queues`, where it can be.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from kubesched.framework.holds import Hold
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.queue.profile import QueueProfile

if TYPE_CHECKING:
    from kubesched.scheduler.queue.heap import PodHeap

Order = tuple[object, ...]
"""What pods are compared by: a key of `sort_key`, or one that contains it."""

NO_PLUGINS: frozenset[str] = frozenset()


class QueuedPodInfo:
    """Lives from the pod's arrival until it is bound or deleted; the same object whenever it is popped.

    The loop sets `info`, `unschedulable_plugins` and `pending_plugins` while the pod is in flight; the rest is the
    queue's to write.
    """

    __slots__ = (
        "arrival",
        "attempts",
        "backoff_until_s",
        "consecutive_errors",
        "flight_start",
        "flushed_at_s",
        "gating_plugin",
        "heap",
        "hold",
        "info",
        "initial_attempt_at_s",
        "key",
        "order",
        "pending_plugins",
        "profile",
        "queued_at_s",
        "uid",
        "unschedulable_count",
        "unschedulable_plugins",
        "was_flushed",
    )

    def __init__(self, info: PodInfo, profile: QueueProfile, now_s: float) -> None:
        self.info = info
        self.profile = profile
        self.key: PodKey = info.key
        self.uid = info.uid
        self.queued_at_s = now_s
        """When it came, or came back from its last attempt. Moving between sub-queues does not change it."""
        self.initial_attempt_at_s: float | None = None
        """When it could be attempted for the first time."""
        self.attempts = 0
        self.unschedulable_count = 0
        """Attempts that ended in a rejection."""
        self.consecutive_errors = 0
        """Attempts that broke, since the last that did not."""
        self.unschedulable_plugins = NO_PLUGINS
        self.pending_plugins = NO_PLUGINS
        """Who rejected it last, and of those with Pending: such a pod skips its backoff."""
        self.gating_plugin = ""
        """Who held it back at preEnqueue; empty when nobody does."""
        self.hold: Hold | None = None
        """How that was said, if it can be asked whether it lasts."""
        self.backoff_until_s = -inf
        self.flushed_at_s = -inf
        self.was_flushed = False
        """Whether it is being attempted only because it was unschedulable for too long."""
        self.heap: PodHeap | None = None
        self.order: Order = ()
        self.arrival = 0
        """Where it stands, if in a heap; these three are written by `heap` alone."""
        self.flight_start = 0
        """From where on the log of changes concerns it; for `in_flight` alone."""

    @property
    def is_gated(self) -> bool:
        return self.gating_plugin != ""

    @property
    def is_still_gated(self) -> bool:
        """Whether the plugin that held the pod back would do so again."""
        gate = self.profile.gates.get(self.gating_plugin) if self.gating_plugin else None
        return gate is not None and not gate(self.info).is_success

    @property
    def is_rejected(self) -> bool:
        """Whether plugins rejected it; a pod that nobody rejected failed by an error, or is new."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    @property
    def rejectors(self) -> frozenset[str]:
        """All plugins that rejected it, with Pending or otherwise."""
        pending = self.pending_plugins
        return self.unschedulable_plugins | pending if pending else self.unschedulable_plugins

    @property
    def parked_since_s(self) -> float:
        """Since when it could have been waiting for a change."""
        return max(self.queued_at_s, self.flushed_at_s)

    def __repr__(self) -> str:
        return f"QueuedPodInfo({self.key})"
