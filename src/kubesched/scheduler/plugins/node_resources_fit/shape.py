"""A scoring function made of straight lines between points, as a table over whole percents of utilization."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from kubesched.framework import MAX_NODE_SCORE
from kubesched.framework.nodes import IntArray
from kubesched.scheduler.config.plugin_args import UtilizationShapePoint

MAX_UTILIZATION = 100
MAX_CUSTOM_SCORE = 10
"""Points are scored from 0 to 10 in the configuration."""


@lru_cache(maxsize=64)
def broken_linear(shape: tuple[UtilizationShapePoint, ...]) -> IntArray:
    """(101,) the score at 0, 1, … 100 percent. Before the first and beyond the last point the line is level."""
    scale = MAX_NODE_SCORE // MAX_CUSTOM_SCORE
    points = [(point.utilization, point.score * scale) for point in shape]
    table = np.array([_value_at(percent, points) for percent in range(MAX_UTILIZATION + 1)], dtype=np.int64)
    table.flags.writeable = False
    return table


def _value_at(percent: int, points: Sequence[tuple[int, int]]) -> int:
    before = points[0]
    for utilization, score in points:
        if percent <= utilization:
            if percent <= before[0]:
                return before[1]
            rise = (score - before[1]) * (percent - before[0])
            # Integers are cut toward zero here, also on a falling line.
            return before[1] + int(rise / (utilization - before[0]))
        before = (utilization, score)
    return before[1]
