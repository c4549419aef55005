"""Statistics of planning: what a number of trials says about chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import comb, erfc, sqrt

_USUAL = 0.05
_RESAMPLES = 2_000
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
    alpha: float = 0.05
    """How often an interval may miss."""
    is_quantile: bool = False
    """Of quantiles, whose differences are not near to normal: their interval is a bootstrap's, with scipy."""

    @property
    def mean(self) -> float:
        return sum(self.differences) / len(self.differences)

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, by t; with few pairs, the least and the most."""
        n = len(self.differences)
        if self.is_constant or not self.has_interval:
            return min(self.differences), max(self.differences)
        if self.is_quantile and n >= FEWEST_FOR_INTERVAL and can_look_often():
            return _bootstrapped(self.differences, self.alpha)
        variance = sum((one - self.mean) ** 2 for one in self.differences) / (n - 1)
        half = _t_quantile(self.alpha, n - 1) * sqrt(variance / n)
        return self.mean - half, self.mean + half

    @property
    def has_interval(self) -> bool:
        """With few pairs only if it is one of several looks, of which the first are hard to please."""
        return len(self.differences) >= FEWEST_FOR_INTERVAL or self.alpha != _USUAL

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


def _t_quantile(alpha: float, freedom: int) -> float:
    if alpha == _USUAL:
        return _t_975(freedom)
    from scipy import stats

    return float(stats.t.ppf(1 - alpha / 2, freedom))


def _bootstrapped(differences: Sequence[float], alpha: float) -> tuple[float, float]:
    """BCa, always from the same random numbers."""
    import numpy as np
    from scipy import stats

    found = stats.bootstrap(
        (np.array(differences),),
        np.mean,
        n_resamples=_RESAMPLES,
        confidence_level=1 - alpha,
        method="BCa",
        random_state=np.random.default_rng(0),
    ).confidence_interval
    if found.low != found.low or found.high != found.high:  # too few differ
        return min(differences), max(differences)
    return float(found.low), float(found.high)


def can_look_often() -> bool:
    """Whether scipy is there, for other intervals than those of 95 % by t."""
    return find_spec("scipy") is not None


LOOKS = (5, 10, 20, 40)
"""Numbers of seeds after which the intervals are looked at, if more are added until they are narrow."""


def allowed_error(n_seeds: int) -> float:
    """What a look after so many seeds may spend of the 5 % that all looks together have: by O'Brien and Fleming's rule
    hardly anything at first, and what is left at the end."""
    spent = [2 * _above(_NORMAL_975 / sqrt(n / LOOKS[-1])) for n in LOOKS]
    before = dict(zip(LOOKS, (0.0, *spent), strict=False))
    return spent[LOOKS.index(n_seeds)] - before[n_seeds]


def _above(z: float) -> float:
    """The share of the normal distribution above."""
    return erfc(z / sqrt(2)) / 2


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
