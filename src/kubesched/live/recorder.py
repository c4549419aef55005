"""Records a live cluster, read only: what there is, what changes, and which pods get which nodes, as it is seen.

An informer's handler. Of each object only what scheduling reads is written (`saved_form`). The informers survive lost
connections; where one had to list again, changes in between may be missing, and the recording says so.

Next: `kubesched.simulator.recording` for the format.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable

from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.list_watch import Informers, InformerSettings
from kubesched.k8s.client.list_watch.exchange import ListWatchApi
from kubesched.k8s.client.list_watch.informers import UNFINISHED_PODS
from kubesched.k8s.client.list_watch.log_lines import WatchError
from kubesched.k8s.client.resources import Resource
from kubesched.k8s.client.rest import RestClient, RetryPolicy
from kubesched.k8s.client.target import ServerTarget
from kubesched.k8s.dumped_kinds import READ_RESOURCES
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.live.cluster_reader import ClusterReadError
from kubesched.live.saved_form import saved_form
from kubesched.simulator.recording.anonymous import Anonymiser
from kubesched.simulator.recording.lines import BindingSeen, RecordingWriter
from kubesched.simulator.recording.reader import BoundSeen, GapSeen, ObjectGone, ObjectSeen, Recorded, Synced

_FIRST_ANSWER_S = 10.0


class InformerStream:
    """Turns what informers bring into what a recording has, and hands it on. `now_s` is the time of day."""

    def __init__(self, hand_on: Callable[[Recorded], None], now_s: Callable[[], float] = time.time) -> None:
        self._hand_on = hand_on
        self._now_s = now_s
        self._nodes: dict[str, str] = {}
        """By uid, the nodes of pods; empty for those that have none yet."""
        self._is_synced = False

    def put(self, item: KubeObject) -> None:
        now_s = self._now_s()
        if isinstance(item, Pod):
            self._note_binding(item, now_s)
        self._hand_on(ObjectSeen(now_s, item, is_initial=not self._is_synced))

    def remove(self, item: KubeObject) -> None:
        if isinstance(item, Pod):
            self._nodes.pop(item.metadata.uid, None)
        self._hand_on(ObjectGone(self._now_s(), item))

    def synced(self) -> None:
        self._is_synced = True
        self._hand_on(Synced(self._now_s()))

    def _note_binding(self, pod: Pod, now_s: float) -> None:
        uid, node = pod.metadata.uid, pod.spec.node_name
        before = self._nodes.get(uid)
        self._nodes[uid] = node
        if node and self._is_synced and not before:
            seen = BindingSeen(node, uid, pod.spec.scheduler_name, pod.metadata.resource_version)
            self._hand_on(BoundSeen(now_s, pod.key, seen))


class WatchGaps:
    """Notes kinds whose watch broke. What comes of them next may come late, and not be all that happened meanwhile: the
    recording says so then."""

    def __init__(self, hand_on: Callable[[Recorded], None], now_s: Callable[[], float] = time.time) -> None:
        self._hand_on = hand_on
        self._now_s = now_s
        self._broken: dict[str, tuple[float, str]] = {}

    def note(self, error: WatchError) -> None:
        """An informer's `watch_error_handler`."""
        self._broken.setdefault(error.resource.type.__name__, (self._now_s(), error.message))

    def over(self, kind: str) -> None:
        """The kind is heard of again."""
        since = self._broken.pop(kind, None)
        if since is not None:
            self._hand_on(GapSeen(self._now_s(), since[0], kind, since[1]))


class RecordedInformers:
    """Informers of all kinds that are recorded, and what they bring as a stream. `hand_on` is called for each."""

    def __init__(
        self,
        api: ListWatchApi,
        hand_on: Callable[[Recorded], None],
        *,
        resources: Iterable[Resource] = READ_RESOURCES,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._gaps = WatchGaps(hand_on, now_s)
        self._follower = InformerStream(hand_on, now_s)
        settings = InformerSettings(
            list_options={Pod: UNFINISHED_PODS}, watch_error_handler=self._gaps.note, name="kubesched"
        )
        self.informers = Informers(api, resources, settings)
        self.informers.add_handler(self)

    def put(self, item: KubeObject) -> None:
        self._gaps.over(type(item).__name__)
        self._follower.put(item)

    def remove(self, item: KubeObject) -> None:
        self._gaps.over(type(item).__name__)
        self._follower.remove(item)

    async def start(self) -> None:
        """Returns when all that there is has been handed on."""
        self.informers.start()
        await self.informers.wait_for_sync("kubesched")
        self._follower.synced()

    async def stop(self) -> None:
        await self.informers.stop()


async def follow(
    target: ServerTarget,
    hand_on: Callable[[Recorded], None],
    *,
    stopping: asyncio.Event,
    for_s: float | None = None,
    every: Callable[[], None],
    every_s: float,
) -> None:
    """Hands on what happens in a cluster until it is told to stop, or the time is over; meanwhile calls `every`."""
    client = RestClient(target)
    try:
        followed = RecordedInformers(client, hand_on)
        following = asyncio.create_task(followed.start())
        until_s = None if for_s is None else time.monotonic() + for_s
        try:
            while not stopping.is_set() and (until_s is None or time.monotonic() < until_s):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stopping.wait(), every_s)
                every()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await followed.stop()
    finally:
        await client.close()


async def check_readable(target: ServerTarget) -> None:
    """Raises ClusterReadError if the cluster cannot be read, and ClientConfigError if there is no way to log in.
    Informers would try forever; whoever started the command wants to know at once."""
    client = RestClient(target, retries=RetryPolicy(max_attempts=2))
    try:
        await client.request("GET", "/api/v1/nodes", params={"limit": "1"}, timeout_s=_FIRST_ANSWER_S)
    except (ApiError, Unreachable, AnswerLost) as problem:
        raise ClusterReadError(f"{target.source}: cannot list nodes: {problem}") from None
    finally:
        await client.close()


def write_to(writer: RecordingWriter, anonymiser: Anonymiser | None = None) -> Callable[[Recorded], None]:
    """Hands on to a file."""

    def write(event: Recorded) -> None:
        match event:
            case ObjectSeen(at_s=at_s, item=item):
                body = saved_form(item)
                if anonymiser is not None:
                    body = anonymiser.body(body)
                writer.put(type(item).__name__, _key(item, anonymiser), body, at_s)
            case ObjectGone(at_s=at_s, item=item):
                version = item.metadata.resource_version
                writer.remove(type(item).__name__, _key(item, anonymiser), at_s, version)
            case BoundSeen(at_s=at_s, pod=pod, seen=seen):
                if anonymiser is not None:
                    pod, seen = anonymiser.key(pod), anonymiser.binding(seen)
                writer.binding(pod, seen, at_s)
            case GapSeen(at_s=at_s, from_s=from_s, kind=kind, why=why):
                writer.gap(kind, from_s, at_s, why)
            case Synced(at_s=at_s):
                writer.synced(at_s)

    return write


def _key(item: KubeObject, anonymiser: Anonymiser | None) -> str:
    return item.key if anonymiser is None else anonymiser.key_of(item)
