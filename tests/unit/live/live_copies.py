"""Copies of the live scheduler in the test's own process, on a scripted server, and what must hold about their work."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from harness.live_scenarios.scheduler_process import configuration
from harness.scripted_server import Fault, RecordedRequest, ScriptedServer, until
from kubesched.k8s.client.credentials.stored import StaticCredentials
from kubesched.k8s.client.list_watch import Pace
from kubesched.k8s.client.target import Credentials, ServerTarget
from kubesched.k8s.model import quantity
from kubesched.live.live_scheduler import LiveScheduler
from kubesched.live.options import RunOptions, parse_flags, read_options

SCHEDULER = "kubesched-test"
HURRY = 50.0
"""Pauses before something is asked again are so much shorter than in earnest."""
_COPY = "X-Copy"
QUICK_ELECTION = {"leaseDuration": "2s", "renewDeadline": "1500ms", "retryPeriod": "200ms"}


async def _hurried_sleep(for_s: float) -> None:
    await asyncio.sleep(for_s / HURRY)


def options(*, leader_elect: bool = False, flags: tuple[str, ...] = ()) -> RunOptions:
    election: dict[str, Any] = QUICK_ELECTION if leader_elect else {"leaderElect": False}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(yaml.safe_dump(configuration([SCHEDULER], "kubesched-test", **election)))
        return read_options(parse_flags([f"--config={path}", "--secure-port=0", *flags]))


@dataclass
class Copy:
    """One scheduler that runs."""

    scheduler: LiveScheduler
    running: asyncio.Task[None]

    async def schedules(self) -> None:
        """Until it leads; if it ends before, with its error."""
        await until(lambda: self.scheduler.is_scheduling.is_set() or self.running.done())
        if self.running.done():
            await self.running

    async def stop(self) -> None:
        self.scheduler.stop()
        with contextlib.suppress(asyncio.CancelledError):
            await self.running


def start_copy(
    server: ScriptedServer,
    *,
    name: str = "only",
    leader_elect: bool = False,
    login: Credentials | None = None,
    flags: tuple[str, ...] = (),
) -> Copy:
    """All its requests carry its name, so that they can be told apart."""
    signed = StaticCredentials(((_COPY, name),), "")
    target = ServerTarget(url=server.url, credentials=login or signed)
    scheduler = LiveScheduler(options(leader_elect=leader_elect, flags=flags), target, pace=Pace(sleep=_hurried_sleep))
    return Copy(scheduler, asyncio.create_task(scheduler.run(), name=f"scheduler {name}"))


@contextlib.asynccontextmanager
async def scheduling(server: ScriptedServer, **how: Any) -> AsyncIterator[Copy]:
    """A copy that already schedules, and is stopped at the end."""
    copy = start_copy(server, **how)
    try:
        await copy.schedules()
        yield copy
    finally:
        await copy.stop()


@dataclass
class BindingJournal:
    """Sees every binding as it arrives, and cuts off the copies that it is told to."""

    server: ScriptedServer
    sent: list[tuple[str, str]] = field(default_factory=list)
    """(pod, by which copy)"""
    needless: list[str] = field(default_factory=list)
    """Pods that were bound already when somebody wanted to bind them."""
    writes: Counter[str] = field(default_factory=Counter)
    """By copy, all that changes something but events and leases."""
    cut_off: set[str] = field(default_factory=set)
    cut_off_after: dict[str, int] = field(default_factory=dict)
    """By copy, how many bindings it gets through: whoever wants to interrupt it may be slower than it binds."""
    cut_off_leases: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.server.faults.rule = self._arrived

    def _arrived(self, request: RecordedRequest) -> Fault | None:
        copy = request.headers.get(_COPY, "")
        if copy in self.cut_off or (copy in self.cut_off_leases and "leases" in request.path):
            return Fault(drop=True)
        if request.method != "GET" and not request.path.endswith("/events") and "leases" not in request.path:
            self.writes[copy] += 1
        if request.path.endswith("/binding"):
            name = request.path.split("/")[-2]
            self.sent.append((name, copy))
            if sum(sender == copy for _, sender in self.sent) == self.cut_off_after.get(copy):
                self.cut_off.add(copy)
            pod = self.server.get("Pod", name, "default")
            if pod is not None and pod["spec"].get("nodeName"):
                self.needless.append(name)
        return None


def tell(story: Callable[[ScriptedServer], Awaitable[None]], **server_options: Any) -> None:
    async def run() -> None:
        async with ScriptedServer(**server_options) as server:
            await story(server)

    asyncio.run(run())


def put_nodes(server: ScriptedServer, n_nodes: int, cpu: str = "2") -> None:
    for i in range(n_nodes):
        amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
        server.put({"kind": "Node", "metadata": {"name": f"node-{i}"}, "status": {"allocatable": amounts}})


def put_pods(server: ScriptedServer, first: int, n_pods: int, cpu: str = "500m", priority: int = 0) -> None:
    for i in range(first, first + n_pods):
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
        spec = {"schedulerName": SCHEDULER, "priority": priority, "containers": [container]}
        server.put({"kind": "Pod", "metadata": {"name": f"pod-{i}"}, "spec": spec})


def node_of(server: ScriptedServer, name: str) -> str:
    pod = server.get("Pod", name, "default")
    return "" if pod is None else str(pod["spec"].get("nodeName", ""))


def n_bound(server: ScriptedServer) -> int:
    return sum(1 for pod in server.objects("Pod") if pod["spec"].get("nodeName"))


async def all_bound(server: ScriptedServer, within_s: float = 20.0) -> None:
    await until(lambda: n_bound(server) == len(server.objects("Pod")), within_s)


def assert_no_node_is_over_committed(server: ScriptedServer) -> None:
    used: Counter[str] = Counter()
    for pod in server.objects("Pod"):
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        used[pod["spec"].get("nodeName", "")] += quantity.parse(requests["cpu"]).milli_value
    room = {
        node["metadata"]["name"]: quantity.parse(node["status"]["allocatable"]["cpu"]).milli_value
        for node in server.objects("Node")
    }
    assert {name: amount for name, amount in used.items() if name and amount > room[name]} == {}
