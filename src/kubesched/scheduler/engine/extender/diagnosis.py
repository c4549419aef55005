"""What was found wrong with each node, extenders included.

An extender's reason for a node stands beside those of the plugins; a node that it dropped without a reason counts as
one that nobody looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.nodes import RowArray
from kubesched.framework.status import Code, Status
from kubesched.scheduler.engine.diagnosis import Diagnosis
from kubesched.scheduler.engine.extender.http_extender import EXTENDER


@dataclass(slots=True)
class ExtendedDiagnosis(Diagnosis):
    extended: Mapping[str, Status] = field(default_factory=dict)
    """By node name; such a node need not exist."""
    dropped_nodes: bool = False
    """Whether extenders left fewer nodes than they were asked about."""

    def status_of(self, node_name: str) -> Status:
        if node_name in self.extended:
            return self.extended[node_name]
        status = Diagnosis.status_of(self, node_name)
        return self.absent if status.is_success else status

    def explicit(self) -> Mapping[str, Status]:
        return {**Diagnosis.explicit(self), **self.extended}

    def resolvable_rows(self) -> RowArray:
        hopeful = np.zeros(len(self.cluster_nodes), dtype=np.bool_)
        hopeful[Diagnosis.resolvable_rows(self)] = True
        for name, status in self.extended.items():
            row = self.cluster_nodes.row_of(name)
            if row is not None:
                hopeful[row] = status.code is Code.UNSCHEDULABLE
        return np.flatnonzero(hopeful)

    def unschedulable_plugins(self) -> frozenset[str]:
        found = Diagnosis.unschedulable_plugins(self)
        return found | {EXTENDER} if self.dropped_nodes else found

    def _reason_counts(self, n_nodes: int) -> dict[str, int]:
        explicit = self.explicit()
        counts = Counter(reason for status in explicit.values() for reason in status.reasons)
        if len(explicit) < n_nodes:
            for reason in self.absent.reasons:
                counts[reason] += n_nodes - len(explicit)
        return counts
