"""The live scheduler, from settings to a process that schedules: which parts there are, and in which order they start.

    configuration → informers → event recorder → health checks and secure port → cache sync → leader election → loop

While the API server prepares its lists, the secure port is made ready, which imports half as much as all before it.
With `delayCacheUntilActive`, informers start only once this copy leads. A Policy that `--policy-configmap` names is
read before all that (`read_policy`).

Next: `shell` for how the loop is run, `writes` for what it asks for, `kubesched.cli.run` for the command.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from kubesched.framework.handle import Registry
from kubesched.k8s.client.errors import AnswerLost, ApiError, ClientConfigError, Unreachable
from kubesched.k8s.client.event_forms import CoreV1Form, EventForm, EventsV1Form, choose_form
from kubesched.k8s.client.event_recorder import EventRecorder
from kubesched.k8s.client.leader_election import (
    ElectionTiming,
    LeaderCallbacks,
    LeaderElectionHealth,
    LeaderElector,
    identity_of_this_process,
    make_election_client,
    steady_clock,
)
from kubesched.k8s.client.lease import LeaseLock
from kubesched.k8s.client.list_watch import Pace, scheduler_informers
from kubesched.k8s.client.requester import Requester
from kubesched.k8s.client.resources import COMPOSITE_POD_GROUPS, NEXT_POD_GROUPS, POD_GROUPS
from kubesched.k8s.client.rest import REQUEST_TIMEOUT_S, RestClient
from kubesched.k8s.client.target import ServerTarget
from kubesched.k8s.client.transport import MAX_CONNECTIONS
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.k8s.model.scheduling import PodGroup
from kubesched.live.decisions import DecisionLog
from kubesched.live.logs import scheduling
from kubesched.live.logs import start_lines as lines
from kubesched.live.logs.setup import level_of
from kubesched.live.options.effective import configuration_yaml, emulation_yaml
from kubesched.live.options.settings import RunOptions, shown_families
from kubesched.live.shell import TAINT_RULES, LiveShell, Loop, TaintedSlices
from kubesched.live.writes.binding_body import PROTOBUF
from kubesched.live.writes.claim_writes import ClaimWrites, VolumeWrites
from kubesched.live.writes.object_writes import ObjectWrites, PodWrites
from kubesched.live.writes.writer import EffectWriter, ExtenderCalls, LeaderGate
from kubesched.older.config import PolicyConfigMap
from kubesched.scheduler.build import build_loop, reload_plugins
from kubesched.scheduler.config import ConfigError, LeaderElectionConfiguration
from kubesched.scheduler.config.errors import FieldError
from kubesched.scheduler.config.feature_gates import COMPOSITE_POD_GROUP, GENERIC_WORKLOAD, NEXT_VERSION
from kubesched.scheduler.engine.score import Seeded
from kubesched.scheduler.engine.self_check import AnswerLimit
from kubesched.scheduler.plugin_loading import Assembly

if TYPE_CHECKING:
    from kubesched.live.engine_recorder import JournalFiles
    from kubesched.live.serving.server import MorePages, SecureServer
    from kubesched.older.config import Emulation
    from kubesched.scheduler.build import Variant


_log = logging.getLogger("kubesched.run")

NAME = "kube-scheduler"

_DRAIN_S = 2.0
_COLLECTIONS = (10_000, 10, 100)
"""When Python looks for garbage. Next to nothing here has cycles, and a look at everything holds up every binding, with
Python's own numbers for a sixth of a second, again and again, while 15,000 pods wait."""
_LONGEST_ANSWER_S = 120.0
"""Longer than all that is done for one effect takes, once it had its turn."""
_REVIEW_QPS, _REVIEW_BURST = 200, 400


class LeadershipLost(Exception):  # noqa: N818  what happened to us, not what we did wrong
    """Another copy leads, or may: this one must end."""


class LiveScheduler:
    """`run` it once; it returns when `stop` was called, and raises `LeadershipLost` when it must not go on."""

    def __init__(
        self,
        options: RunOptions,
        target: ServerTarget,
        *,
        review_target: ServerTarget | None = None,
        registry: Registry | None = None,
        pace: Pace | None = None,
        more_pages: Callable[[LiveScheduler], MorePages] | None = None,
        ahead: Mapping[type[KubeObject], Awaitable[bytes]] | None = None,
    ) -> None:
        """`pace` is how it waits before it asks the API server again; for tests. `more_pages` are served on the secure
        port, too. `ahead` are lists of the target that are on their way (`head_start`)."""
        self._more_pages = more_pages
        self.target = target
        pace = pace or Pace()
        self._options = options
        self._client = RestClient(target, qps=options.qps, burst=options.burst, sleep=pace.sleep, writes_much=True)
        self._event_client = RestClient(target, qps=options.qps, burst=options.burst, writes_much=True)
        self._review_client = (
            None if review_target is None else RestClient(review_target, qps=_REVIEW_QPS, burst=_REVIEW_BURST)
        )
        config = options.configuration
        self.assembled = Assembly(config, options.registry if registry is None else registry)
        self.emulation = options.emulation
        """What the loop is built from, as it is now."""
        seed, answer_limit = secrets.randbits(63), _answer_limit(options.qps)
        self.loop = build_loop(
            config,
            Seeded(seed),
            registry=self.assembled.registry,
            max_unschedulable_s=options.pod_max_in_unschedulable_pods_for_s,
            clock=time.monotonic,
            keeps_classes=options.keeps_classes,
            variant=_variant(options.emulation),
            answer_limit=answer_limit,
        )
        v = level_of(scheduling.__file__, options.logs.verbosity, options.logs.vmodule)
        scheduling.SchedulingLog(v).listen_to(self.loop)
        self.decisions = DecisionLog(time.time)
        self.decisions.listen_to(self.loop)
        for scheduler in self.loop.schedulers.values():
            lines.PLUGINS.write(lines.plugins_of(scheduler.profile))
        text = configuration_yaml(config) if options.emulation is None else emulation_yaml(options.emulation)
        lines.CONFIGURATION.write(text)
        self._reads_taint_rules = options.gates["DRADeviceTaintRules"]
        more = [TAINT_RULES] if self._reads_taint_rules else []
        if options.gates[GENERIC_WORKLOAD]:
            more.append(NEXT_POD_GROUPS if config.emulate == NEXT_VERSION else POD_GROUPS)
        if options.gates[COMPOSITE_POD_GROUP]:
            more.append(COMPOSITE_POD_GROUPS)
        self.informers = scheduler_informers(self._client, NAME, pace, more, ahead)
        self._extenders = ExtenderCalls(config.extenders, self._lease_left_s)
        self._elector, self._election_client = self._make_elector(target, options.leader_election)
        self._recorder = EventRecorder(self._event_client, EventsV1Form(socket.gethostname()))
        self._election_recorder = EventRecorder(self._client, CoreV1Form(), n_writers=1)
        """An election's events have no action, which only core v1 allows."""
        gate = LeaderGate(self._client, self._lease_left_s)
        find_pod = self.loop.cluster.find_pod
        self._writer = EffectWriter(
            PodWrites(
                gate,
                find_pod,
                sleep=pace.sleep,
                binds_in_protobuf=config.client_connection.content_type == PROTOBUF,
                begin=gate.begin,
            ),
            VolumeWrites(gate),
            ClaimWrites(gate, lambda: self.informers.of(ResourceClaim).resource),
            ObjectWrites(gate, sleep=pace.sleep, pod_groups=lambda: self.informers.of(PodGroup).resource),
            self._extenders,
            lambda record: self._recorder.record(record),
            find_pod,
        )
        journalled = self._journalled(seed, answer_limit)
        self.shell: LiveShell[Loop] = LiveShell(
            journalled,
            self._writer,
            may_write=lambda: self._lease_left_s() > 0,
            set_aside=self.informers.set_aside,
        )
        self.server: SecureServer | None = None
        self._is_shutting_down = False
        self._stopping = asyncio.Event()
        self.is_scheduling = asyncio.Event()
        """Set once this copy leads, and schedules."""

    def _journalled(self, seed: int, answer_limit: AnswerLimit) -> Loop:
        """The loop, or who keeps its journal if one was asked for."""
        self._journal: JournalFiles | None = None
        if self._options.record_to is None:
            return self.loop
        from kubesched.live.engine_recorder import open_journal, recorded_form
        from kubesched.simulator.recording.engine_journal import JournalledLoop

        self._journal = open_journal(self._options, self._options.record_to, seed, answer_limit)
        return JournalledLoop(self.loop, self._journal.write, recorded_form)

    # -- life ----------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Gives up the lease and ends."""
        self._is_shutting_down = True
        self._stopping.set()

    async def run(self) -> None:
        tasks = contextlib.AsyncExitStack()
        delays = self._options.configuration.delay_cache_until_active
        syncing = None if delays else asyncio.create_task(self._unless_stopped(self._sync), name="cache sync")
        try:
            await self._start_recorder(tasks)
            await self._start_serving()
            if syncing is not None:
                await syncing
            if not self._is_shutting_down:
                await self._lead_until_stopped()
        finally:
            if syncing is not None:
                await _end(syncing)
            await self._shut_down(tasks)

    async def _start_recorder(self, tasks: contextlib.AsyncExitStack) -> None:
        """Events are written in the form that the server has; a server that does not answer yet has the newest."""
        form: EventForm
        try:
            form = await choose_form(self._event_client, socket.gethostname())
        except (Unreachable, AnswerLost) as problem:
            _log.warning("The API server does not answer yet", extra={"fields": {"err": str(problem)}})
            form = EventsV1Form(socket.gethostname())
        self._recorder = EventRecorder(self._event_client, form, turn=self._writer.is_quiet)
        for recorder in (self._recorder, self._election_recorder):
            tasks.push_async_callback(_end, asyncio.create_task(recorder.run(), name="event recorder"))

    async def _start_serving(self) -> None:
        options = self._options
        if options.serving is None:
            return
        from kubesched.live.serving.live_sources import Surroundings, live_sources
        from kubesched.live.serving.server import SecureServer
        from kubesched.live.serving.sources import scheduler_checks

        elector = self._elector
        checks = scheduler_checks(
            is_shutting_down=lambda: self._is_shutting_down,
            are_handlers_synced=lambda: self.informers.has_synced,
            leader_election=None if elector is None else LeaderElectionHealth(elector).problem,
            unanswered=self._unanswered,
            unsynced_informers=self._unsynced,
        )
        around = Surroundings(
            checks=checks,
            now_s=self.shell.now_s,
            informed=self._informed,
            flags=options.flags,
            requests=self._requests_made,
            leads=lambda: {} if elector is None else {elector.describe().partition("/")[2]: elector.is_leader},
            is_leader=lambda: self.shell.is_leading,
            set_aside=lambda: (self.informers.set_aside.counts(), self.informers.set_aside.totals),
            failures=lambda: self.shell.failures,
            shown=partial(shown_families, settings=options.metrics),
            emulation=options.emulation,
            assembled=lambda: self.assembled,
            decisions=self.decisions.report,
        )
        sources = live_sources(self.loop, options.configuration, around)
        more = None if self._more_pages is None else self._more_pages(self)
        self.server = SecureServer(options.serving, sources, self._review_client, more)
        await self.server.start()

    async def _sync(self) -> None:
        self.informers.add_handler(TaintedSlices(self.shell) if self._reads_taint_rules else self.shell)
        gc.set_threshold(*_COLLECTIONS)
        self.informers.start()
        await self.informers.wait_for_sync(NAME)
        lines.HANDLERS_SYNCED.write()
        gc.freeze()  # what was listed stays: the collector need not look at it again and again

    async def _lead_until_stopped(self) -> None:
        if self._elector is None:
            await self._start_leading()
            await self._stopping.wait()
            return
        election = asyncio.create_task(self._elector.run(), name="leader election")
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((election, stopping), return_when=asyncio.FIRST_COMPLETED)
            if election.done():
                await election
                raise LeadershipLost("leaderelection lost")
        finally:
            await _end(stopping)
            await _end(election)
            if self._starting is not None:
                await _end(self._starting)

    async def _start_leading(self) -> None:
        if self._options.configuration.delay_cache_until_active:
            lines.WAITING_FOR_SYNC.write()
            await self._unless_stopped(self._sync)
            lines.SYNC_COMPLETED.write()
        if not self._is_shutting_down:
            self.shell.lead()
            self.is_scheduling.set()

    async def _shut_down(self, tasks: contextlib.AsyncExitStack) -> None:
        self._is_shutting_down = True
        self.shell.stop()
        lines.QUEUE_CLOSED.write()
        await self.informers.stop()
        self._writer.cancel()
        await self._writer.settled()
        await asyncio.gather(self._recorder.drain(_DRAIN_S), self._election_recorder.drain(_DRAIN_S))
        await tasks.aclose()
        if self.server is not None:
            await self.server.stop()
        await self._extenders.close()
        if self._journal is not None:
            self._journal.close()
        for client in (self._election_client, self._review_client, self._event_client, self._client):
            if client is not None:
                await client.close()

    async def _unless_stopped(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Does it, or leaves off when we are to stop."""
        working = asyncio.create_task(work())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(stopping)
            await _end(working)

    def reload_plugins(self) -> None:
        """Reads the files of outside plugins again. Raises `ConfigError`, and then goes on with those it has."""
        found = self._options.plugins.read()
        config = replace(self._options.configuration, profiles=found.config.profiles)
        reload_plugins(self.loop, config, found.registry, self.shell.now_s())
        self.assembled = Assembly(config, found.registry, found.outside)
        self.shell.wake()

    # -- election ------------------------------------------------------------------------------------------------------

    def _make_elector(
        self, target: ServerTarget, election: LeaderElectionConfiguration
    ) -> tuple[LeaderElector | None, RestClient | None]:
        if not election.leader_elect:
            return None, None
        timing = ElectionTiming(
            election.lease_duration.seconds, election.renew_deadline.seconds, election.retry_period.seconds
        )
        client = make_election_client(target, timing)
        lock = LeaseLock(
            client,
            identity_of_this_process(),
            namespace=election.resource_namespace,
            name=election.resource_name,
            timeout_s=timing.request_timeout_s,
        )
        self._starting: asyncio.Task[None] | None = None
        profiles = list(self.loop.schedulers)
        callbacks = LeaderCallbacks(
            on_started_leading=self._started_leading,
            on_renewed=lambda: self.shell.renewed(),
            on_stopped_leading=lambda: self.shell.stop(),
            record_event=lambda record: self._election_recorder.record(record),
            writes_answered=lambda: self._writer.settled(),
        )
        return LeaderElector(lock, timing, callbacks, reporting_controller=profiles[0]), client

    def _started_leading(self) -> None:
        self._starting = asyncio.create_task(self._start_leading(), name="start leading")

    def _lease_left_s(self) -> float:
        return inf if self._elector is None else self._elector.must_not_write_after_s - steady_clock()

    # -- to look at ----------------------------------------------------------------------------------------------------

    def log_state(self) -> None:
        """What the cache and the queue hold, and where the cache differs from the informers (kube's SIGUSR2)."""
        from kubesched.live.serving.debug_pages import log_state

        log_state(self.loop, list(self._informed()), self.shell.now_s())

    def _informed(self) -> Iterator[KubeObject]:
        for informer in self.informers.all():
            yield from informer.lister

    def _requests_made(self) -> dict[tuple[str, str, str], float]:
        """By status, method and host."""
        host = urlsplit(self._client.target.url).netloc
        return {(code, method, host): n for (code, method), n in self._client.n_answers.items()}

    def _unanswered(self) -> int:
        return 0 if self.loop.check is None else self.loop.check.n_unsettled

    def _unsynced(self) -> list[str]:
        return [informer.name for informer in self.informers.all() if not informer.has_synced]


def _variant(emulation: Emulation | None) -> Variant | None:
    if emulation is None:
        return None
    from kubesched.older.engine.build import variant_of

    return variant_of(emulation)


def _answer_limit(qps: float) -> AnswerLimit:
    """Requests stand in line for the rate limit, and for a connection that a server out of order holds for long; an
    eviction is two of them."""
    in_line_s = (1 / qps if qps > 0 else 0.0) + REQUEST_TIMEOUT_S / MAX_CONNECTIONS
    return AnswerLimit(_LONGEST_ANSWER_S, 2 * in_line_s)


async def _end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


class ConfigMapData(msgspec.Struct, frozen=True):
    """What is looked at of a ConfigMap."""

    data: dict[str, str] | None = None


async def read_policy(target: ServerTarget, where: PolicyConfigMap) -> bytes:
    """Asks the server of the target, once."""
    client = RestClient(target)
    try:
        return await policy_in(client, where)
    finally:
        await client.close()


async def policy_in(client: Requester, where: PolicyConfigMap) -> bytes:
    """The text under the key `policy.cfg`. Raises `ConfigError` if it is not there, `ClientConfigError` if the server
    cannot be asked."""
    source = str(where)
    try:
        answer = await client.request("GET", f"/api/v1/namespaces/{where.namespace}/configmaps/{where.name}")
    except ApiError as refused:
        text = f"couldn't get policy config map {where.namespace}/{where.name}: {refused}"
        raise ConfigError([FieldError("", text)]) from None
    except (Unreachable, AnswerLost) as lost:
        raise ClientConfigError(f"{source}: {lost}") from None
    found = msgspec.json.decode(answer, type=ConfigMapData).data or {}
    if where.KEY not in found:
        raise ConfigError([FieldError("", f'missing policy config map value at key "{where.KEY}"')], source)
    return found[where.KEY].encode()
