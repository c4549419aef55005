"""How `kubesched run` ends, as a process: with which exit code, and in which words."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from live_clusters import write_kubeconfig

import kubesched
from harness.scripted_server import ScriptedServer, until
from kubesched.cli import record
from kubesched.live import engine_recorder
from kubesched.simulator.recording.lines import RecordingError
from kubesched.simulator.recording.reader import BoundSeen, Recorded, RecordingReader, Synced
from kubesched.simulator.replay.exact import ExactReplay
from kubesched.testing import make

QUICKLY = [
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=100ms",
]


@asynccontextmanager
async def _scheduling(server: ScriptedServer, *flags: str) -> AsyncIterator[Process]:
    """A process that has bound a pod, and told of it."""
    command = [sys.executable, "-m", "kubesched", "run", f"--master={server.url}", "--secure-port=0", "-v=2", *flags]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    try:
        server.put(make.node("a"))
        server.put(make.pod("p"))
        await until(lambda: any(b'"Scheduled"' in sent.body for sent in server.asked("POST", "/events")), within_s=60.0)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


def _ends(act: Callable[[ScriptedServer, Process], None], *flags: str) -> tuple[int | None, str]:
    async def story() -> tuple[int | None, str]:
        async with ScriptedServer() as server, _scheduling(server, *flags) as process:
            act(server, process)
            _out, log = await process.communicate()
            return process.returncode, log.decode()

    return asyncio.run(story())


def _terminate(_server: ScriptedServer, process: Process) -> None:
    process.send_signal(signal.SIGTERM)


def _take_the_lease(server: ScriptedServer, _process: Process) -> None:
    (lease,) = server.objects("Lease")
    server.put({**lease, "spec": {**lease["spec"], "holderIdentity": "another"}})


@pytest.fixture(scope="module")
def told_to_end() -> tuple[int | None, str]:
    """Exit code and log of one that took part in no election."""
    return _ends(_terminate, "--leader-elect=false")


def _assert_ended_well(code: int | None, log: str) -> None:
    assert code == 0, log
    assert "Requested to terminate, exiting" in log
    assert "finished without leader elect" not in log


def test_without_an_election_who_is_asked_to_end_ends_with_0(told_to_end: tuple[int | None, str]) -> None:
    _assert_ended_well(*told_to_end)


def test_a_leader_that_is_asked_to_end_ends_with_0() -> None:
    _assert_ended_well(*_ends(_terminate, *QUICKLY))


def test_who_loses_the_lease_ends_with_1() -> None:
    code, log = _ends(_take_the_lease, *QUICKLY)
    assert code == 1, log
    assert "Leaderelection lost" in log
    assert "lost lease" not in log


def test_a_bound_pod_is_logged_with_how_many_nodes_were_evaluated_and_how_many_feasible(
    told_to_end: tuple[int | None, str],
) -> None:
    _code, log = told_to_end
    assert '"Successfully bound pod to node" pod="default/p" node="a" evaluatedNodes=1 feasibleNodes=1' in log


def test_a_scheduler_does_not_wait_for_what_it_may_never_need() -> None:
    """What takes long to import comes with the secure port, a proxy, an extender, or somebody's question."""
    late = ("aiohttp", "cryptography", "kubesched.explanation", "kubesched.playground", "kubesched.planning")
    rare = ("kubesched.older.engine", "kubesched.older.plugins", "kubesched.k8s.cel.", "kubesched.simulator.replay")
    assert not [name for name in _loaded_by("kubesched.live.live_scheduler") if name.startswith((*late, *rare))]


def test_the_server_is_asked_for_its_lists_before_what_takes_long_to_import() -> None:
    assert not [name for name in _loaded_by("kubesched.cli.run") if name.startswith(("numpy", "kubesched.framework"))]


def _loaded_by(module: str) -> list[str]:
    listed = f"import sys, {module}; print(*sys.modules)"
    return subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True).stdout.split()


# -- killed ------------------------------------------------------------------------------------------------------------


async def _kill_once(is_written: Callable[[], bool], server: ScriptedServer, process: Process) -> None:
    """While more is being written. Without notice: it cannot put anything in order."""
    for number in range(20):
        server.put(make.pod(f"early-{number}"))
    await until(is_written, within_s=60.0)
    for number in range(20):
        server.put(make.pod(f"late-{number}"))
    await until(lambda: bool(bound_pods(server) & {f"late-{number}" for number in range(20)}), within_s=60.0)
    process.kill()
    await process.communicate()


def bound_pods(server: ScriptedServer) -> set[str]:
    return {pod["metadata"]["name"] for pod in server.objects("Pod") if pod["spec"].get("nodeName")}


def test_the_journal_of_one_that_is_killed_can_be_replayed(tmp_path: Path) -> None:
    journal = tmp_path / "journal"

    def replayed() -> ExactReplay:
        replay = ExactReplay(journal)
        replay.run()
        return replay

    def n_bound() -> int:
        try:
            return replayed().n_bound
        except RecordingError:  # nothing is written yet
            return 0

    async def story() -> None:
        async with ScriptedServer() as server:
            flags = ("--leader-elect=false", f"--record={journal}")
            async with _scheduling(server, *flags) as process:
                await _kill_once(lambda: n_bound() >= 21, server, process)

    asyncio.run(story())
    replay = replayed()
    assert replay.difference == "" and replay.n_bound >= 21
    assert engine_recorder._WRITE_EVERY_S < 1


def test_the_recording_of_a_recorder_that_is_killed_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "day.jsonl.gz"

    def seen() -> list[Recorded]:
        try:
            return list(RecordingReader(path))
        except RecordingError:  # nothing is written yet
            return []

    def bound() -> set[str]:
        return {event.pod for event in seen() if isinstance(event, BoundSeen)}

    async def story() -> None:
        async with ScriptedServer() as server, _scheduling(server, "--leader-elect=false") as scheduler:
            config = write_kubeconfig(tmp_path / "kubeconfig", server.url)
            command = [sys.executable, "-m", "kubesched", "record", "-o", str(path), "--kubeconfig", str(config)]
            recorder = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
            await until(lambda: any(isinstance(event, Synced) for event in seen()), within_s=60.0)
            await _kill_once(lambda: len(bound()) >= 20, server, recorder)
            assert scheduler.returncode is None

    asyncio.run(story())
    found = kubesched.replay(path)
    assert {f"default/early-{number}" for number in range(20)} <= bound()
    assert found.n_agreed == found.n_decided >= 20
    assert record._FLUSH_EVERY_S < 1
