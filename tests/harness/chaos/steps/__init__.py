"""What can happen in a run, by verb. Each gets the simulation and the step, and says whether it did anything.

`cluster_steps` are users, kubelets and controllers; `wire_steps` what becomes of facts and requests on their way;
`loop_steps` the scheduler's own: cycles, time, leadership, restarts; `pause_steps` what stands still, or jumps.
"""

from harness.chaos.steps.cluster_steps import CLUSTER_VERBS
from harness.chaos.steps.loop_steps import LOOP_VERBS
from harness.chaos.steps.pause_steps import PAUSE_VERBS
from harness.chaos.steps.wire_steps import WIRE_VERBS

VERBS = {**CLUSTER_VERBS, **WIRE_VERBS, **LOOP_VERBS, **PAUSE_VERBS}

_NEEDS_THE_WIRE = frozenset({*WIRE_VERBS, "restart"}) - {"timeout", "lose", "disconnect"}
STOPPED_BY = {"": frozenset(), "network": _NEEDS_THE_WIRE, "server": _NEEDS_THE_WIRE | CLUSTER_VERBS.keys()}
"""What cannot happen while this is frozen."""

__all__ = ["CLUSTER_VERBS", "LOOP_VERBS", "PAUSE_VERBS", "STOPPED_BY", "VERBS", "WIRE_VERBS"]
