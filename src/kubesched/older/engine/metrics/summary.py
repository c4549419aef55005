"""Summaries, a kind of metric that kube-scheduler no longer uses: quantiles of the last hours, worked out here.

A value is kept as its place on a scale of steps of one percent, so what is kept stays small however long it runs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from math import exp, floor, log, nan

from kubesched.scheduler.engine.metrics.definitions import MetricDefinition
from kubesched.scheduler.engine.metrics.series import LabelValues, MetricFamily, Summary

WINDOW_S = 5 * 3600.0
"""How long a value counts for quantiles, at most. Sums and numbers are of all times."""
_N_WINDOWS = 5
_STEP = log(1.01)
_SMALLEST = 1e-9


class Quantiles:
    """Of the values of the last hours: windows that begin one after another, of which the oldest is asked."""

    def __init__(self, now_s: float) -> None:
        self._windows: deque[Counter[int]] = deque(Counter() for _ in range(_N_WINDOWS))
        self._renewed_at_s = now_s

    def add(self, value: float, now_s: float) -> None:
        self._renew(now_s)
        place = floor(log(max(value, _SMALLEST)) / _STEP)
        for window in self._windows:
            window[place] += 1

    def at(self, shares: Sequence[float], now_s: float) -> tuple[tuple[float, float], ...]:
        """(share, the value that this share of all does not exceed); not a number where there is none."""
        self._renew(now_s)
        return tuple((share, _quantile(self._windows[0], share)) for share in shares)

    def _renew(self, now_s: float) -> None:
        """The oldest window ends, and a new one begins; after a long silence all of them."""
        n_due = floor((now_s - self._renewed_at_s) / (WINDOW_S / _N_WINDOWS))
        for _ in range(min(n_due, _N_WINDOWS)):
            self._windows.popleft()
            self._windows.append(Counter())
        self._renewed_at_s += n_due * (WINDOW_S / _N_WINDOWS)


def _quantile(found: Counter[int], share: float) -> float:
    left = share * found.total()
    for place in sorted(found):
        left -= found[place]
        if left <= 0:
            return exp((place + 0.5) * _STEP)
    return nan


class SummarySeries:
    """The values of one summary. Without `shares` it has no quantiles."""

    def __init__(self, definition: MetricDefinition, shares: Sequence[float], clock: Callable[[], float]) -> None:
        self.definition = definition
        self._shares = shares
        self._clock = clock
        self._quantiles: dict[LabelValues, Quantiles] = {}
        self._totals: dict[LabelValues, float] = {}
        self._counts: Counter[LabelValues] = Counter()

    def observe(self, value: float, labels: LabelValues = ()) -> None:
        self._totals[labels] = self._totals.get(labels, 0.0) + value
        self._counts[labels] += 1
        if self._shares:
            now_s = self._clock()
            if labels not in self._quantiles:
                self._quantiles[labels] = Quantiles(now_s)
            self._quantiles[labels].add(value, now_s)

    def family(self) -> MetricFamily:
        now_s = self._clock()
        found = {}
        for labels, count in self._counts.items():
            asked = self._quantiles.get(labels)
            quantiles = () if asked is None else asked.at(self._shares, now_s)
            found[labels] = Summary(quantiles, self._totals[labels], count)
        return MetricFamily(self.definition, summaries=found)
