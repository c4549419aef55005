"""Statistics of planning: what a number of trials says about chance."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

_NORMAL_975 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution: 95 % are within."""


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many trials, and the 95 % interval (Wilson's) of the share that more trials would show."""

    count: int
    trials: int

    @property
    def share(self) -> float:
        return self.count / self.trials if self.trials else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        if not self.trials:
            return 0.0, 1.0
        n, z2 = self.trials, _NORMAL_975**2
        centre = (self.count + z2 / 2) / (n + z2)
        half = _NORMAL_975 / (n + z2) * sqrt(self.count * (n - self.count) / n + z2 / 4)
        return max(0.0, centre - half), min(1.0, centre + half)
