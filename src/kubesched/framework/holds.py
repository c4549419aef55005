"""A rejection at preEnqueue that can be asked whether it lasts.

Whoever holds many pods back is asked about each of them whenever something changes. A plugin that knows cheaply for
which pods its answer would still be the same gives a `Hold`; `pre_enqueue` is asked again once it does not last.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.framework.status import Status


class Hold(Status, frozen=True, eq=False, kw_only=True):
    """As a status it is equal to any other that says the same."""

    lasts: Callable[[], bool]
    """Must not raise. Whether the plugin would hold the pod back now, too."""
    ends_by_call: bool = False
    """Whoever gave it says when it may be over (`SchedulingQueue.hold_may_be_over`): it need not be asked before."""

    def by(self, plugin: str) -> Hold:
        return Hold(self.code, self.reasons, plugin, lasts=self.lasts, ends_by_call=self.ends_by_call)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Status):
            return NotImplemented
        return (self.code, self.reasons, self.plugin) == (other.code, other.reasons, other.plugin)

    def __hash__(self) -> int:
        return hash(Status(self.code, self.reasons, self.plugin))
