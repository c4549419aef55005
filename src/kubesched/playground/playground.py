"""The parts of a playground, started one after another in one event loop, and stopped in the opposite order.

    API server → controllers → nodes and their kubelets → objects from files → scheduler

They meet over HTTP only, as in any cluster. The kubeconfig is a file of its own, written by the API server; it is
merged into the user's only on request (`merge_into`), and never readable by others.

Next: `settling` for runs that end by themselves.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace as replace_struct

from kubesched.k8s.client.kubeconfig import load_target
from kubesched.k8s.client.resources import NEXT_POD_GROUPS, POD_GROUPS
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.kubernetes_yaml import load_document, plain_yaml, yaml_problem
from kubesched.k8s.model.resource import ResourceClaim, ResourceSlice
from kubesched.k8s.model.scheduling import PodGroup
from kubesched.live.live_scheduler import LiveScheduler
from kubesched.live.options import RunOptions, read_options
from kubesched.live.options.flag import GATES
from kubesched.live.serving.debug_pages import queue_report
from kubesched.live.serving.live_sources import LiveExplainer
from kubesched.playground.apiserver.http.identity import write_private
from kubesched.playground.apiserver.kinds.registry import NEXT, TODAY
from kubesched.playground.apiserver.server import ApiServer, ServerSettings
from kubesched.playground.controllers.kinds import DiscoveredKinds, Homes
from kubesched.playground.controllers.runner import ControllerRunner, all_controllers
from kubesched.playground.hollow_nodes.fleet import FleetSettings, KubeletFleet
from kubesched.playground.hollow_nodes.pod_plays import Delays
from kubesched.playground.manifests import Body, named_namespaces, put_in, split_nodes
from kubesched.playground.server_process import ServerProcess
from kubesched.playground.web.page import WebPage, WebSettings
from kubesched.playground.web.pod_story import PodHistory
from kubesched.playground.web.sources import WebSources
from kubesched.playground.web.workbench import PlaygroundBench
from kubesched.scheduler.config.feature_gates import NEXT_VERSION, WORKLOAD_RESOURCE_CLAIMS

DETAILED_NODES = 200
"""Up to so many nodes, the page has every plugin's scores of the decisions since somebody opened it; beyond, totals."""


def make_page(
    controllers: ControllerRunner,
    scheduler: LiveScheduler,
    options: RunOptions,
    client: RestClient,
    discovered: DiscoveredKinds,
    kubeconfig: Path,
) -> WebPage:
    """On any free port of loopback."""
    view = controllers.view
    explainer = LiveExplainer(
        scheduler.loop.cluster,
        lambda: scheduler.assembled,
        options.emulation,
        decisions=scheduler.decisions.report,
    )
    bench = PlaygroundBench(client, discovered, explainer.what_if)
    sources = WebSources(
        nodes=lambda: view.of(Node).values(),
        pods=lambda: view.of(Pod).values(),
        claims=lambda: view.of(ResourceClaim).values(),
        slices=lambda: view.of(ResourceSlice).values(),
        groups=lambda: view.of(PodGroup).values(),
        queue=lambda: queue_report(scheduler.loop.queue, scheduler.shell.now_s()),
        explain=explainer.report,
        explain_group=explainer.group_report,
        what_if=bench.what_if,
        decisions=scheduler.decisions.report,
        looked_at=partial(scheduler.decisions.want_details, DETAILED_NODES),
        recorded=PodHistory(client),
        workbench=bench,
        hint=f"export KUBECONFIG={kubeconfig}\nkubectl create deployment web --image=nginx --replicas=5",
    )
    return WebPage(WebSettings(port=0), sources)


NO_LIMIT = -1.0
WORKLOAD_WITH_JOB = "WorkloadWithJob"
SCHEDULER = "scheduler"


class PartEndedError(RuntimeError):
    """A part of the playground ended although nobody told it to."""


@dataclass(frozen=True, slots=True)
class PlaygroundSettings:
    """`nodes` are bodies of nodes to register; `objects` everything else to put in before scheduling begins."""

    server: ServerSettings
    kubeconfig: Path
    nodes: Sequence[Body] = ()
    first_nodes: Sequence[Body] = ()
    """Made if the cluster has no node at all: not again after somebody deleted one."""
    objects: Sequence[Body] = ()
    scheduler_config: Path | None = None
    plugin_files: Sequence[str] = ()
    """Python files with plugins that the scheduler runs beside the others."""
    feature_gates: tuple[str, ...] = ()
    """`A=true,B=false`, for the scheduler and the controllers alike."""
    emulate: str = ""
    """The version of the scheduler, if not today's; of v1.37 the API server has the kinds, too."""
    keeps_classes: bool = True
    """Whether the scheduler has its class cache."""
    delays: Delays = field(default_factory=Delays)
    has_server_process: bool = True
    """Whether the API server runs in a process of its own."""


class Playground:
    """`async with Playground(settings) as playground: ...`"""

    def __init__(self, settings: PlaygroundSettings) -> None:
        self._settings = settings
        self._stack = AsyncExitStack()
        self.url = ""
        self._ending: list[asyncio.Task[None]] = []
        """Parts that must not end by themselves."""
        self.n_nodes = 0

    async def __aenter__(self) -> Playground:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self._stack.aclose()

    async def _start(self) -> None:
        settings = self._settings
        self._options = scheduler_options(
            settings.scheduler_config,
            settings.plugin_files,
            settings.feature_gates,
            keeps_classes=settings.keeps_classes,
            emulate=settings.emulate,
        )
        is_next = self._options.configuration.emulate == NEXT_VERSION
        self._server_settings = replace(settings.server, version=NEXT if is_next else TODAY)
        self._home_of = Homes(NEXT_POD_GROUPS.version if is_next else POD_GROUPS.version)
        await (self._start_server_process() if settings.has_server_process else self._start_server_here())
        self.client = self._client()
        self._stack.push_async_callback(self.client.close)
        self.discovered = DiscoveredKinds(self.client, asyncio.get_running_loop().time)
        await self._start_controllers()
        fleet = KubeletFleet(self._client_of_part(), FleetSettings(settings.delays, adopts_all=True))
        self._stack.push_async_callback(fleet.stop)
        first = () if self.controllers.view.of(Node) else settings.first_nodes
        self.n_nodes = await fleet.start([*settings.nodes, *first])
        with self.controllers.held():
            await self.put_in(settings.objects)
        await self._start_scheduler()

    async def run_until(self, stopped: asyncio.Event) -> None:
        """Until it is told to stop. Raises what a part ended with, or PartEndedError."""
        stopping = asyncio.create_task(stopped.wait())
        try:
            await asyncio.wait((stopping, *self._ending), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        for task in self._ending:
            if task.done() and not stopped.is_set():
                await task
                raise PartEndedError(f"the {task.get_name()} stopped unexpectedly")

    async def _start_server_here(self) -> None:
        server = ApiServer(replace(self._server_settings, mounts_tokens=True))
        self._stack.push_async_callback(server.stop)
        await server.start()
        server.write_kubeconfig(self._settings.kubeconfig)
        self.url = server.url

    async def _start_server_process(self) -> None:
        server = ServerProcess(self._server_settings, self._settings.kubeconfig)
        self._stack.push_async_callback(server.stop)
        await server.start()
        self.url = server.url
        self._ending.append(asyncio.create_task(server.wait(), name="API server"))

    async def put_in(self, objects: Sequence[Body], namespace: str = "default") -> None:
        """With the namespaces that they name. Raises InvalidManifestError."""
        nodes, others = split_nodes(objects)
        await put_in(self.client, self.discovered, [*named_namespaces(others), *nodes, *others], namespace)

    async def _start_controllers(self) -> None:
        self.controllers = ControllerRunner(
            self._client_of_part(),
            partial(
                all_controllers,
                root_ca_pem=certificate_authority(self._settings.kubeconfig),
                jobs_have_groups=self._options.gates[WORKLOAD_WITH_JOB],
                groups_have_claims=self._options.gates[WORKLOAD_RESOURCE_CLAIMS],
            ),
            home_of=self._home_of,
        )
        self._stack.push_async_callback(self.controllers.stop)
        await self.controllers.start()

    async def start_page(self) -> WebPage:
        """A web page that shows it all, for as long as the playground runs."""
        page = make_page(
            self.controllers,
            self.scheduler,
            self._options,
            self._client_of_part(),
            self.discovered,
            self._settings.kubeconfig,
        )
        self._stack.push_async_callback(page.stop)
        await page.start()
        return page

    def held_back(self) -> dict[str, str]:
        """Pods that the scheduler does not try yet, and the plugin that holds each back."""
        return {queued.key: queued.gating_plugin for queued in self.scheduler.loop.queue.contents.gated}

    @property
    def plugin_paths(self) -> list[Path]:
        """The files that the scheduler's plugins from outside are read from."""
        return self._options.plugins.paths()

    async def _start_scheduler(self) -> None:
        self.scheduler = LiveScheduler(self._options, self._target())
        running = asyncio.create_task(self.scheduler.run(), name=SCHEDULER)
        self._ending.append(running)
        self._stack.push_async_callback(self._stop_scheduler)
        is_up = asyncio.create_task(self.scheduler.is_scheduling.wait())
        await asyncio.wait((running, is_up), return_when=asyncio.FIRST_COMPLETED)
        is_up.cancel()
        if running.done():
            await running

    async def _stop_scheduler(self) -> None:
        self.scheduler.stop()
        await asyncio.gather(*(task for task in self._ending if task.get_name() == SCHEDULER), return_exceptions=True)

    def _client(self) -> RestClient:
        return RestClient(self._target(), qps=NO_LIMIT)

    def _client_of_part(self) -> RestClient:
        """Each part has connections of its own, as it had in a process of its own."""
        client = self._client()
        self._stack.push_async_callback(client.close)
        return client

    def _target(self) -> ServerTarget:
        return load_target(self._settings.kubeconfig)


def scheduler_options(
    config: Path | None,
    plugin_files: Sequence[str] = (),
    feature_gates: Sequence[str] = (),
    *,
    keeps_classes: bool = True,
    emulate: str = "",
) -> RunOptions:
    """Alone in its cluster, so it needs no election; without a configuration of its own it may write as fast as it can.
    Raises ConfigError, or FlagError where gates are wrong."""
    gates = ("DRADeviceTaintRules=true", *feature_gates)
    given: dict[str, object] = {
        "secure-port": 0,
        "feature-gates": tuple(pair for text in gates for pair in GATES.parse(text)),
    }
    if not keeps_classes:
        given["no-class-cache"] = True
    if emulate:
        given["emulate"] = emulate
    if config is not None:
        given["config"] = str(config)
    if plugin_files:
        given["plugin"] = tuple(plugin_files)
    options = read_options(given)
    effective = options.configuration
    election = replace_struct(effective.leader_election, leader_elect=False)
    connection = effective.client_connection
    if config is None:
        connection = replace_struct(connection, qps=NO_LIMIT)
    configuration = replace_struct(effective, leader_election=election, client_connection=connection)
    return replace(options, configuration=configuration)


_LISTS = ("clusters", "users", "contexts")


class InvalidKubeconfigError(ValueError):
    """A kubeconfig is not what one should be."""


def merged(own: dict[str, Any], added: dict[str, Any]) -> dict[str, Any]:
    """The user's kubeconfig with the entries of the other in it; entries of the same name are replaced."""
    result = {"apiVersion": "v1", "kind": "Config", **own}
    for key in _LISTS:
        new = added.get(key) or []
        names = {entry["name"] for entry in new}
        kept = [entry for entry in own.get(key) or [] if entry.get("name") not in names]
        result[key] = [*kept, *new]
    result["current-context"] = added["current-context"]
    return result


def merge_into(path: Path, added: Path) -> None:
    """Raises InvalidKubeconfigError."""
    own: Any = {}
    if path.exists():
        try:
            own = load_document(path.read_bytes()) or {}
        except OSError as problem:
            raise InvalidKubeconfigError(f"{path}: {problem.strerror or problem}") from None
        except yaml.YAMLError as problem:
            raise InvalidKubeconfigError(f"{path}: {yaml_problem(problem)}") from None
    if not isinstance(own, dict):
        raise InvalidKubeconfigError(f"{path}: not a kubeconfig")
    content = merged(own, load_document(added.read_bytes()))
    place = path.resolve()  # where a symbolic link leads: the link stays
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(place, plain_yaml(content).encode())
    except OSError as problem:
        raise InvalidKubeconfigError(f"{path}: {problem.strerror or problem}") from None


def certificate_authority(path: Path) -> str:
    """Who signs for the server that a playground's own kubeconfig names; nobody if it is not served by TLS."""
    (entry,) = load_document(path.read_bytes())["clusters"]
    return base64.b64decode(entry["cluster"].get("certificate-authority-data", "")).decode()


def usual_path(environment: dict[str, str]) -> Path:
    """Where kubectl writes: the first file of $KUBECONFIG, or its own."""
    named = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return Path(named[0]) if named else Path.home() / ".kube" / "config"
