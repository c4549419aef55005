"""The contract: all that a plugin author imports.

Read in this order: `stages` (where a plugin can take part), `status` and `verdicts` (what it answers), `nodes` and
`pod_info` (what it is asked about), `cycle` (what it may remember), `handle` (what else it may look at),
`events` (when its rejected pods deserve another try).
"""

from kubesched.framework.cycle import Cycle
from kubesched.framework.events import ActionType, ClusterEvent, EventResource, Hint, RegisteredEvent
from kubesched.framework.handle import Handle, Objects
from kubesched.framework.nodes import Column, NodeInfo, NodeTable, PodTable
from kubesched.framework.pod_info import AffinityTerm, PodInfo, PodShape
from kubesched.framework.registry import PluginFactory, Registry
from kubesched.framework.results import NodeStatuses, NominatingMode, PostFilterResult, PreFilterResult
from kubesched.framework.scores import MAX_NODE_SCORE, MIN_NODE_SCORE, default_normalize_score
from kubesched.framework.status import OK, Code, Status
from kubesched.framework.verdicts import ACCEPT_ALL, Verdicts

__all__ = [
    "ACCEPT_ALL",
    "MAX_NODE_SCORE",
    "MIN_NODE_SCORE",
    "OK",
    "ActionType",
    "AffinityTerm",
    "ClusterEvent",
    "Code",
    "Column",
    "Cycle",
    "EventResource",
    "Handle",
    "Hint",
    "NodeInfo",
    "NodeStatuses",
    "NodeTable",
    "NominatingMode",
    "Objects",
    "PluginFactory",
    "PodInfo",
    "PodShape",
    "PodTable",
    "PostFilterResult",
    "PreFilterResult",
    "RegisteredEvent",
    "Registry",
    "Status",
    "Verdicts",
    "default_normalize_score",
]
