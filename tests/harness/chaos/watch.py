"""An informer over a watch that breaks: what the loop is told of one kind of objects, and when.

Changes of one object come in their order; between objects anything goes. A watch that is down misses what happens until
it lists anew: then what is there comes as changed, whether it changed or not, and what is known but not there any more
as deleted, in the last state known (client-go's DeletedFinalStateUnknown). A list may come from a server that lags
behind, but never from before what this informer has already seen; what came since then follows as changes.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.chaos.api_server import LoggedChange
from kubesched.k8s.model.meta import KubeObject

Tell = Callable[[KubeObject, bool], None]
"""(object, whether it is gone) -> None"""


class FlakyInformer:
    """`log` is the server's, of one kind."""

    def __init__(self, log: list[LoggedChange], tell: Tell) -> None:
        self._log = log
        self._tell = tell
        self._position = 0
        """How much of the log was received."""
        self._received: list[LoggedChange] = []
        self.is_down = False
        self.known: dict[str, KubeObject] = {}
        """What the loop was told, by key: the informer's store."""

    # -- the connection ------------------------------------------------------------------------------------------------

    def disconnect(self) -> None:
        self.receive()
        self.is_down = True

    def receive(self) -> None:
        """Takes what has happened off the connection; the loop is not told yet."""
        if not self.is_down:
            self._received += self._log[self._position :]
            self._position = len(self._log)

    def relist(self, lag: int = 0) -> None:
        """Lists the server's objects as they were `lag` changes ago, and goes on watching from there."""
        self.receive()
        self.is_down = False
        self._position = max(self._position, len(self._log) - lag)
        listed = _state_after(self._log[: self._position])
        expected = self._expected()
        self._received += [LoggedChange(item, False) for item in listed.values()]
        self._received += [LoggedChange(item, True) for key, item in expected.items() if key not in listed]

    # -- what the loop is told -----------------------------------------------------------------------------------------

    @property
    def waiting(self) -> list[str]:
        """Keys of objects with changes that the loop was not told yet, oldest change first."""
        self.receive()
        return list(dict.fromkeys(change.item.key for change in self._received))

    def deliver(self, key: str) -> bool:
        """The next change of one object."""
        self.receive()
        for index, change in enumerate(self._received):
            if change.item.key == key:
                del self._received[index]
                self._hand_over(change)
                return True
        return False

    def deliver_all(self) -> bool:
        self.receive()
        changes, self._received = self._received, []
        for change in changes:
            self._hand_over(change)
        return bool(changes)

    def repeat(self, key: str) -> bool:
        """Tells what was told last of an object once more."""
        item = self.known.get(key)
        if item is not None:
            self._tell(item, False)
        return item is not None

    def _hand_over(self, change: LoggedChange) -> None:
        key = change.item.key
        if not change.is_deleted:
            self.known[key] = change.item
        elif self.known.pop(key, None) is None:
            return  # an informer does not report what it never had
        self._tell(change.item, change.is_deleted)

    def _expected(self) -> dict[str, KubeObject]:
        """What will be known once all that was received is told."""
        expected = dict(self.known)
        for change in self._received:
            if change.is_deleted:
                expected.pop(change.item.key, None)
            else:
                expected[change.item.key] = change.item
        return expected


def _state_after(changes: list[LoggedChange]) -> dict[str, KubeObject]:
    state: dict[str, KubeObject] = {}
    for change in changes:
        if change.is_deleted:
            state.pop(change.item.key, None)
        else:
            state[change.item.key] = change.item
    return state
