"""How long a job waits before it replaces pods that failed: ten seconds, doubled with every failure in a row.

A job whose numbers may each fail so often waits for each number by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_WAIT_S = 10.0
LONGEST_WAIT_S = 600.0


@dataclass(slots=True)
class _Streak:
    n_failed: int = 0
    last_at_s: float = 0.0


class JobFailures:
    """Failures in a row, by the job's uid and the number of its pod. Kept in memory, as the job controller does."""

    def __init__(self) -> None:
        self._streaks: dict[str, dict[int | None, _Streak]] = {}

    def record(self, uid: str, n_failed: int, n_succeeded: int, now_s: float, index: int | None = None) -> None:
        streaks = self._streaks.setdefault(uid, {})
        if n_succeeded:
            streaks.pop(index, None)
        if n_failed:
            streak = streaks.setdefault(index, _Streak())
            streak.n_failed += n_failed
            streak.last_at_s = now_s
        if not streaks:
            del self._streaks[uid]

    def ready_at_s(self, uid: str, index: int | None = None) -> float:
        """From when on the next pod may be made."""
        streak = self._streaks.get(uid, {}).get(index)
        if streak is None:
            return 0.0
        return streak.last_at_s + min(FIRST_WAIT_S * 2.0 ** min(streak.n_failed - 1, 30), LONGEST_WAIT_S)

    def n_failed(self, uid: str, index: int) -> int:
        """As far as it is remembered."""
        streak = self._streaks.get(uid, {}).get(index)
        return 0 if streak is None else streak.n_failed

    def forget(self, uid: str) -> None:
        self._streaks.pop(uid, None)
