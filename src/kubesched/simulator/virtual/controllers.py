"""Runs controllers on what changed, and carries out what they plan.

A change marks those objects whose controllers care (`routing`); `sync` lets each of them look once (`syncing`). They
act at the instant of the change, but after the scheduler has done all it could: many changes make one look.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.workloads.actions import Action, CreateObject, UpdateObject
from kubesched.k8s.workloads.admission import AdmissionError
from kubesched.simulator.virtual.clock import VirtualClock
from kubesched.simulator.virtual.deletion import Deletions
from kubesched.simulator.virtual.intake import AlreadyExistsError, ObjectEventHandlers, plural
from kubesched.simulator.virtual.routing import concerned
from kubesched.simulator.virtual.store import ClusterStore
from kubesched.simulator.virtual.syncing import ControllerRules

BY_CONTROLLER = "deleted by its controller"

Mark = tuple[type[KubeObject], str]


class ControllerSet:
    def __init__(
        self,
        clock: VirtualClock,
        store: ClusterStore,
        intake: ObjectEventHandlers,
        deletions: Deletions,
        rules: ControllerRules,
        refused: Callable[[KubeObject, str], None],
    ) -> None:
        """`refused` hears of what a controller could not create: (owner, message)."""
        self._clock = clock
        self._store = store
        self._intake = intake
        self._deletions = deletions
        self._rules = rules
        self._refused = refused
        self._marked: dict[Mark, None] = {}
        self._looks_at_s: dict[Mark, float] = {}
        self._n_held_back: dict[Mark, int] = {}
        store.listen(self._on_change)

    def not_created(self) -> list[tuple[KubeObject, int]]:
        """Workloads of which so many pods wait that the rest is not made yet, and how many that is."""
        known = ((self._store.find(kind, key), n) for (kind, key), n in self._n_held_back.items())
        return [(item, n) for item, n in known if item is not None]

    def sync(self) -> bool:
        """Lets every controller look that has a reason to; False if none had."""
        if not self._marked:
            return False
        marked, self._marked = self._marked, {}
        for kind, key in marked:
            item = self._store.find(kind, key)
            if item is not None:
                self._look_at(item)
        return True

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        for item in concerned(self._store, before, after):
            self._marked[type(item), item.key] = None

    def _look_at(self, item: KubeObject) -> None:
        plan = self._rules.plan(item)
        for action in plan.actions:
            self._carry_out(item, action)
        mark = (type(item), item.key)
        if plan.n_held_back:
            self._n_held_back[mark] = plan.n_held_back
        else:
            self._n_held_back.pop(mark, None)
        if plan.again_at_s is not None:
            self._look_again(mark, plan.again_at_s)

    def _carry_out(self, owner: KubeObject, action: Action) -> None:
        if isinstance(action, CreateObject):
            try:
                self._intake.create(action.item)
            except AlreadyExistsError as refusal:
                self._refused(owner, str(refusal))
            except AdmissionError as refusal:
                self._refused(owner, f"{plural(action.item)} is forbidden: {refusal}")
        elif isinstance(action, UpdateObject):
            self._store.update(action.item)
        else:
            self._deletions.delete(action.item, BY_CONTROLLER)

    def _look_again(self, mark: Mark, at_s: float) -> None:
        if self._looks_at_s.get(mark) == at_s:
            return  # planned already
        self._looks_at_s[mark] = at_s

        def look() -> None:
            if self._looks_at_s.get(mark) == at_s:
                del self._looks_at_s[mark]
            self._marked[mark] = None

        self._clock.at(at_s, look)
