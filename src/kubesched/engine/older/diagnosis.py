"""The message of an unschedulable pod, as older schedulers worded it: no word of preemption, every node counted."""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.engine.diagnosis import Diagnosis


@dataclass(slots=True)
class OlderDiagnosis(Diagnosis):
    def message(self) -> str:
        n = len(self.cluster_nodes)
        if not self.prefilter.status.is_success:
            counts = dict.fromkeys(self.prefilter.status.reasons, n)
        else:
            counts = {} if self.filtered is None else self.filtered.reason_counts()
        lines = sorted(f"{count} {reason}" for reason, count in counts.items())
        return f"0/{n} nodes are available: {', '.join(lines)}."
