"""What plugins store during one pod's scheduling cycle: typed, and keyed by the class of what is stored."""

from __future__ import annotations

from typing import TypeVar

State = TypeVar("State")


class CycleState:
    """State of one scheduling cycle. A plugin puts an object of its own class and asks for it by that class."""

    __slots__ = ("_states", "skip_filter", "skip_score")

    def __init__(self) -> None:
        self._states: dict[type[object], object] = {}
        self.skip_filter: frozenset[str] = frozenset()
        """Plugins whose PreFilter had nothing to say: their Filter is left out."""
        self.skip_score: frozenset[str] = frozenset()
        """Plugins whose PreScore had nothing to say: their Score is left out."""

    def put(self, state: object) -> None:
        self._states[type(state)] = state

    def get(self, kind: type[State]) -> State:
        """What was put in this cycle. Asking for what was not put is a bug in the plugin."""
        found = self._states[kind]
        assert isinstance(found, kind)
        return found

    def find(self, kind: type[State]) -> State | None:
        found = self._states.get(kind)
        assert found is None or isinstance(found, kind)
        return found

    def fork(self) -> CycleState:
        """A cycle that begins with what this one remembers, and goes on by itself."""
        forked = CycleState.__new__(CycleState)
        forked._states = self._states.copy()
        forked.skip_filter = self.skip_filter
        forked.skip_score = self.skip_score
        return forked

    def drop(self, kind: type[object]) -> None:
        self._states.pop(kind, None)
