"""The range of scores, and the usual way to stretch raw scores over it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MIN_NODE_SCORE = 0
MAX_NODE_SCORE = 100

Scores = NDArray[np.int64]


def default_normalize_score(scores: Scores, *, reverse: bool, highest: int = MAX_NODE_SCORE) -> Scores:
    """Scales so that the largest raw score becomes `highest`; `reverse` turns the order round."""
    top = int(scores.max(initial=0))
    if top == 0:
        return np.full_like(scores, highest) if reverse else scores
    scaled: Scores = highest * scores // top
    return highest - scaled if reverse else scaled
