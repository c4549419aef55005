"""NodeLabel: nodes must have some labels and lack others, or are better if they do."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.older.plugins.node_checks import LABEL_PRESENCE
from kubesched.older.plugins.rejection import Reason, ReasonedFilter


class NodeLabel(ReasonedFilter):
    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        labels = node.node.labels
        has_all = all(label in labels for label in self.args.get("presentLabels") or ())
        lacks_all = all(label not in labels for label in self.args.get("absentLabels") or ())
        return () if has_all and lacks_all else (LABEL_PRESENCE,)

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """The share of preferences that are met; without any there is nothing to share, and the plugin breaks."""
        labels = node.node.labels
        present = self.args.get("presentLabelsPreference") or ()
        absent = self.args.get("absentLabelsPreference") or ()
        met = sum(label in labels for label in present) + sum(label not in labels for label in absent)
        return met * self.generation.highest_score // (len(present) + len(absent))
