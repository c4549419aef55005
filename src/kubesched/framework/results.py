"""Answers of extension points that are more than a status: PreFilter and PostFilter results, and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.status import OK, Status

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


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """Whether the pod can go anywhere at all, and if only to some nodes, their names (which need not exist)."""

    status: Status = OK
    node_names: frozenset[str] | None = None


class NominatingMode(Enum):
    NOOP = "Noop"
    """Leave the pod's nomination as it is."""
    OVERRIDE = "Override"
    """Nominate this node; an empty name takes the nomination back."""


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The outcome of PostFilter, such as preemption. `node_name` counts under `OVERRIDE`."""

    status: Status
    mode: NominatingMode = NominatingMode.NOOP
    node_name: str = ""
    lasts: bool = False
    """The next pod with the same signature would be answered the same, as long as nodes, the pods on them and those
    nominated to them stay as they are: it need not be asked."""


class NodeStatuses(Protocol):
    """Why each node was rejected. Nodes outside the search share one status (`absent`)."""

    @property
    def absent(self) -> Status: ...

    def status_of(self, node_name: str) -> Status: ...

    def explicit(self) -> Mapping[str, Status]: ...

    def resolvable_rows(self) -> NDArray[np.intp]:
        """Rows of nodes that were rejected, but not for good, ascending: where evictions may help."""
        ...
