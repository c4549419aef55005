"""The pretend cluster: all parts around one scheduling loop, and time that passes.

At every instant, in this order and until nothing moves: effects of the scheduler are carried out, the scheduler takes
the next pod, what is due happens (pods start and end, a scenario goes on), controllers look. Then time jumps to
whatever comes next. It ends when nothing can come any more: no happening is planned, no binding is under way, and every
pod that waits was tried in vain since the last change.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.engine.loop import SchedulingLoop
from kubesched.framework.effects import RecordEvent
from kubesched.model.core import Node, Pod
from kubesched.model.manifests import KINDS
from kubesched.model.meta import KubeObject
from kubesched.simulator.expansion.names import NameSource
from kubesched.simulator.ledger import PodLedger
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.utilisation import UtilisationMeter
from kubesched.simulator.virtual.clock import VirtualClock
from kubesched.simulator.virtual.controllers import ControllerSet
from kubesched.simulator.virtual.deletion import Deletions
from kubesched.simulator.virtual.device_claims import DeviceClaims
from kubesched.simulator.virtual.drains import Drains
from kubesched.simulator.virtual.effects import EffectHandler
from kubesched.simulator.virtual.intake import ObjectIntake
from kubesched.simulator.virtual.kubelets import Kubelets
from kubesched.simulator.virtual.node_faults import NodeFaults
from kubesched.simulator.virtual.store import ClusterStore
from kubesched.simulator.virtual.syncing import ControllerRules
from kubesched.simulator.virtual.taint_evictions import TaintEvictions

_SCHEDULER_KINDS = frozenset(KINDS.values())
