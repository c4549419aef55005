"""What an extender answers, as kube-scheduler reads it: `extender/v1` as JSON.

Next: `requests` for what was asked; `kubesched.scheduler.engine.extender.wire`, which reads these answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from kubesched.plugin_tools.extender_server.requests import NodesRequest
from kubesched.scheduler.engine.extender.wire import MetaVictims

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class NodesVerdict:
    """Why nodes were rejected, by name; all others pass."""

    failed: dict[str, str] = field(default_factory=dict)
    failed_for_good: dict[str, str] = field(default_factory=dict)
    """Evicting pods would not help."""

    def passes(self, name: str) -> bool:
        return name not in self.failed and name not in self.failed_for_good


def filter_answer(request: NodesRequest, verdict: NodesVerdict) -> bytes:
    """`ExtenderFilterResult`, with nodes in the form in which they came."""
    answer = {"FailedNodes": verdict.failed, "FailedAndUnresolvableNodes": verdict.failed_for_good, "Error": ""}
    if request.nodes is None:
        names = [name for name in request.node_names if verdict.passes(name)]
        return _encode({"Nodes": None, "NodeNames": names, **answer})
    texts = [given.text for given in request.nodes if verdict.passes(given.node.name)]
    return _encode({"Nodes": {"metadata": {}, "items": texts}, "NodeNames": None, **answer})


def filter_error(message: str) -> bytes:
    """`ExtenderFilterResult` of a call that failed."""
    return _encode({"Nodes": None, "NodeNames": None, "FailedNodes": {}, "Error": message})


def prioritize_answer(names: Sequence[str], scores: Sequence[int]) -> bytes:
    """`HostPriorityList`."""
    return _encode([{"Host": name, "Score": score} for name, score in zip(names, scores, strict=True)])


def preempt_answer(left: Mapping[str, MetaVictims]) -> bytes:
    """`ExtenderPreemptionResult`."""
    return _encode({"NodeNameToMetaVictims": {name: _victims(victims) for name, victims in left.items()}})


def bind_answer(error: str = "") -> bytes:
    """`ExtenderBindingResult`."""
    return _encode({"Error": error})


def _victims(victims: MetaVictims) -> dict[str, object]:
    return {"Pods": [{"UID": uid} for uid in victims.uids], "NumPDBViolations": victims.n_budget_violations}
