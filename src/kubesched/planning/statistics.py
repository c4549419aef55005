"""Statistics of planning: what a number of trials says about chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt

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


# -- paired differences ------------------------------------------------------------------------------------------------

FEWEST_FOR_INTERVAL = 10
"""Pairs, from which on an interval is told; below, the range."""

_T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""The 97.5 % quantiles of Student's t, for 1 to 30 degrees of freedom."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """What the same seeds gave under two variants: the differences, the second less the first."""

    differences: tuple[float, ...]

    @property
    def mean(self) -> float:
        return sum(self.differences) / len(self.differences)

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, by t; with few pairs, the least and the most."""
        n = len(self.differences)
        if n < FEWEST_FOR_INTERVAL:
            return min(self.differences), max(self.differences)
        variance = sum((one - self.mean) ** 2 for one in self.differences) / (n - 1)
        half = _t_975(n - 1) * sqrt(variance / n)
        return self.mean - half, self.mean + half

    @property
    def sign_test(self) -> float:
        """How likely so uneven signs, or more uneven ones, are by chance alone; pairs that are equal do not count."""
        up = sum(one > 0 for one in self.differences)
        down = sum(one < 0 for one in self.differences)
        n, most = up + down, max(up, down)
        if not n:
            return 1.0
        tail = sum(comb(n, k) for k in range(most, n + 1)) / (1 << n)
        return min(1.0, 2 * tail)

    @property
    def is_constant(self) -> bool:
        """Whether chance plays no part."""
        return len(set(self.differences)) == 1


def _t_975(freedom: int) -> float:
    """Beyond the table, by the first terms of Cornish and Fisher's expansion."""
    if freedom <= len(_T_975):
        return _T_975[freedom - 1]
    z = _NORMAL_975
    cube, fifth = z * z * z, z * z * z * z * z
    return z + (cube + z) / (4 * freedom) + (5 * fifth + 16 * cube + 3 * z) / (96 * freedom * freedom)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted for asking several questions at once, in the order given."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    so_far = 0.0
    for rank, index in enumerate(order):
        so_far = max(so_far, min(1.0, (len(order) - rank) * p_values[index]))
        adjusted[index] = so_far
    return adjusted
