"""What the engine asks the world outside to do: small typed records. Nothing here does anything.

An `Effect` carries an action and a number. Whoever carries it out answers under that number: `Done`, `Failed`, or what
the action's own description says. Actions that say so are not answered.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.model.core import PodCondition
from kubesched.model.meta import PodKey


@dataclass(frozen=True, slots=True)
class Effect:
    """One action to carry out."""

    id: int
    action: object


@dataclass(frozen=True, slots=True)
class Done:
    """The effect came about."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The effect did not come about, and why. `is_gone`: the object it was about does not exist any more."""

    message: str
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class BindPod:
    """Bind the pod to the node; the uid keeps a later pod of the same name safe."""

    pod: PodKey
    uid: str
    node_name: str


@dataclass(frozen=True, slots=True)
class PatchPodStatus:
    """Write a condition, and the nominated node unless it is None (empty takes the nomination back). Not answered."""

    pod: PodKey
    uid: str
    condition: PodCondition | None = None
    nominated_node_name: str | None = None


@dataclass(frozen=True, slots=True)
class EvictPod:
    """Mark the pod as target of a disruption with this condition, then delete it. A pod that is gone is `Done`."""

    pod: PodKey
    uid: str
    condition: PodCondition
    preemptor: PodKey


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Record a Kubernetes event about a pod, by this scheduler. Not answered."""

    pod: PodKey
    uid: str
    type: str
    reason: str
    action: str
    note: str
    scheduler_name: str
    related: PodKey | None = None


@dataclass(frozen=True, slots=True)
class CallExtender:
    """POST the body, which is JSON, to an extender. Answered with the body of the response (bytes) if its status is
    200, else with `Failed`; also when `timeout_s` have passed."""

    extender: int
    """The extender's place in the configuration, which says how to talk TLS with it."""
    verb: str
    url: str
    body: bytes
    timeout_s: float
