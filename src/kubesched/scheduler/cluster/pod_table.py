"""All pods on nodes as flat columns: on which row, of which label class, with which affinity terms.

Slots are compact (the last pod fills a hole), so that counting is one `bincount` over plain slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.pod_info import PodAffinityTerms, PodInfo, PodSignature
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.selectors import Selector
from kubesched.scheduler.cluster.columns import NumberColumn
from kubesched.scheduler.cluster.signatures import LabelClasses


class PodsWithTerms:
    """Pods on nodes that have the same pod affinity terms, and the row of each. Slots are compact here, too."""

    __slots__ = ("_row", "_signature", "_slots", "_uids")

    def __init__(self, signature: PodSignature) -> None:
        self._signature = signature
        self._row = NumberColumn(np.intp)
        self._slots: dict[str, int] = {}
        self._uids: list[str] = []

    @property
    def terms(self) -> PodAffinityTerms:
        return self._signature.affinity

    @property
    def namespace(self) -> str:
        return self._signature.pod.namespace

    @property
    def rows(self) -> RowArray:
        """A view: valid until the next change."""
        return self._row.data[: len(self._uids)]

    @property
    def is_empty(self) -> bool:
        return not self._uids

    def add(self, uid: str, row: int) -> None:
        slot = self._slots[uid] = len(self._uids)
        self._row.reserve(slot + 1)
        self._row.cells[slot] = row
        self._uids.append(uid)

    def remove(self, uid: str) -> None:
        slot = self._slots.pop(uid)
        last = self._uids.pop()
        self._row.move(len(self._uids), slot)
        if last != uid:
            self._uids[slot] = last
            self._slots[last] = slot

    def move(self, uid: str, row: int) -> None:
        """The pod's row has another number now."""
        self._row.cells[self._slots[uid]] = row


class PodColumns:
    """Implements `framework.PodTable`, and takes the changes."""

    def __init__(self, label_classes: LabelClasses) -> None:
        self._label_classes = label_classes
        self._row = NumberColumn(np.intp)
        self._label_class = NumberColumn(np.intp)
        self._terminating = NumberColumn(np.bool_)
        self._slots: dict[str, int] = {}
        self._by_slot: list[PodInfo] = []
        self._by_row: list[list[PodInfo]] = []
        self._place_on_row: dict[str, int] = {}
        self._affinity_groups: dict[int, PodsWithTerms] = {}
        self._required_anti_groups: dict[int, PodsWithTerms] = {}
        self._n_alike = 0
        self.lowest_priority = inf
        """No pod here has a lower priority than this; perhaps none has one as low any more."""

    def __len__(self) -> int:
        return len(self._by_slot)

    # -- reading -------------------------------------------------------------------------------------------------------

    def on(self, row: int) -> Sequence[PodInfo]:
        return self._by_row[row]

    def classes(self, selector: Selector, namespaces: frozenset[str] | None) -> BoolArray:
        return self._label_classes.picked_by(selector, namespaces)

    def counts(self, classes: BoolArray, *, terminating: bool = True) -> IntArray:
        n = len(self._by_slot) + self._n_alike
        numbers = classes.nonzero()[0]
        if len(numbers) == 1:  # as most selectors pick
            picked = (self._label_class.data[:n] == numbers[0]).nonzero()[0]
        else:
            picked = classes.take(self._label_class.data[:n]).nonzero()[0]
        if not terminating:
            picked = picked[~self._terminating.data.take(picked)]
        rows = self._row.data.take(picked)
        return np.bincount(rows, minlength=len(self._by_row)).astype(np.int64, copy=False)

    def affinity_groups(self, *, required_anti_only: bool = False) -> Sequence[PodsWithTerms]:
        groups = self._required_anti_groups if required_anti_only else self._affinity_groups
        return list(groups.values())

    def find(self, uid: str) -> PodInfo | None:
        slot = self._slots.get(uid)
        return None if slot is None else self._by_slot[slot]

    # -- changing ------------------------------------------------------------------------------------------------------

    def add_row(self) -> None:
        self._by_row.append([])

    def move_row(self, source: int, target: int) -> None:
        """The last row takes the place of an emptied one."""
        moved = self._by_row.pop()
        if source == target:
            return
        self._by_row[target] = moved
        for info in moved:
            uid = info.uid
            self._row.cells[self._slots[uid]] = target
            if info.signature.affinity_class >= 0:
                self._affinity_groups[info.signature.affinity_class].move(uid, target)

    def add(self, info: PodInfo, row: int) -> None:
        slot = len(self._by_slot)
        if slot == len(self._row.data):
            for column in (self._row, self._label_class, self._terminating):
                column.reserve(slot + 1)
        self._by_slot.append(info)
        uid, signature = info.uid, info.signature
        self._place_on_row[uid] = len(self._by_row[row])
        self._by_row[row].append(info)
        self._slots[uid] = slot
        self._row.cells[slot] = row
        self._label_class.cells[slot] = signature.label_class
        pod = info.pod
        self._terminating.cells[slot] = pod.metadata.deletion_timestamp is not None
        priority = pod.spec.priority or 0
        if priority < self.lowest_priority:
            self.lowest_priority = float(priority)
        if signature.affinity_class >= 0:
            self._group_of(signature).add(uid, row)

    def remove(self, info: PodInfo) -> int:
        """Takes the pod off its row, which it returns."""
        uid = info.uid
        slot = self._slots.pop(uid)
        info = self._by_slot[slot]
        row = self._row.cells[slot]
        self._take_off(row, uid)
        last = len(self._by_slot) - 1
        moved = self._by_slot.pop()
        if slot != last:
            self._by_slot[slot] = moved
            self._slots[moved.uid] = slot
        for column in (self._row, self._label_class, self._terminating):
            column.move(last, slot)
        if info.signature.affinity_class >= 0:
            self._leave_group(uid, info.signature.affinity_class)
        return row

    def replace(self, info: PodInfo) -> bool:
        """A newer state of a pod that counts as before; False if it is not here."""
        slot = self._slots.get(info.uid)
        if slot is None:
            return False
        self._by_slot[slot] = info
        priority = info.pod.spec.priority or 0
        if priority < self.lowest_priority:
            self.lowest_priority = float(priority)
        self._by_row[self._row.cells[slot]][self._place_on_row[info.uid]] = info
        return True

    def count_alike(self, info: PodInfo, rows: RowArray) -> None:
        """Until it is called again, pods like this one count on these rows (one for each time that a row is named),
        without being there. They have no affinity terms."""
        n, self._n_alike = len(self._by_slot), len(rows)
        for column in (self._row, self._label_class, self._terminating):
            column.reserve(n + len(rows))
        self._row.data[n : n + len(rows)] = rows
        self._label_class.data[n : n + len(rows)] = info.signature.label_class
        self._terminating.data[n : n + len(rows)] = False

    def restore_order(self, row: int, pods: list[PodInfo]) -> None:
        """The pods of a row in the order they had before some were taken away and brought back."""
        self._by_row[row][:] = pods
        self._place_on_row.update((info.uid, place) for place, info in enumerate(pods))

    def _take_off(self, row: int, uid: str) -> None:
        """The last pod of the row fills the hole."""
        pods = self._by_row[row]
        place = self._place_on_row.pop(uid)
        last = pods.pop()
        if place < len(pods):
            pods[place] = last
            self._place_on_row[last.uid] = place

    def _group_of(self, signature: PodSignature) -> PodsWithTerms:
        """The group that pods with this signature belong to, made for the first of them."""
        number = signature.affinity_class
        group = self._affinity_groups.get(number)
        if group is None:
            group = self._affinity_groups[number] = PodsWithTerms(signature)
            if group.terms.required_anti:
                self._required_anti_groups[number] = group
        return group

    def _leave_group(self, uid: str, number: int) -> None:
        group = self._affinity_groups[number]
        group.remove(uid)
        if group.is_empty:
            del self._affinity_groups[number]
            self._required_anti_groups.pop(number, None)
