"""How long a job waits before it replaces pods that failed: ten seconds, doubled with every failure in a row."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_WAIT_S = 10.0
LONGEST_WAIT_S = 600.0


@dataclass(slots=True)
class _Streak:
    n_failed: int = 0
    last_at_s: float = 0.0


class JobFailures:
    """Failures in a row, by the job's uid. Kept in memory, as the job controller does."""

    def __init__(self) -> None:
        self._streaks: dict[str, _Streak] = {}

    def record(self, uid: str, n_failed: int, n_succeeded: int, now_s: float) -> None:
        if n_succeeded:
            self._streaks.pop(uid, None)
        if n_failed:
            streak = self._streaks.setdefault(uid, _Streak())
            streak.n_failed += n_failed
            streak.last_at_s = now_s

    def ready_at_s(self, uid: str) -> float:
        """From when on the next pod may be made."""
        streak = self._streaks.get(uid)
        if streak is None:
            return 0.0
        return streak.last_at_s + min(FIRST_WAIT_S * 2.0 ** min(streak.n_failed - 1, 30), LONGEST_WAIT_S)
