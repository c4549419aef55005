"""The message of an unschedulable pod, as older schedulers worded it: no word of preemption, every node counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from kubesched.scheduler.engine.extender.cycle import ExtendedDiagnosis
from kubesched.scheduler.engine.postfilter import Diagnosis


@dataclass(slots=True)
class OlderDiagnosis(Diagnosis):
    def message(self) -> str:
        if not self.prefilter.status.is_success:
            return rejected_as_a_whole(self)
        return fit_error(len(self.cluster_nodes), {} if self.filtered is None else self.filtered.reason_counts())


def message_with_extenders(diagnosis: ExtendedDiagnosis) -> str:
    """The same of a search in which extenders took part: their reasons stood beside those of the others, and a node
    that they dropped without one was not counted."""
    if not diagnosis.prefilter.status.is_success:
        return rejected_as_a_whole(diagnosis)
    found = diagnosis.explicit().values()
    return fit_error(len(diagnosis.cluster_nodes), Counter(reason for status in found for reason in status.reasons))


def rejected_as_a_whole(diagnosis: Diagnosis) -> str:
    n = len(diagnosis.cluster_nodes)
    return fit_error(n, dict.fromkeys(diagnosis.prefilter.status.reasons, n))


def fit_error(n_nodes: int, counts: Mapping[str, int]) -> str:
    lines = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{n_nodes} nodes are available: {', '.join(lines)}."
