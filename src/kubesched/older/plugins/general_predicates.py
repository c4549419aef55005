"""GeneralPredicates of 1.14: four checks as one predicate, which tells the reasons of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.older.config.generations import Generation
from kubesched.older.plugins.node_affinity import OlderNodeAffinity
from kubesched.older.plugins.node_checks import OlderNodeName, OlderNodePorts
from kubesched.older.plugins.node_resources import OlderNodeResourcesFit
from kubesched.older.plugins.rejection import Reason, ReasonedFilter

_PARTS = (OlderNodeResourcesFit, OlderNodeName, OlderNodePorts, OlderNodeAffinity)


class GeneralPredicates(ReasonedFilter):
    def __init__(self, name: str, args: Mapping[str, Any], handle: Handle, generation: Generation) -> None:
        super().__init__(name, args, handle, generation)
        self._parts: list[ReasonedFilter] = [part(name, args, handle, generation) for part in _PARTS]

    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        return [reason for part in self._parts for reason in part.reasons(cycle, pod, node)]
