"""The contract: all that a plugin author imports; nothing else of kubesched is needed.

Read in this order: `extension_points` (what a plugin can implement), `status` and `verdicts` (what it answers),
`nodes` and `pod_info` (what it is asked about), `cycle_state` (what it may remember), `handle` (what else it may look
at), `events` (when its rejected pods deserve another try), `effects` (what it may ask the world outside for), `caching`
(how long its answers stay true).
"""

from kubesched.framework.caching import PodChange, Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.effects import (
    BindPod,
    Done,
    EvictPod,
    Failed,
    PatchObject,
    PatchPodStatus,
    RecordEvent,
    WaitUntil,
    WriteObject,
    Written,
)
from kubesched.framework.events import ActionType, ClusterEvent, EventResource, Hint, RegisteredEvent
from kubesched.framework.extension_points import PermitResult, QueuedPod, Steps
from kubesched.framework.handle import Handle, HeldPod, Objects, PluginFactory, Registry
from kubesched.framework.nodes import Column, NodeInfo, NodeTable, PodTable
from kubesched.framework.pod_info import AffinityTerm, PodInfo, PodSignature
from kubesched.framework.results import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    NodeStatuses,
    NominatingMode,
    PostFilterResult,
    PreFilterResult,
    Scores,
    default_normalize_score,
)
from kubesched.framework.status import OK, SKIP, Code, Status
from kubesched.framework.verdicts import ACCEPT_ALL, Verdicts

__all__ = [
    "ACCEPT_ALL",
    "MAX_NODE_SCORE",
    "MIN_NODE_SCORE",
    "OK",
    "SKIP",
    "ActionType",
    "AffinityTerm",
    "BindPod",
    "ClusterEvent",
    "Code",
    "Column",
    "CycleState",
    "Done",
    "EventResource",
    "EvictPod",
    "Failed",
    "Handle",
    "HeldPod",
    "Hint",
    "NodeInfo",
    "NodeStatuses",
    "NodeTable",
    "NominatingMode",
    "Objects",
    "PatchObject",
    "PatchPodStatus",
    "PermitResult",
    "PluginFactory",
    "PodChange",
    "PodInfo",
    "PodSignature",
    "PodTable",
    "PostFilterResult",
    "PreFilterResult",
    "QueuedPod",
    "RecordEvent",
    "RegisteredEvent",
    "Registry",
    "Scope",
    "Scores",
    "Status",
    "Steps",
    "Verdicts",
    "WaitUntil",
    "WriteObject",
    "Written",
    "default_normalize_score",
]
