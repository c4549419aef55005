"""A cluster that follows what is recorded, and can be looked at as it was a moment ago, or as it will be in a moment.

A scheduler decides on what it knows, which is neither what the API server has at that moment nor what we see: its watch
lags, and pods that it has decided about but not yet bound count for it alone. So what happened in the last
seconds is kept, with what there was before; and what happens is applied some seconds late, so that the next seconds are
known, too.

Each kind is watched by itself, and on a busy machine some come seconds later than others. An API server numbers what
is written to it, over all kinds: until it is applied, what happened is brought into the order of these versions. Where
they are no numbers, or not of one sequence, it stays in the order in which it was seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.manifests import KINDS
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.requests import AmountError
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.undo import UndoLog
from kubesched.simulator.recording.reader import BoundSeen, ObjectGone, ObjectSeen, Recorded, Synced

LAG_S = 2.0
"""How far a scheduler's view may be from ours."""
SETTLED_S = 3.0
"""How much later than others a kind may be seen."""
MOST_KEPT = 5_000
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
    def is_placing(self) -> bool:
        """A pod got its node."""
        had_node = isinstance(self.before, PodInfo) and bool(self.before.spec.node_name)
        return isinstance(self.after, PodInfo) and bool(self.after.spec.node_name) and not had_node

    @property
    def is_decision(self) -> bool:
        """A pod got its node, or is nominated to one."""
        before, after = self.before, self.after
        if self.is_placing or not isinstance(after, PodInfo):
            return self.is_placing
        was = before.pod.status.nominated_node_name if isinstance(before, PodInfo) else ""
        return after.pod.status.nominated_node_name not in ("", was)

    def is_about(self, node: str) -> bool:
        """The node, or a pod that was or is on it."""
        pods = (one for one in (self.before, self.after) if isinstance(one, PodInfo))
        return self.key == node or any(one.spec.node_name == node for one in pods)

    @property
    def is_arrival(self) -> bool:
        return self.before is None and isinstance(self.after, PodInfo)

    @property
    def matters(self) -> bool:
        """To other pods: a pod that has no node, nor a nomination, does not; nor do reports of kubelets."""
        before, after = self.before, self.after
        if self.pod is None:
            return True
        was, is_ = _place(before), _place(after)
        if was != is_:
            return True
        if is_ is None or not isinstance(before, PodInfo) or not isinstance(after, PodInfo):
            return False
        return before.signature is not after.signature or before.pod.is_terminating != after.pod.is_terminating


def _place(info: KubeObject | PodInfo | None) -> tuple[str, str] | None:
    """The node that a pod has, and the one that it is nominated to; None if neither."""
    if not isinstance(info, PodInfo):
        return None
    place = info.spec.node_name, info.pod.status.nominated_node_name
    return place if any(place) else None


def scheduled_condition(pod: Pod) -> tuple[str, str] | None:
    """Status and reason of the pod's condition; recordings have no messages."""
    found = (one for one in pod.status.conditions or () if one.type == "PodScheduled")
    return next(((one.status, one.reason) for one in found), None)


def _has_waited_in_vain(pod: Pod) -> bool:
    """It was tried: when it is tried again is not known. One that had gates takes the place of when it came."""
    condition = scheduled_condition(pod)
    return condition is not None and condition[0] == "False" and condition[1] != "SchedulingGated"


def _version(event: Recorded) -> int:
    """The server's number of this change; 0 if it has none."""
    match event:
        case BoundSeen(seen=seen):
            version = seen.resource_version
        case ObjectSeen(is_initial=True):
            return 0
        case ObjectSeen(item=item) | ObjectGone(item=item):
            version = item.metadata.resource_version
        case _:
            return 0
    return int(version) if version.isdecimal() else 0


def _decided(event: Recorded) -> tuple[PodKey, str]:
    """The pod that is seen to have been decided, and its node: bound, or nominated while its claims are written."""
    match event:
        case BoundSeen(pod=key, seen=seen):
            return PodKey(key), seen.node
        case ObjectSeen(item=Pod() as pod) if not pod.spec.node_name and not _has_waited_in_vain(pod):
            return pod.pod_key, pod.status.nominated_node_name
        case _:
            return PodKey(""), ""


class FollowedCluster:
    def __init__(self) -> None:
        self.cluster = Cluster()
        self.past: deque[StateChange] = deque(maxlen=MOST_KEPT)
        """The last seconds, the newest last."""
        self._future: deque[Recorded] = deque()
        """What is seen and not applied yet, the nearest first."""
        self._newest = 0
        """The highest version that was seen."""
        self._applied: Recorded = Synced(0.0)
        """The last thing that was."""
        self._arrivals: dict[str, int] = {}
        """By uid, in which order pods began to wait that have not been tried in vain, as far as that matters still."""
        self._n_arrivals = 0
        self.images_counted: dict[str, dict[str, int]] = {}
        """By node, how many nodes had each of its images when the node, or a pod on it, last changed. kube-scheduler
        counts them then, and not when another node pulls the image."""
        self.n_unusable = 0
        """Objects that could not be used, since an amount in them cannot be read."""

    # -- following -----------------------------------------------------------------------------------------------------

    def feed(self, event: Recorded) -> Iterator[Recorded]:
        """What is due now that this is known: to be given to `apply`, one by one."""
        yield from self.due(event.at_s)
        version = _version(event)
        if version >= self._newest:
            self._newest = version
            self._future.append(event)
        elif version <= _version(self._applied):
            self._future.append(event)
        else:
            self._put_in_order(event, version)

    def _put_in_order(self, event: Recorded, version: int) -> None:
        """It happened before others that were seen earlier."""
        place = len(self._future)
        while place and _version(self._future[place - 1]) > version:
            place -= 1
        if place < len(self._future):
            event = replace(event, at_s=min(event.at_s, self._future[place].at_s))
        self._future.insert(place, event)

    def due(self, now_s: float) -> Iterator[Recorded]:
        """The same, where nothing else has happened until now."""
        until_s = now_s - LAG_S - SETTLED_S
        while self._future and (self._future[0].at_s < until_s or len(self._future) > MOST_KEPT):
            yield self._next()

    def rest(self) -> Iterator[Recorded]:
        """Nothing more will come."""
        while self._future:
            yield self._next()

    def _next(self) -> Recorded:
        self._applied = self._future.popleft()
        return self._applied

    @property
    def future(self) -> Iterator[Recorded]:
        """The next seconds, the nearest first."""
        until_s = self._applied.at_s + LAG_S
        return takewhile(lambda event: event.at_s <= until_s, self._future)

    def apply(self, event: Recorded) -> None:
        """It has happened."""
        if not isinstance(event, ObjectSeen | ObjectGone) or type(event.item) not in _LOOKED_AT:
            return
        item = event.item
        if isinstance(item, Pod):
            self._forget_if_failed(item, event.at_s)
            self._note_arrival(event, item)
        before = self._known(item)
        try:
            if isinstance(event, ObjectSeen):
                self.cluster.put(item)
            else:
                self.cluster.remove(item)
        except AmountError:
            self.n_unusable += 1
            return
        after = self._known(item)
        self._count_images(before, after)
        if isinstance(event, ObjectGone) or not event.is_initial:
            self._note(event.at_s, item.key, before, after)

    def _count_images(self, before: KubeObject | PodInfo | None, after: KubeObject | PodInfo | None) -> None:
        table = self.cluster.table
        for one in (before, after):
            name = one.spec.node_name if isinstance(one, PodInfo) else one.name if isinstance(one, Node) else ""
            row = table.rows.get(name)
            if row is None:
                self.images_counted.pop(name, None)
                continue
            images = table.nodes[row].status.images
            if images or name in self.images_counted:
                held = (image for entry in images or () for image in entry.names or ())
                self.images_counted[name] = {image: len(table.images[image].rows) for image in held}

    def assume(self, key: PodKey, node: str, at_s: float) -> None:
        """The pod is decided, and not bound yet: its scheduler counts it on this node."""
        before = self.cluster.pending[key]
        self._note(at_s, key, before, self.cluster.assume(before, node))

    def forget(self, key: PodKey, at_s: float) -> None:
        """If it was assumed: it is not any more."""
        known = self.cluster.find_pod(key)
        if known is not None and self.cluster.forget(known):
            self._note(at_s, key, known, self.cluster.find_pod(key))

    def _forget_if_failed(self, pod: Pod, at_s: float) -> None:
        """A scheduler that gives up binding a pod says so in its condition."""
        known = self.cluster.pending.get(pod.pod_key)
        if known is None or not self.cluster.is_assumed(pod.pod_key) or pod.spec.node_name:
            return
        if scheduled_condition(pod) != scheduled_condition(known.pod):
            self.forget(pod.pod_key, at_s)

    def _note(
        self, at_s: float, key: str, before: KubeObject | PodInfo | None, after: KubeObject | PodInfo | None
    ) -> None:
        self.past.append(StateChange(at_s, key, before, after))
        self.let_go(at_s)

    def let_go(self, now_s: float) -> None:
        """Of what has been for so long that every scheduler knows it."""
        while self.past and self.past[0].at_s + LAG_S < now_s:
            self._is_over(self.past.popleft())

    # -- the queue -----------------------------------------------------------------------------------------------------

    def _note_arrival(self, event: ObjectSeen | ObjectGone, pod: Pod) -> None:
        uid = pod.metadata.uid
        if isinstance(event, ObjectGone) or _has_waited_in_vain(pod):
            self._arrivals.pop(uid, None)
        elif not event.is_initial and not pod.spec.node_name and uid not in self._arrivals:
            self._n_arrivals += 1
            self._arrivals[uid] = self._n_arrivals

    def _is_over(self, change: StateChange) -> None:
        if isinstance(change.after, PodInfo) and change.after.spec.node_name:
            self._arrivals.pop(change.after.uid, None)

    def is_tried_before(self, one: PodInfo, other: PodInfo, *, overtakes: bool = False) -> bool:
        """Whether its scheduler tried this pod first. It did if it came first, and its priority is no lower. With
        `overtakes`, also if it came later, and its priority is higher: if the other one had to wait."""
        first, second = self._arrivals.get(one.uid), self._arrivals.get(other.uid)
        if first is None or second is None or one.spec.scheduler_name != other.spec.scheduler_name:
            return False
        above = (one.spec.priority or 0) - (other.spec.priority or 0)
        if overtakes and above:
            return above > 0
        return first < second and above >= 0

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
        if isinstance(before, Node):
            return self._put_node(before)
        if isinstance(after, Node):
            return self._remove_node(after.name)
        if isinstance(before, KubeObject):
            self._undo.put_object(before)
            return True
        return False

    def to_queue_order(self, info: PodInfo, *, overtakes: bool) -> bool:
        """As if pods had been bound in the order in which they were tried. False if they were."""
        followed, n_moved = self._followed, 0
        for change in reversed(followed.past):
            other = change.after
            if (
                change.is_placing
                and isinstance(other, PodInfo)
                and followed.is_tried_before(info, other, overtakes=overtakes)
            ):
                n_moved += self.take_back(change)
        for event in followed.future:
            key, node = _decided(event)
            waiting = followed.cluster.pending.get(key) if node in followed.cluster.table.rows else None
            if waiting is not None and followed.is_tried_before(waiting, info, overtakes=overtakes):
                self._undo.place(waiting, node)
                n_moved += 1
        return n_moved > 0

    def is_placed(self, key: str) -> bool:
        """Whether the pod has a node at that moment."""
        known = self._followed.cluster.find_pod(PodKey(key))
        return known is not None and bool(known.spec.node_name)

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
                return self._set_pod(pod.pod_key, None) if pod.is_terminal else self._nominate(pod)
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
        return True

    def _nominate(self, pod: Pod) -> bool:
        """Of a pod that waits, all that matters to others; the binding says the rest."""
        cluster, node = self._followed.cluster, pod.status.nominated_node_name
        known = cluster.pending.get(pod.pod_key)
        if known is None or pod.spec.node_name or cluster.is_assumed(known.key):
            return False
        if cluster.nominations.node_of(known) == node:
            return False
        self._undo.put_pod(known, node)
        return True

    def _put_node(self, node: Node) -> bool:
        self._undo.put_node(node)
        return True

    def _remove_node(self, name: str) -> bool:
        """A node that has pods was known."""
        table = self._followed.cluster.table
        row = table.rows.get(name)
        if row is None or table.pods.on(row):
            return False
        self._undo.remove_node(name)
        return True
