"""Sends each action to who carries it out, many at once, and brings the outcome back to the loop.

The last gate before the wire is `LeaderGate`: a copy that does not surely hold the lease writes nothing. A write may
take no longer than the lease is sure to be ours, so that none lands after another copy took over. It is looked at after
a request has waited for its turn, not before. Writes that come too late are withheld. Reads go through at any time: by
them we learn what became of a write whose answer was lost with the lease.

Of bindings `BINDINGS_AT_ONCE` are under way; the others stand in line as they are: when ten thousand pods are decided
in a second, most of them would only wait. A binding that can leave at once has no task: it is begun, and its answer
taken where it is read. One that must wait first, for a login, a rate limit or a connection, has one, and so has one
whose answer leaves something to be done. While there are bindings, events give way (`is_quiet`).

Calls to extenders are plain HTTP POSTs, each extender with the TLS settings of its own
(`kubesched.scheduler.engine.extender` has what is said).

Next: `kubesched.live.shell`, which hands effects over.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from kubesched.framework.effects import (
    BindPod,
    CallExtender,
    Done,
    Effect,
    EvictPod,
    Failed,
    FindOut,
    PatchObject,
    PatchPodGroupStatus,
    PatchPodStatus,
    RecordEvent,
    Withheld,
    WriteObject,
)
from kubesched.k8s.client.errors import ClientConfigError, NotSent
from kubesched.k8s.client.event_forms import EventToRecord, pod_reference
from kubesched.k8s.client.rest import Begun, RestClient, Tell
from kubesched.k8s.client.target import TlsMaterialError, make_tls_context, show_certificate
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.storage import ObjectReference
from kubesched.live.writes.claim_writes import ClaimWrites, VolumeWrites
from kubesched.live.writes.object_writes import BindingOutcome, FindPod, ObjectWrites, PodWrites
from kubesched.scheduler.config import ExtenderConfiguration, ExtenderTLSConfig
from kubesched.scheduler.config.configuration import hide_password
from kubesched.scheduler.plugins.dynamic_resources.effects import (
    AddClaimFinalizer,
    ClaimRequest,
    CreateResourceClaim,
    PatchPodExtendedResourceClaimStatus,
    ReadResourceClaim,
    UpdateClaimStatus,
)
from kubesched.scheduler.plugins.volume_binding.binding import BindVolumeToClaim, SelectNodeForClaim

if TYPE_CHECKING:
    import aiohttp


class LeaderGate:
    """A requester whose writes end with the lease. Raises `client.errors.NotSent`."""

    def __init__(self, requests: RestClient, left_s: Callable[[], float] = lambda: inf) -> None:
        self._requests = requests
        self._left_s = left_s
        """For how many more seconds nobody else can hold the lease; infinite without an election."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_s: float | None = None,
        gzip: bool = False,
    ) -> bytes:
        return await self._requests.request(
            method,
            path,
            params=params,
            body=body,
            content_type=content_type,
            timeout_s=timeout_s,
            gzip=gzip,
            left_s=None if method == "GET" else self._left_s,
        )

    def begin(self, path: str, body: bytes, content_type: str, tell: Tell) -> Begun | None:
        """A POST that can leave at once."""
        return self._requests.begin("POST", path, body, content_type, tell, self._left_s)


_CANCELLED = Failed("context canceled")
_log = logging.getLogger("kubesched.writes")
T = TypeVar("T")

Answer = Callable[[int, object], None]
"""(number of the effect, what became of it) -> None"""


@dataclass(slots=True)
class _WaitingPatch:
    """A patch of a pod's status that is not sent yet."""

    action: PatchPodStatus

    def take_in(self, later: PatchPodStatus) -> None:
        """What the later one says goes before; what it leaves open stays."""
        mine = self.action
        self.action = PatchPodStatus(
            later.pod,
            later.uid,
            mine.condition if later.condition is None else later.condition,
            mine.nominated_node_name if later.nominated_node_name is None else later.nominated_node_name,
            mine.is_probe or later.is_probe,
        )


BINDINGS_AT_ONCE = 96
"""An API server lets a connection carry 100 requests. The more are under way, the more of them etcd commits together:
with 64 there is a tenth less throughput, and more than these bring no more."""


@dataclass(slots=True)
class _Begun:
    """A binding that was begun without a task, until its pod's next write may go."""

    effect: Effect
    answer: Answer
    call_off: Begun | None = None
    """None once there is an answer that leaves something to be done."""
    over: asyncio.Future[None] | None = None
    """For those who wait."""


class EffectWriter:
    """`record` takes events and returns at once; everything else that is under way is a task of its own."""

    def __init__(
        self,
        pods: PodWrites,
        volumes: VolumeWrites,
        claims: ClaimWrites,
        objects: ObjectWrites,
        extenders: ExtenderCalls,
        record: Callable[[EventToRecord], None],
        find_pod: FindPod,
    ) -> None:
        self._record = record
        self._find_pod = find_pod
        self._pods = pods
        self._objects = objects
        self._tasks: dict[int, asyncio.Task[object]] = {}
        """By number of the effect, what is under way."""
        self._bindings_in_line: OrderedDict[int, tuple[Effect, Answer]] = OrderedDict()
        """By number of the effect, bindings that are not begun yet."""
        self._in_line_by_pod: dict[PodKey, int] = {}
        self._begun: dict[PodKey, _Begun] = {}
        self._n_bindings = 0
        """How many bindings are under way."""
        self.is_quiet = asyncio.Event()
        """Set while no binding is under way or in line."""
        self.is_quiet.set()
        self._victims: dict[str, ObjectReference] = {}
        """By uid, pods that are being evicted, as they were: when it is told, they may be gone."""
        self._waiting_patches: dict[PodKey, _WaitingPatch] = {}
        self._withheld_patches: list[tuple[Effect, Answer]] = []
        self._latest: dict[PodKey, asyncio.Task[object]] = {}
        """By pod, the last patch of its status or binding that is under way."""
        self._carry_out: dict[type, Callable[[Any], Awaitable[object]]] = {
            EvictPod: pods.evict,
            FindOut: self._find_out,
            BindVolumeToClaim: volumes.bind_volume,
            SelectNodeForClaim: volumes.select_node,
            CreateResourceClaim: claims.create,
            ReadResourceClaim: claims.read,
            AddClaimFinalizer: claims.add_finalizer,
            UpdateClaimStatus: claims.update_status,
            PatchPodExtendedResourceClaimStatus: claims.tell_pod,
            WriteObject: objects.write,
            PatchObject: objects.patch,
            PatchPodGroupStatus: objects.patch_group_status,
            CallExtender: extenders.call,
            **dict.fromkeys(get_args(ClaimRequest), claims.carry_out),
        }

    async def settled(self) -> None:
        """Until nothing is under way any more."""
        while self._tasks or self._begun:
            if self._tasks:
                await asyncio.wait(self._tasks.values())
            else:
                await self.is_quiet.wait()

    def cancel(self) -> None:
        """All that is under way or in line ends here, and is answered so."""
        while self._bindings_in_line:
            self._call_off(next(iter(self._bindings_in_line)))
        for begun in list(self._begun.values()):
            self._break_off(begun)
        for task in self._tasks.values():
            task.cancel()

    def resume(self) -> None:
        """We may write again: patches that were withheld go out. All other writes that were are asked for anew."""
        kept, self._withheld_patches = self._withheld_patches, []
        for effect, answer in kept:
            self.send([effect], answer)

    def send(self, effects: Sequence[Effect], answer: Answer) -> None:
        for effect in effects:
            action = effect.action
            if isinstance(action, RecordEvent):
                self._record(self._event(action))
            elif isinstance(action, BindPod):
                self._bind(effect, action, answer)
            elif not (isinstance(action, PatchPodStatus) and self._joins_waiting_patch(action)):
                self._start(effect, answer)

    def _bind(self, effect: Effect, action: BindPod, answer: Answer) -> None:
        """At once, if a connection can carry it; else when another one has ended."""
        self._begin_in_line(action.pod)
        self._waiting_patches.pop(action.pod, None)  # patches that come now come after the binding
        if self._n_bindings < BINDINGS_AT_ONCE:
            self._begin(effect, action, answer)
        else:
            self._bindings_in_line[effect.id] = (effect, answer)
            self._in_line_by_pod[action.pod] = effect.id

    def _begin_in_line(self, pod: PodKey) -> None:
        """What is written of a pod now comes after its binding."""
        if self._in_line_by_pod and (number := self._in_line_by_pod.pop(pod, None)) is not None:
            effect, answer = self._bindings_in_line.pop(number)
            self._begin(effect, _binding_of(effect), answer)

    def _begin_next(self) -> None:
        if self._bindings_in_line:
            _, (effect, answer) = self._bindings_in_line.popitem(last=False)
            action = _binding_of(effect)
            del self._in_line_by_pod[action.pod]
            self._begin(effect, action, answer)

    def _begin(self, effect: Effect, action: BindPod, answer: Answer) -> None:
        """Without a task if nothing has to be waited for, and no other write of the pod is under way."""
        pod = action.pod
        self._n_bindings += 1
        self.is_quiet.clear()
        if pod not in self._latest and pod not in self._begun:
            begun = _Begun(effect, answer)
            with suppress(Exception):  # a task meets it too, and answers it
                begun.call_off = self._pods.begin_binding(action, partial(self._told, begun))
            if begun.call_off is not None:
                self._begun[pod] = begun
                return
        self._start(effect, answer)

    def _told(self, begun: _Begun, outcome: BindingOutcome) -> None:
        """What the server said of a binding that was begun."""
        begun.call_off = None
        if isinstance(outcome, Done | Failed):
            self._binding_over(begun.effect, begun.answer, outcome)
        else:
            self._start(begun.effect, begun.answer, outcome)

    def _break_off(self, begun: _Begun) -> None:
        """Nobody knows what becomes of it."""
        if begun.call_off is not None:
            begun.call_off()
            self._binding_over(begun.effect, begun.answer, _CANCELLED)

    def _binding_over(self, effect: Effect, answer: Answer, outcome: object) -> None:
        pod = _binding_of(effect).pod
        begun = self._begun.get(pod)
        if begun is not None and begun.effect is effect:
            del self._begun[pod]
            if begun.over is not None and not begun.over.done():
                begun.over.set_result(None)
        self._n_bindings -= 1
        self._begin_next()
        if not self._n_bindings:
            self.is_quiet.set()
        answer(effect.id, outcome)

    def _call_off(self, number: int) -> None:
        """A binding that is in line is answered without having been sent."""
        effect, answer = self._bindings_in_line.pop(number)
        del self._in_line_by_pod[_binding_of(effect).pod]
        answer(number, _CANCELLED)

    def _joins_waiting_patch(self, action: PatchPodStatus) -> bool:
        """A patch that still waits for its turn, with nothing behind it, takes the later one in: while the server does
        not answer, a pod that fails again and again must not pile up writes."""
        self._begin_in_line(action.pod)
        waiting = self._waiting_patches.get(action.pod)
        if waiting is None or waiting.action.uid != action.uid:
            return False
        waiting.take_in(action)
        return True

    def _start(self, effect: Effect, answer: Answer, rest: Coroutine[None, None, object] | None = None) -> None:
        """`rest` is what is left to do, if something was done already."""
        task = asyncio.create_task(self._write(effect.action) if rest is None else rest)
        self._tasks[effect.id] = task
        task.add_done_callback(partial(self._ended, effect, answer))
        if isinstance(effect.action, EvictPod):
            victim = effect.action
            self._victims[victim.uid] = self._reference(victim.pod, victim.uid)

    async def _write(self, action: object) -> object:
        carry_out = self._carry_out.get(type(action))
        if isinstance(action, PatchPodStatus):
            await self._patch(action)
            return None
        if isinstance(action, BindPod):
            return await self._in_order(action.pod, self._pods.bind(action))
        if carry_out is None:
            return Failed(f"nobody carries out {type(action).__name__}")
        return await carry_out(action)

    async def _find_out(self, asked: FindOut) -> object:
        """Nobody knows what became of a write. It is not to come about later, when the answer was given."""
        if asked.number in self._bindings_in_line:
            self._call_off(asked.number)
        if isinstance(asked.action, BindPod):
            begun = self._begun.get(asked.action.pod)
            if begun is not None and begun.effect.id == asked.number:
                self._break_off(begun)
        under_way = self._tasks.get(asked.number)
        if under_way is not None:
            under_way.cancel()
            await asyncio.wait((under_way,))
        if isinstance(asked.action, BindPod):
            return await self._pods.find_binding(asked.action)
        if isinstance(asked.action, EvictPod):
            return await self._pods.find_eviction(asked.action)
        if isinstance(asked.action, WriteObject | PatchObject):
            return await self._objects.find_out(asked.action)
        return Failed(f"no answer to {type(asked.action).__name__} in the time that it may take")

    def _ended(self, effect: Effect, answer: Answer, task: asyncio.Task[object]) -> None:
        """However it ended, whoever waits for it is answered, once."""
        del self._tasks[effect.id]
        action, outcome = effect.action, _outcome(effect.action, task)
        if isinstance(action, BindPod):
            self._binding_over(effect, answer, outcome)
            return
        if isinstance(action, EvictPod) and not isinstance(outcome, Done):
            self._victims.pop(action.uid, None)
        if isinstance(action, PatchPodStatus) and isinstance(outcome, Withheld):
            self._withheld_patches.append((effect, answer))  # nobody waits for it, so nobody would ask for it anew
        elif outcome is not None:
            answer(effect.id, outcome)

    async def _patch(self, action: PatchPodStatus) -> None:
        waiting = self._waiting_patches[action.pod] = _WaitingPatch(action)

        async def write() -> None:
            if self._waiting_patches.get(action.pod) is waiting:
                del self._waiting_patches[action.pod]
            await self._pods.patch_status(waiting.action)

        await self._in_order(action.pod, write())

    async def _in_order(self, pod: PodKey, write: Coroutine[None, None, T]) -> T:
        """Of two patches of one pod the later must win, and a binding over what was written before it: a patch that
        overtook it would say of a bound pod that it is not scheduled."""
        mine = asyncio.current_task()
        before = self._latest.get(pod)
        assert mine is not None
        self._latest[pod] = mine
        try:
            if (begun := self._begun.get(pod)) is not None:
                begun.over = begun.over or asyncio.get_running_loop().create_future()
                await asyncio.wait((begun.over,))
            if before is not None and not before.done():
                await asyncio.wait((before,))
            return await write
        finally:
            write.close()
            if self._latest.get(pod) is mine:
                del self._latest[pod]

    # -- events --------------------------------------------------------------------------------------------------------

    def _event(self, action: RecordEvent) -> EventToRecord:
        """Without the related pod: kube-scheduler v1.36.4 means to name it, but what it hands over cannot be named."""
        victim = self._victims.pop(action.uid, None) if action.reason == "Preempted" else None
        return EventToRecord(
            regarding=victim or self._reference(action.pod, action.uid),
            type=action.type,
            reason=action.reason,
            action=action.action,
            note=action.note,
            reporting_controller=action.scheduler_name,
        )

    def _reference(self, key: PodKey, uid: str) -> ObjectReference:
        namespace, _, name = key.partition("/")
        known = self._find_pod(key)
        metadata = None if known is None else known.pod.metadata
        if metadata is None or (uid and metadata.uid != uid):
            return pod_reference(namespace, name, uid)
        return pod_reference(namespace, name, metadata.uid, metadata.resource_version)


def _binding_of(effect: Effect) -> BindPod:
    assert isinstance(effect.action, BindPod)
    return effect.action


def _outcome(action: object, task: asyncio.Task[object]) -> object:
    """What became of a write; None for those that nobody waits for."""
    if task.cancelled():
        return _CANCELLED
    problem = task.exception()
    if problem is None:
        return task.result()
    fields = {"action": type(action).__name__}
    if isinstance(problem, NotSent):
        _log.info("Write withheld: the lease is not surely held", extra={"fields": fields, "v": 2})
        return Withheld()
    _log.error("Write failed unexpectedly", exc_info=problem, extra={"fields": fields})
    return Failed(str(problem) or type(problem).__name__)


class ExtenderCalls:
    """`close` it at the end. Raises `NotSent` as the gate does."""

    def __init__(self, extenders: Sequence[ExtenderConfiguration], left_s: Callable[[], float] = lambda: inf) -> None:
        """`left_s` says for how many more seconds we may write: a call that binds is a write."""
        self._left_s = left_s
        self._bind_verbs = [extender.bind_verb for extender in extenders]
        self._contexts = [_tls_context(number, extender) for number, extender in enumerate(extenders)]
        self._names = [(extender.tls_config or ExtenderTLSConfig()).server_name or None for extender in extenders]
        self._session: aiohttp.ClientSession | None = None

    async def call(self, action: CallExtender) -> bytes | Failed:
        import aiohttp  # takes a tenth of a second: only who has extenders waits for it

        limit_s = action.timeout_s
        if action.verb == self._bind_verbs[action.extender] and (limit_s := min(limit_s, self._left_s())) <= 0:
            raise NotSent
        if self._session is None:
            self._session = aiohttp.ClientSession()
        context, shown = self._contexts[action.extender], hide_password(action.url)
        try:
            async with asyncio.timeout(limit_s):
                return await self._post(self._session, action, context)
        except TimeoutError:
            return Failed(f'Post "{shown}": context deadline exceeded')
        except (aiohttp.ClientError, OSError) as problem:
            return Failed(f'Post "{shown}": {problem}')

    async def _post(
        self, session: aiohttp.ClientSession, action: CallExtender, context: ssl.SSLContext | None
    ) -> bytes | Failed:
        headers = {"Content-Type": "application/json"}
        async with session.post(
            action.url,
            data=action.body,
            headers=headers,
            ssl=True if context is None else context,
            server_hostname=self._names[action.extender],
        ) as answer:
            body = await answer.read()
            if answer.status == 200:
                return body
            return Failed(
                f"failed {action.verb} with extender at URL {hide_password(action.url)}, code {answer.status}"
            )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def _tls_context(number: int, extender: ExtenderConfiguration) -> ssl.SSLContext | None:
    """None: as the system has it. Raises `ClientConfigError` that names the field.

    As in kube-scheduler, HTTPS without authorities to trust means to trust anybody.
    """
    tls = extender.tls_config or ExtenderTLSConfig()
    if extender.tls_config is None and not extender.enable_https:
        return None
    where = f"extenders[{number}].tlsConfig"
    authorities = _material(tls.ca_data, tls.ca_file, where, "caFile")
    certificate = _material(tls.cert_data, tls.cert_file, where, "certFile")
    key = _material(tls.key_data, tls.key_file, where, "keyFile")
    try:
        context = make_tls_context(authorities=authorities, verify=not extender.trusts_anybody)
        if certificate is not None and key is not None:
            show_certificate(context, certificate, key)
    except TlsMaterialError as problem:
        raise ClientConfigError(f"{where}: {problem}") from None
    return context


def _material(data: bytes, file: str, where: str, field: str) -> bytes | None:
    if data:
        return data
    if not file:
        return None
    try:
        return Path(file).read_bytes()
    except OSError as problem:
        raise ClientConfigError(f"{where}.{field}: {file}: {problem.strerror}") from None
