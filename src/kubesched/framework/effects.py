"""What the engine asks the world outside to do: small typed records, cheap to make. Nothing here does anything.

An `Effect` carries an action and a number. Whoever carries it out answers under that number: `Done`, `Failed`,
`Withheld`, or what the action's own description says; exactly once, whatever happens to it. Actions that say so are not
answered.

The engine itself asks for bindings, evictions, patches of a pod's status, events and calls of extenders. Plugins may
ask for the first four too, write objects (`WriteObject`, `PatchObject`), and wait for others to act (`WaitUntil`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from kubesched.k8s.model.core import PodCondition
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.scheduling import GroupCondition


class Effect(Struct, frozen=True):
    """One action to carry out."""

    id: int
    action: object


class Done(Struct, frozen=True):
    """The effect came about."""


class Failed(Struct, frozen=True):
    """The effect did not come about, and why. `is_gone`: the object it was about does not exist any more."""

    message: str
    is_gone: bool = False
    reason: str = ""
    """Kubernetes' word for it, where an object was to be written: `AlreadyExists`, `Conflict`, `NotFound`, …"""


class Written(Struct, frozen=True):
    """The object was written. It is now of this version, which is empty where versions are not kept."""

    resource_version: str = ""
    name: str = ""
    """As the API server named it, where it was asked to (`generateName`)."""
    uid: str = ""


class Withheld(Failed, frozen=True, kw_only=True):
    """Nothing was done: at the moment we may not act. The attempt it was for came to nothing, and is made again."""

    message: str = "withheld: the leader election lease is not surely held"


class BindPod(Struct, frozen=True):
    """Bind the pod to the node; the uid keeps a later pod of the same name safe."""

    pod: PodKey
    uid: str
    node_name: str


class PatchPodStatus(Struct, frozen=True):
    """Write a condition, and the nominated node unless it is None (empty takes the nomination back). Not answered."""

    pod: PodKey
    uid: str
    condition: PodCondition | None = None
    nominated_node_name: str | None = None
    is_probe: bool = False
    """The condition is written with the time, as that of its last probe."""


class PatchPodGroupStatus(Struct, frozen=True):
    """Write a condition of a PodGroup, of this generation; with the time, if it `is_turn` from another status. Not
    answered."""

    group: str
    """`namespace/name`"""
    uid: str
    condition: GroupCondition
    generation: int = 0
    is_turn: bool = True


class EvictPod(Struct, frozen=True):
    """Mark the pod as target of a disruption with this condition, then delete it. A pod that was gone before is
    `Failed`, with `is_gone`."""

    pod: PodKey
    uid: str
    condition: PodCondition
    preemptor: PodKey
    """One of its pods, if it is a group."""


class FindOut(Struct, frozen=True):
    """The effect of this number asked for this action, and was not answered in the time that an answer can take. Leave
    off, if it is still under way, and read what became of it. Answered as the action is; where nothing can be read, as
    if it had failed."""

    number: int
    action: object


class RecordEvent(Struct, frozen=True):
    """Record a Kubernetes event about a pod, by this scheduler. Not answered."""

    pod: PodKey
    uid: str
    type: str
    reason: str
    action: str
    note: str
    scheduler_name: str
    related: PodKey | None = None


class WriteObject(Struct, frozen=True):
    """Create an object; or, if its metadata has a `resourceVersion`, replace the one that is still of this version.

    Answered `Written`, or `Failed` with the API server's message and reason. Where an answer is lost, the object is
    read to find out. A name of the plugin's own choice makes it safe to ask again: `AlreadyExists` tells that it was
    done before.
    """

    manifest: Mapping[str, Any]
    """The whole object, as in a file: `apiVersion`, `kind`, `metadata` and the rest."""


class PatchObject(Struct, frozen=True):
    """Change some fields of an object, and leave the others alone. Answered as `WriteObject` is."""

    api_version: str
    kind: str
    key: str
    """`namespace/name`, or the bare name of a cluster-wide object."""
    patch: Mapping[str, Any]
    """What changes, as a JSON merge patch: `None` takes a field away, a list takes the place of the whole list. With
    `metadata.uid` or `metadata.resourceVersion`, it holds only for the object that has them."""
    subresource: str = ""
    """`status`, for what is in the status."""


class WaitUntil(Struct, frozen=True):
    """Wait, in `pre_bind` or `bind`, for what somebody else does: a controller, a device driver.

    Nobody outside carries this out. The loop asks `is_settled` at once, whenever an object of one of the `watched`
    kinds changes, every second, and when the time is over. Answered `Done` once it is settled; `Failed` when
    `timeout_s` have passed before, or when the pod was deleted (then with `is_gone`).
    """

    is_settled: Callable[[], bool]
    """Looks at what the handle shows, and changes nothing."""
    timeout_s: float
    watched: tuple[type[KubeObject], ...] = ()
    looks_at_once: bool = True
    """Without, `is_settled` is not asked before something changed or a second has passed."""


class CallExtender(Struct, frozen=True):
    """POST the body, which is JSON, to an extender. Answered with the body of the response (bytes) if its status is
    200, else with `Failed`; also when `timeout_s` have passed."""

    extender: int
    """The extender's place in the configuration, which says how to talk TLS with it."""
    verb: str
    url: str
    body: bytes
    timeout_s: float
