"""How pods with claims (for volumes or devices) share what was found out for one of them.

Claims differ by pod, what they ask does not: a class of storage and a size, the topology of a bound volume, devices of
a class. A plugin that looks at claims says what a pod's claims ask, without what is their own (`question_of`). Pods
that differ in the names of their claims alone, and ask the same, are of one class. Where a plugin cannot say that, it
is asked about every such pod by itself; the others' answers are kept all the same.

A cycle that is prepared for a class belongs to no pod: `generalize` takes out what is the pod's own, and `take_over`
puts another pod's claims in.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kubesched.framework.caching import PodChange, Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.extension_points import Filter, PreFilter
from kubesched.framework.pod_info import PodInfo


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
