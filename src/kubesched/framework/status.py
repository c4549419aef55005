"""What a plugin answers for one pod or one node. A rejection is a value; an exception is a bug.

Next: `verdicts`, the same for a whole table of nodes.
"""

from __future__ import annotations

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
    """The plugin has nothing to say about this pod; its coupled stage is left out for this cycle."""
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
