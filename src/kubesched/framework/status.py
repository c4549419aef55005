"""What a plugin answers for one pod or one node. A rejection is a value; an exception is a bug.

A rejection by PreEnqueue can be a `Hold`. A plugin that gates many pods is asked about each of them whenever something
changes; one that knows cheaply for which pods its answer would still be the same says so with a `Hold`, and
`pre_enqueue` is called again only once it does not last.

What an outside plugin did wrong is a `PluginFault`: `kubesched.scheduler.plugin_loading.checked_plugin` raises it,
`kubesched.scheduler.engine.plugin_call` makes it an Error status that names the plugin.

Next: `verdicts`, the same for a whole table of nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from msgspec import Struct


class Code(Enum):
    """Kubernetes' status codes. The code of a rejection decides what happens to the pod next."""

    SUCCESS = "Success"
    ERROR = "Error"
    """Something broke: the pod is retried after a backoff, whatever else happens."""
    UNSCHEDULABLE = "Unschedulable"
    """Does not fit now; evicting other pods may help."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """Does not fit, and evicting pods would not change that."""
    WAIT = "Wait"
    """Permit only: hold the pod until it is allowed or rejected."""
    SKIP = "Skip"
    """The plugin has nothing to do for this pod; the extension point that follows (Filter after PreFilter) skips it."""
    PENDING = "Pending"
    """Waits for something outside; the pod returns at once when that happens."""


_REJECTIONS = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING})


class Status(Struct, frozen=True):
    """A code, the reasons for it, and the plugin that gave it (filled in by the runtime)."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @classmethod
    def unschedulable(cls, *reasons: str) -> Status:
        return cls(Code.UNSCHEDULABLE, reasons)

    @classmethod
    def unresolvable(cls, *reasons: str) -> Status:
        return cls(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)

    @classmethod
    def error(cls, *reasons: str) -> Status:
        return cls(Code.ERROR, reasons)

    @classmethod
    def wait(cls, *reasons: str) -> Status:
        return cls(Code.WAIT, reasons)

    @property
    def is_success(self) -> bool:
        return self.code is Code.SUCCESS

    @property
    def is_rejected(self) -> bool:
        return self.code in _REJECTIONS

    @property
    def is_skip(self) -> bool:
        return self.code is Code.SKIP

    @property
    def is_wait(self) -> bool:
        return self.code is Code.WAIT

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """The same answer, given by this plugin."""
        return Status(self.code, self.reasons, plugin)


OK = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)


class Hold(Status, frozen=True, eq=False, kw_only=True):
    """As a status it is equal to any other that says the same."""

    lasts: Callable[[], bool]
    """Must not raise. Whether the plugin would hold the pod back now, too."""
    ends_by_call: bool = False
    """The plugin says when it may be over (`SchedulingQueue.hold_may_be_over`): it need not be asked before."""
    together: str = ""
    """Pods that are held with the same word here are held, and let go, together."""

    def by(self, plugin: str) -> Hold:
        if plugin == self.plugin:
            return self
        return Hold(
            self.code,
            self.reasons,
            plugin,
            lasts=self.lasts,
            ends_by_call=self.ends_by_call,
            together=self.together,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Status):
            return NotImplemented
        return (self.code, self.reasons, self.plugin) == (other.code, other.reasons, other.plugin)

    def __hash__(self) -> int:
        return hash(Status(self.code, self.reasons, self.plugin))


class PluginFault(Exception):  # noqa: N818  the plugin's fault, not an error of ours
    """A plugin raised, or gave an answer of the wrong kind."""


class InvalidScore(PluginFault):
    """A score that is not within the range after normalising."""

    def __init__(self, score: int) -> None:
        super().__init__(f"score {score} is out of range")
        self.score = score
