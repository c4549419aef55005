"""Answers of the stages that say more than a status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.status import OK, Status


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
    """What became of the attempt to make room. `node_name` counts under `OVERRIDE`."""

    status: Status
    mode: NominatingMode = NominatingMode.NOOP
    node_name: str = ""


class NodeStatuses(Protocol):
    """Why each node was rejected. Nodes outside the search share one status (`absent`)."""

    @property
    def absent(self) -> Status: ...

    def status_of(self, node_name: str) -> Status: ...

    def explicit(self) -> Mapping[str, Status]: ...

    def resolvable_rows(self) -> NDArray[np.intp]:
        """Rows of nodes that were rejected, but not for good, ascending: where evictions may help."""
        ...
