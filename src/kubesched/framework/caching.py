"""How long an answer stays true: all that a plugin says so that its answers can be kept for the next pod with the same
signature.

None of it is needed. A plugin that says nothing is asked again for every pod, which is always right.

| the plugin says | by | without it |
|---|---|---|
| what its answer for a node depends on | `filter_scope`, `score_scope` | it is asked again for every pod |
| the same, pod by pod | `filter_scope_for`, `score_scope_for` | the attributes count for all pods |
| how prepared state follows pods | `pods_changed` | with scope `CLUSTER` nothing is kept |
| which pods it need not follow | `minds_pods`, `minds_pods_without_terms` | it is notified of all |
| whether prepared state outlives nodes | `nodes_changed` | prepared again when any node changes |
| which other objects matter | `objects_changed`, `reads_objects` | prepared again when any object changes |
| which pods it has nothing to do for | `has_stake_in` | `reserve` and `pre_bind` run for every pod |

Pods with claims (for volumes or devices) share what was found out for one of them, too. Claims differ by pod, what they
ask does not: a class of storage and a size, the topology of a bound volume, devices of a class. A plugin that looks at
claims says what a pod's claims ask, without what is their own (`question_of`). Pods that differ in the names of their
claims alone, and ask the same, are of one class. Where a plugin cannot say that, it is asked about every such pod by
itself; the others' answers are kept all the same.

A cycle that is prepared for a class belongs to no pod: `generalize` takes out what is the pod's own, and `take_over`
puts another pod's claims in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.extension_points import Filter, Plugin, PreFilter
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.meta import KubeObject

# -- what an answer depends on -----------------------------------------------------------------------------------------


class Scope(Enum):
    """What a plugin's answer for one node depends on, beside the pod. It says how long an answer stays true.

    A plugin states it as the class attributes `filter_scope` and `score_scope`, or pod by pod as methods
    `filter_scope_for` and `score_scope_for`; without them it is asked again for every pod. `CLUSTER` plugins that also
    have `pods_changed` keep their state up to date and are asked with it. The narrower the scope, the less often a
    plugin is asked; one that is too narrow gives answers that are out of date. `AMOUNTS` and `ROW` need the form for a
    single node (`filter_node`, `score_node`); scores of scope `NODES` and `AMOUNTS` must not need normalising.
    """

    NODE = "node"
    """The node's own object: the answer stays true until the node changes."""
    NODES = "nodes"
    """All nodes' objects: the answer for any node stays true until one of them changes."""
    AMOUNTS = "amounts"
    """What the node has of each resource, what is requested there and how many pods it has: the answer is the same for
    all nodes on which these are the same."""
    ROW = "row"
    """The node's object and the pods on it: the answer stays true until one of these changes."""
    CLUSTER = "cluster"
    """Anything else in the cluster."""


SCOPE_ATTRIBUTES = ("filter_scope", "score_scope")
"""By which a plugin states its scopes; with `_for` behind them, pod by pod."""
WITHIN_NODE = frozenset({Scope.NODE, Scope.AMOUNTS, Scope.ROW})
"""The scopes of answers that depend on nothing but the node that they are about."""


def filter_scope_for(plugin: Plugin) -> Callable[[PodInfo], Scope | None]:
    """What the plugin's verdict depends on, for a pod; None if the plugin does not say."""
    return _scope_for(plugin, "filter_scope")


def score_scope_for(plugin: Plugin) -> Callable[[PodInfo], Scope | None]:
    """What the plugin's raw score depends on, for a pod; None if the plugin does not say."""
    return _scope_for(plugin, "score_scope")


def states_scope(plugin: Plugin) -> bool:
    """Whether the plugin says for any pod what its answers depend on."""
    return any(hasattr(plugin, name) or hasattr(plugin, f"{name}_for") for name in SCOPE_ATTRIBUTES)


def _scope_for(plugin: Plugin, attribute: str) -> Callable[[PodInfo], Scope | None]:
    by_pod: Callable[[PodInfo], Scope | None] | None = getattr(plugin, f"{attribute}_for", None)
    if by_pod is not None:
        return by_pod
    scope: Scope | None = getattr(plugin, attribute, None)
    return lambda _pod: scope


# -- what follows changes ----------------------------------------------------------------------------------------------

PodChange = tuple[int, PodInfo, bool]
"""(row, pod, whether it came or left)"""


@runtime_checkable
class FollowsPods(Plugin, Protocol):
    """A plugin whose prepared state (of filter, score, or both) can follow the pods that come and go.

    What the table says of pods at the time of the call must not be looked at: it may be ahead of what the plugin is
    being told.
    """

    def pods_changed(self, cycle: CycleState, pod: PodInfo, changes: Sequence[PodChange]) -> bool:
        """Pods came to nodes, or left them, in this order. True: the state answers as if `pre_filter` and `pre_score`
        had prepared it just now, whichever of the two prepared it. False: it does not, and must be prepared again."""
        ...


@runtime_checkable
class MindsSomePods(FollowsPods, Protocol):
    """One that knows for which pods it has nothing to follow. For the others it is notified of every change."""

    def minds_pods(self, cycle: CycleState, pod: PodInfo) -> bool:
        """Asked once, after `pre_filter` and `pre_score`. False: whatever pods come and go, it has nothing to say."""
        ...


@runtime_checkable
class MindsPodsWithTerms(FollowsPods, Protocol):
    """One to which pods that come and go may matter only for their own terms of pod affinity and anti-affinity."""

    def minds_pods_without_terms(self, cycle: CycleState, pod: PodInfo) -> bool:
        """Asked once, after `pre_filter` and `pre_score`. False: it is notified only of changes among which there is a
        pod with such terms."""
        ...


def minds_pods(plugin: FollowsPods, cycle: CycleState, pod: PodInfo) -> bool:
    """Whether the plugin has pods to follow; True unless it says that it has not."""
    said: Callable[[CycleState, PodInfo], bool] | None = getattr(plugin, "minds_pods", None)
    return said is None or said(cycle, pod)


def minds_pods_without_terms(plugin: FollowsPods, cycle: CycleState, pod: PodInfo) -> bool:
    """Whether the plugin has pods without affinity terms to follow; True unless it says that it has not."""
    said: Callable[[CycleState, PodInfo], bool] | None = getattr(plugin, "minds_pods_without_terms", None)
    return said is None or said(cycle, pod)


@runtime_checkable
class FollowsNodes(FollowsPods, Protocol):
    """One that can also tell whether its state minds nodes that come, change and leave. For a pod about which it has
    something to say, in filter or score, it is not asked: state is prepared again."""

    def nodes_changed(self, cycle: CycleState, pod: PodInfo) -> bool:
        """True: it still has nothing to say, whatever nodes there are; `pods_changed` goes on telling it of pods, on
        rows that have other numbers now. False: it must be prepared again."""
        ...


@runtime_checkable
class FollowsObjects(Plugin, Protocol):
    """A plugin that looks at objects other than nodes and pods, and knows which of them matter for what.

    One that looks at no such object says so by `reads_objects = False`. Of any other plugin it is not known what it
    looks at: state is prepared again after every change.
    """

    def objects_changed(self, cycle: CycleState, pod: PodInfo, changed: Sequence[KubeObject]) -> bool:
        """These came, changed or left. True: what was prepared is as it would be prepared now."""
        ...


def reads_objects(plugin: Plugin) -> bool:
    """Whether the plugin may look at objects other than nodes and pods; True unless it says that it does not."""
    return bool(getattr(plugin, "reads_objects", True))


# -- what need not be done ---------------------------------------------------------------------------------------------


@runtime_checkable
class HasStakeInSomePods(Plugin, Protocol):
    """A plugin of reserve or preBind that knows which pods it has nothing to do for."""

    def has_stake_in(self, pod: PodInfo) -> bool:
        """Asked of one pod for all with its signature, and again when an object that it follows changed. False:
        `reserve` would keep nothing, and `pre_bind` has nothing to do."""
        ...


def has_stake_in(plugin: Plugin, pod: PodInfo) -> bool:
    """Whether a plugin of reserve or preBind has something to do for the pod; True unless it says that it has not."""
    said: Callable[[PodInfo], bool] | None = getattr(plugin, "has_stake_in", None)
    return said is None or said(pod)


@dataclass(frozen=True, slots=True)
class ClaimQuestion:
    """Pods whose questions are equal are given the same answers, which depend on what the scopes say and on objects
    that the plugin follows by itself. It must not be asked where a node may be answered by an error. The scopes follow
    from what is asked."""

    asked: Hashable
    filter_scope: Scope = Scope.NODE
    score_scope: Scope = Scope.NODE


@runtime_checkable
class LooksAtClaims(PreFilter, Filter, Protocol):
    """A plugin of PreFilter and Filter that looks at the claims of pods. It is asked about pods for which its filter is
    not of scope `NODE`. For such a pod it is not asked how state follows objects: it says itself about which nodes its
    answer is another."""

    def question_of(self, pod: PodInfo) -> ClaimQuestion | None:
        """What the pod's claims ask, as they are now; None if that cannot be said."""
        ...

    def generalize(self, cycle: CycleState, pod: PodInfo) -> None:
        """`pre_filter` prepared the cycle for this pod: from here on it is for all that ask the same."""
        ...

    def take_over(self, cycle: CycleState, pod: PodInfo) -> bool:
        """The cycle comes from a generalized one: from here on it is for this pod, which asked the same just now.
        False if the answers are not the pod's after all."""
        ...

    def nodes_to_ask_again(
        self, cycle: CycleState, pod: PodInfo, changes: Sequence[PodChange]
    ) -> Collection[str] | None:
        """Of a generalized cycle: the nodes about which the answer may be another than when this was last asked,
        beside those whose pods changed (`changes`, which are told); None if it must be prepared again."""
        ...
