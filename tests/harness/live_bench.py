"""Live schedulers beside each other on one API server: from their start to the first binding, bindings a second, CPU.

    python -m harness.live_bench KUBECONFIG --nodes 500 --pods 1500 --rounds 3
    python -m harness.live_bench KUBECONFIG --scheduler 'kube-scheduler=/usr/local/bin/kube-scheduler --kubeconfig {}'

Schedulers take turns, round by round, so that what else the machine does meets all of them: `kubesched run`, the null
scheduler, and those that are given. Each round begins with another one. In each turn pods wait; the server collects its
garbage, which would else meet every second turn; then the scheduler is started and its bindings are watched.

The null scheduler is the least that a client can do: it lists pods once and posts bindings to nodes by turns over 64
connections. It compares nothing, watches nothing and writes no events. A second one has a watch of pods open, too, and
looks at nothing in it: where the server shares the cores, what it does for the watch is missing for bindings.

The server should be one that nobody else uses: nodes and pods are created in it, and left there.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec

from harness.apiserver_load.raw_http import connect, open_stream, read_access, send_all
from harness.apiserver_load.requests import binding_posts, node_name, pod_name
from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.kubeconfig import load_target
from kubesched.k8s.client.rest import RestClient

NULL = "null scheduler"
NULL_WATCHING = "null, watching"
OURS = "kubesched run"
_FLAGS = "--leader-elect=false --secure-port=0 --kube-api-qps=100000 --kube-api-burst=100000"
_PODS = "/api/v1/namespaces/default/pods"
_AT_ONCE = 64
_LONGEST_S = 300.0
_LONGEST_END_S = 10.0


class _Named(msgspec.Struct):
    name: str = ""
    uid: str = ""
    resource_version: str = msgspec.field(default="", name="resourceVersion")


class _Placed(msgspec.Struct, frozen=True):
    node_name: str = msgspec.field(default="", name="nodeName")


class _Pod(msgspec.Struct):
    metadata: _Named
    spec: _Placed = _Placed()


class _Pods(msgspec.Struct):
    metadata: _Named
    items: list[_Pod]


class _Change(msgspec.Struct):
    object: _Pod


@dataclass(frozen=True)
class Figures:
    to_first_s: float
    to_first_cpu_s: float
    per_s: float
    cpu_ms: float
    """Per pod, until two seconds after the last binding: with its events."""
    binding_ms: float
    """CPU per pod from the first binding to the last."""
    beside_ms: tuple[float, ...]
    """The same for each of the other processes, the server's and its etcd's."""


# -- the null scheduler ------------------------------------------------------------------------------------------------


async def bind_by_turns(kubeconfig: Path, n_nodes: int, *, watches: bool) -> None:
    async with RestClient(load_target(kubeconfig)) as client:
        listed = msgspec.json.decode(
            await client.request("GET", _PODS, params={"fieldSelector": "spec.nodeName="}), type=_Pods
        )
    uids = {pod.metadata.name: pod.metadata.uid for pod in listed.items}
    access = read_access(kubeconfig)
    if watches:
        await open_stream(
            access, f"/api/v1/pods?watch=true&resourceVersion={listed.metadata.resource_version}", len(uids)
        )
    connections = [await connect(access) for _ in range(_AT_ONCE)]
    await send_all(connections, binding_posts(access, uids, range(len(uids)), n_nodes, protobuf=False))


# -- what is measured --------------------------------------------------------------------------------------------------


class Scene:
    """A server with nodes and bound pods, in which pods are made to wait and are deleted again."""

    def __init__(self, client: RestClient, n_nodes: int, beside: Sequence[int] = ()) -> None:
        """`beside`: the ids of processes whose CPU time is of interest, too."""
        self._client = client
        self._n_nodes = n_nodes
        self._beside = beside

    async def fill(self, n_bound: int) -> None:
        names = [node_name(number) for number in range(self._n_nodes)]
        await self._delete_waiting()  # those of a run that was broken off
        await self._post("/api/v1/nodes", [_node(name) for name in names])
        nodes = itertools.cycle(names)
        await self._post(_PODS, [_pod(f"bound-{number:05d}", next(nodes)) for number in range(n_bound)])

    async def run(self, command: list[str], n_pods: int) -> Figures:
        await self._post(_PODS, [_pod(pod_name(number)) for number in range(n_pods)])
        with contextlib.suppress(ApiError):  # unless it is not to be profiled
            await self._client.request("GET", "/debug/pprof/heap", params={"gc": "1"})
        try:
            return await self._measured(command, n_pods)
        finally:
            await self._delete_waiting()

    async def _delete_waiting(self) -> None:
        params = {"labelSelector": "app=waiting"}
        body = b'{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}'
        await self._client.request("DELETE", _PODS, params=params, body=body, timeout_s=_LONGEST_S)

    async def _measured(self, command: list[str], n_pods: int) -> Figures:
        async with aclosing(self._bindings()) as bindings, asyncio.timeout(_LONGEST_S):
            await anext(bindings)
            began_s = time.monotonic()
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as scheduler:
                try:
                    first_s = last_s = await anext(bindings)
                    at_first = [_cpu_s(pid) for pid in (scheduler.pid, *self._beside)]
                    for _ in range(n_pods - 1):
                        last_s = await anext(bindings)
                    at_last = [_cpu_s(pid) for pid in (scheduler.pid, *self._beside)]
                    last_cpu_s = at_last[0]
                    for _ in range(20):
                        last_cpu_s = max(last_cpu_s, _cpu_s(scheduler.pid))
                        await asyncio.sleep(0.1)
                finally:
                    _end(scheduler)
        per_s = (n_pods - 1) / (last_s - first_s) if n_pods > 1 else 0.0
        own_ms, *beside_ms = ((last - first) / n_pods * 1e3 for first, last in zip(at_first, at_last, strict=True))
        cpu_ms = (last_cpu_s - at_first[0]) / n_pods * 1e3
        return Figures(first_s - began_s, at_first[0], per_s, cpu_ms, own_ms, tuple(beside_ms))

    async def _bindings(self) -> AsyncGenerator[float, None]:
        """When each was seen; the first thing that comes says that watching has begun. A watch that the server ends,
        as it does with readers that are too slow, goes on where it ended."""
        listed = await self._client.request("GET", _PODS, params={"labelSelector": "app=waiting", "limit": "1"})
        version = msgspec.json.decode(listed, type=_Pods).metadata.resource_version
        decode = msgspec.json.Decoder(_Change).decode
        seen: set[str] = set()
        yield 0.0
        while True:
            params = {"watch": "true", "labelSelector": "app=waiting", "resourceVersion": version}
            async with self._client.stream(_PODS, params) as lines:
                async for line in lines:
                    pod = decode(line).object
                    version = pod.metadata.resource_version
                    if pod.spec.node_name and pod.metadata.name not in seen:
                        seen.add(pod.metadata.name)
                        yield time.monotonic()

    async def _post(self, path: str, bodies: list[dict[str, object]]) -> None:
        waiting = iter(bodies)

        async def work() -> None:
            for body in waiting:
                try:
                    await self._client.request("POST", path, body=msgspec.json.encode(body))
                except ApiError as error:
                    if not error.is_already_exists:
                        raise

        await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


def _node(name: str) -> dict[str, object]:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": ready},
    }


def _pod(name: str, node: str = "") -> dict[str, object]:
    requests = {"cpu": "10m", "memory": "16Mi"}
    container = {"name": "c", "image": "pause", "resources": {"requests": requests}}
    spec: dict[str, object] = {"containers": [container], "terminationGracePeriodSeconds": 0}
    if node:
        spec["nodeName"] = node
    labels = {"app": "bound" if node else "waiting"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def _end(scheduler: subprocess.Popen[bytes]) -> None:
    scheduler.send_signal(signal.SIGINT)
    try:
        scheduler.wait(_LONGEST_END_S)
    except subprocess.TimeoutExpired:
        scheduler.kill()


def _cpu_s(pid: int) -> float:
    """Of all its threads, as the system counts it; 0 once it has ended."""
    try:
        tasks = [(task / "schedstat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return 0.0
    return sum(int(task.split()[0]) for task in tasks) / 1e9


# -- turns -------------------------------------------------------------------------------------------------------------


def _commands(kubeconfig: Path, n_nodes: int, given: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    yield OURS, [sys.executable, "-m", "kubesched", "run", "--kubeconfig", str(kubeconfig), *_FLAGS.split()]
    for one in given:
        name, _, command = one.partition("=")
        yield name, [*shlex.split(command.replace("{}", str(kubeconfig))), *_FLAGS.split()]
    null = [sys.executable, "-m", "harness.live_bench", str(kubeconfig), "--nodes", str(n_nodes), "--null"]
    yield NULL, null
    yield NULL_WATCHING, [*null, "--watch"]


async def compare(kubeconfig: Path, sizes: argparse.Namespace) -> dict[str, list[Figures]]:
    """Told to end (SIGTERM), it ends the scheduler whose turn it is, and deletes the pods that waited for it."""
    comparing = asyncio.current_task()
    assert comparing is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, comparing.cancel)
    found: dict[str, list[Figures]] = {}
    commands = dict(_commands(kubeconfig, sizes.nodes, sizes.scheduler))
    names = list(commands)
    async with RestClient(load_target(kubeconfig), qps=-1) as client:
        scene = Scene(client, sizes.nodes, sizes.beside)
        await scene.fill(sizes.bound)
        for number in range(sizes.rounds):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                figures = await scene.run(commands[name], sizes.pods)
                found.setdefault(name, []).append(figures)
                click.echo(f"{number + 1} {name:<16} {_line(figures)}")
    return found


def _line(figures: Figures) -> str:
    all_ms = [figures.binding_ms, *figures.beside_ms]
    shares = " + ".join(f"{ms:.3f}" for ms in all_ms)
    return (
        f"first binding after {figures.to_first_s:6.2f} s, {figures.to_first_cpu_s:5.2f} s of CPU; "
        f"{figures.per_s:7.0f} bindings/s, {figures.cpu_ms:6.3f} ms of CPU each with events, {shares} = "
        f"{sum(all_ms):.3f} ms while binding"
    )


def _median(found: Sequence[Figures]) -> Figures:
    def of(name: str) -> float:
        values: list[float] = [getattr(one, name) for one in found]
        return statistics.median(values)

    beside_ms = zip(*(one.beside_ms for one in found), strict=True)
    return Figures(
        of("to_first_s"),
        of("to_first_cpu_s"),
        of("per_s"),
        of("cpu_ms"),
        of("binding_ms"),
        tuple(map(statistics.median, beside_ms)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare live schedulers on one API server.")
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--bound", type=int, default=0, help="Pods that are bound before anything is measured.")
    parser.add_argument("--pods", type=int, default=1500, help="Pods that wait in each turn.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--scheduler", action="append", default=[], metavar="NAME=COMMAND", help="{} is the kubeconfig."
    )
    parser.add_argument(
        "--beside", type=int, action="append", default=[], metavar="PID", help="Whose CPU is told too: server, etcd."
    )
    parser.add_argument("--null", action="store_true", help="Be the null scheduler.")
    parser.add_argument("--watch", action="store_true", help="With --null: keep a watch of pods open.")
    given = parser.parse_args()
    if given.null:
        asyncio.run(bind_by_turns(given.kubeconfig, given.nodes, watches=given.watch))
        return
    try:
        compared = asyncio.run(compare(given.kubeconfig, given))
    except asyncio.CancelledError:
        sys.exit(128 + signal.SIGTERM)
    for name, found in compared.items():
        click.echo(f"median {name:<16} {_line(_median(found))}")


if __name__ == "__main__":
    main()
