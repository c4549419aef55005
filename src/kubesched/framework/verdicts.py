"""What a filter found for a whole table of nodes: one bit per reason and node.

Not a bare mask: the counts in the message, the unresolvable flag that preemption needs, and one node's `Status` all
come from the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.status import OK, Code, Status

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """`bits[r, n]` says that reason `r` rejects node `n`; a node without a bit is accepted.

    `unresolvable[n]` says that no eviction would help on node `n`. `errors` holds nodes whose check broke: such a
    node ends the cycle. Positions are those of the table the filter was given.
    """

    reasons: tuple[str, ...]
    bits: BoolArray
    unresolvable: BoolArray
    errors: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def reject(cls, mask: BoolArray, reason: str, *, unresolvable: bool | BoolArray = False) -> Verdicts:
        """Rejects the nodes of the mask for one reason; `ACCEPT_ALL` when it is empty."""
        if not np.count_nonzero(mask):
            return ACCEPT_ALL
        return cls((reason,), np.asarray(mask)[np.newaxis, :], _marked(mask, unresolvable))

    @classmethod
    def combine(cls, findings: Iterable[tuple[str, BoolArray, bool | BoolArray]]) -> Verdicts:
        """From (reason, mask, unresolvable) triples. A node is unresolvable as soon as one of its reasons is."""
        found = [finding for finding in findings if np.count_nonzero(finding[1])]
        if not found:
            return ACCEPT_ALL
        if len(found) == 1:
            reason, mask, flags = found[0]
            return cls((reason,), np.asarray(mask)[np.newaxis, :], _marked(mask, flags))
        bits = np.array([mask for _, mask, _ in found])
        unresolvable = np.zeros(bits.shape[1], dtype=np.bool_)
        for _, mask, flags in found:
            if flags is not False:
                unresolvable |= _marked(mask, flags)
        return cls(tuple(reason for reason, _, _ in found), bits, unresolvable)

    @classmethod
    def from_statuses(cls, statuses: list[Status]) -> Verdicts:
        """From one status per node: how a plugin that answers node by node joins the others."""
        found = [(position, status) for position, status in enumerate(statuses) if status is not OK]
        if not found:
            return ACCEPT_ALL
        reasons: dict[str, int] = {}
        hits: list[tuple[int, int]] = []
        unresolvable = np.zeros(len(statuses), dtype=np.bool_)
        errors: dict[int, str] = {}
        for position, status in found:
            if status.code is Code.ERROR:
                errors[position] = status.message
            elif not status.is_success:
                if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    unresolvable[position] = True
                hits.extend((reasons.setdefault(reason, len(reasons)), position) for reason in status.reasons or ("",))
        if not reasons and not errors:
            return ACCEPT_ALL
        bits = np.zeros((len(reasons), len(statuses)), dtype=np.bool_)
        if hits:
            bits[tuple(zip(*hits, strict=True))] = True
        return cls(tuple(reasons), bits, unresolvable, errors)

    @property
    def rejected(self) -> BoolArray:
        """(n_nodes,) which nodes are rejected, or broke. Not to be written to."""
        if len(self.bits) == 1 and not self.errors:
            only: BoolArray = self.bits[0]
            return only
        mask = np.asarray(self.bits.any(axis=0), dtype=np.bool_)
        for position in self.errors:
            mask[position] = True
        return mask

    def status(self, position: int) -> Status:
        if position in self.errors:
            return Status.error(self.errors[position])
        if not self.reasons:
            return OK
        reasons = tuple(reason for reason, hit in zip(self.reasons, self.bits[:, position], strict=True) if hit)
        if not reasons:
            return OK
        reasons = tuple(reason for reason in reasons if reason)
        return Status.unresolvable(*reasons) if self.unresolvable[position] else Status.unschedulable(*reasons)


def _marked(mask: BoolArray, flags: bool | BoolArray) -> BoolArray:
    """The nodes of the mask that the flags apply to."""
    if flags is True:
        return mask
    return np.zeros(len(mask), dtype=np.bool_) if flags is False else mask & flags


ACCEPT_ALL = Verdicts((), np.zeros((0, 0), dtype=np.bool_), np.zeros(0, dtype=np.bool_))
"""No node is rejected, however many there are. Compare with `is`: its arrays have no length."""
