"""A cluster that follows what is recorded, and can be looked at as it was a moment ago, or as it will be in a moment.

A scheduler decides on what it knows, which is neither what the API server has at that moment nor what we see: its watch
lags, and pods that it has decided about but not yet bound count for it and nobody else. So what happened in the last
seconds is kept, with what there was before; and what happens is applied some seconds late, so that the next seconds are
known, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.manifests import KINDS
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.requests import AmountError
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.undo import UndoLog
from kubesched.simulator.recording.reader import BoundSeen, ObjectGone, ObjectSeen, Recorded

LAG_S = 2.0
"""How far a scheduler's view may be from ours."""
MOST_KEPT = 2_000
"""Changes on either side; in a very busy cluster these are less than the lag."""

_LOOKED_AT = frozenset(KINDS.values())


@dataclass(frozen=True, slots=True)
class StateChange:
    """What became of one object. Of a pod: what is known of it as one."""

    at_s: float
    key: str
    before: KubeObject | PodInfo | None
    after: KubeObject | PodInfo | None

    @property
    def pod(self) -> PodInfo | None:
        """The pod that it is about."""
        return next((one for one in (self.after, self.before) if isinstance(one, PodInfo)), None)

    @property
    def is_of_pending(self) -> bool:
        """A pod came, or changed, and has no node afterwards: that matters to no other pod."""
        before, after = self.before, self.after
        had_node = isinstance(before, PodInfo) and bool(before.spec.node_name)
        return isinstance(after, PodInfo) and not after.spec.node_name and not had_node


class FollowedCluster:
    def __init__(self) -> None:
        self.cluster = Cluster()
        self.past: deque[StateChange] = deque(maxlen=MOST_KEPT)
        """The last seconds, the newest last."""
        self.future: deque[Recorded] = deque()
        """The next seconds, the nearest first."""
        self.n_unusable = 0
        """Objects that could not be used, since an amount in them cannot be read."""

    # -- following -----------------------------------------------------------------------------------------------------

    def feed(self, event: Recorded) -> Iterator[Recorded]:
        """What is due now that this is known: to be given to `apply`, one by one."""
        self.future.append(event)
        yield from self.due(event.at_s)

    def due(self, now_s: float) -> Iterator[Recorded]:
        """The same, where nothing else has happened until now."""
        while self.future and (len(self.future) > MOST_KEPT or self.future[0].at_s + LAG_S < now_s):
            yield self.future.popleft()

    def rest(self) -> Iterator[Recorded]:
        """Nothing more will come."""
        while self.future:
            yield self.future.popleft()

    def apply(self, event: Recorded) -> None:
        """It has happened."""
        if not isinstance(event, ObjectSeen | ObjectGone) or type(event.item) not in _LOOKED_AT:
            return
        item = event.item
        before = self._known(item)
        try:
            if isinstance(event, ObjectSeen):
                self.cluster.put(item)
            else:
                self.cluster.remove(item)
        except AmountError:
            self.n_unusable += 1
            return
        self.past.append(StateChange(event.at_s, item.key, before, self._known(item)))
        while self.past and self.past[0].at_s + LAG_S < event.at_s:
            self.past.popleft()

    def _known(self, item: KubeObject) -> KubeObject | PodInfo | None:
        if isinstance(item, Pod):
            return self.cluster.find_pod(item.pod_key)
        if isinstance(item, Node):
            row = self.cluster.table.rows.get(item.name)
            return None if row is None else self.cluster.table.nodes[row]
        return self.cluster.objects.find(item)

    # -- a moment ago, and in a moment ---------------------------------------------------------------------------------

    @contextmanager
    def shifted(self) -> Iterator[Shift]:
        """Changes that are taken back at the end."""
        undo = UndoLog(self.cluster)
        try:
            yield Shift(self, undo)
        finally:
            undo.revert()


class Shift:
    """The cluster at another moment, step by step."""

    def __init__(self, followed: FollowedCluster, undo: UndoLog) -> None:
        self._followed = followed
        self._undo = undo

    def take_back(self, change: StateChange) -> bool:
        """As if this had not happened yet. False if it makes no difference to others."""
        before, after = change.before, change.after
        if change.pod is not None:
            return self._set_pod(PodKey(change.key), before if isinstance(before, PodInfo) else None)
        if isinstance(after, Node) or isinstance(before, Node):
            return isinstance(before, Node) and after is not None and self._put_node(before)
        if isinstance(before, KubeObject):
            self._undo.put_object(before)
            return True
        return False

    def bring_forward(self, event: Recorded) -> bool:
        """As if this had happened already. False if it makes no difference."""
        cluster = self._followed.cluster
        match event:
            case BoundSeen(pod=key, seen=seen):
                info = cluster.pending.get(PodKey(key))
                if info is None or seen.node not in cluster.table.rows:
                    return False
                self._undo.place(info, seen.node)
                return True
            case ObjectSeen(item=Pod() as pod):
                if not pod.is_terminal:
                    return False  # its binding says what matters
                return self._set_pod(pod.pod_key, None)
            case ObjectGone(item=Pod() as pod):
                return self._set_pod(pod.pod_key, None)
            case ObjectSeen(item=Node() as node):
                return self._put_node(node)
            case ObjectSeen(item=item) if type(item) in _LOOKED_AT:
                self._undo.put_object(item)
                return True
            case _:
                return False

    def _set_pod(self, key: PodKey, info: PodInfo | None) -> bool:
        known = self._followed.cluster.find_pod(key)
        if known is None and info is None:
            return False
        if info is None:
            self._undo.remove_pod(key)
        else:
            self._undo.put_pod(info, info.pod.status.nominated_node_name)
        return bool((known is not None and known.spec.node_name) or (info is not None and info.spec.node_name))

    def _put_node(self, node: Node) -> bool:
        self._undo.put_node(node)
        return True
