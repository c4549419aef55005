"""From the first node to the verdict. See `harness.agreement`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec

from harness.agreement.cluster import Server
from harness.agreement.workload import Workload
from harness.live_scenarios.volume_controller import volume_controller
from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.kubeconfig import load_target
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.errors import KubeschedError
from kubesched.simulator.recording.lines import RecordingError
from kubesched.simulator.recording.reader import RecordingReader, Synced

_KUBESCHED = (sys.executable, "-m", "kubesched")
_SYNCED_WITHIN_S = 120.0
_ENDS_WITHIN_S = 600.0
_LAG_S = 6.0
"""Until what was bound last is judged, and is in the recording."""


@contextlib.contextmanager
def process(command: Sequence[str], output: Path, log: Path) -> Iterator[None]:
    """Runs as long as this lasts; then it is told to end, and its output is whole."""
    with output.open("wb") as out, log.open("wb") as err:
        running = subprocess.Popen(command, stdout=out, stderr=err)
        try:
            yield
        finally:
            code = running.poll()
            running.send_signal(signal.SIGINT)
            try:
                running.wait(_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
    if code is not None:
        last = log.read_text().splitlines()[-1:]
        click.echo(f"{shlex.join(command)} ended by itself with {code}: {' '.join(last)}", err=True)


async def play(given: argparse.Namespace, folder: Path) -> None:
    """Leaves in the folder what shadow says, and the recording."""
    kubeconfig = str(given.kubeconfig)
    at = ("--kubeconfig", kubeconfig)
    began_s = time.monotonic()

    def tell(text: str) -> None:
        click.echo(f"{time.monotonic() - began_s:6.0f} s  {text}")

    async with RestClient(load_target(given.kubeconfig), qps=-1) as client, volume_controller(client):
        workload = Workload(
            Server(client), n_nodes=given.nodes, n_bindings=given.bindings, rate=given.rate, seed=given.seed
        )
        await workload.prepare()
        with contextlib.ExitStack() as stack:
            if given.scheduler:
                command = shlex.split(given.scheduler.replace("{}", kubeconfig))
                stack.enter_context(process(command, folder / "scheduler.out", folder / "scheduler.log"))
            record = (*_KUBESCHED, "record", "-o", str(folder / "recording.jsonl.gz"), *at)
            shadow = (*_KUBESCHED, "shadow", "-o", "json", "--listen", "127.0.0.1:0", *at)
            stack.enter_context(process(record, folder / "record.out", folder / "record.log"))
            stack.enter_context(process(shadow, folder / "shadow.json", folder / "shadow.log"))
            async with asyncio.timeout(_SYNCED_WITHIN_S):
                while not has_begun(folder):
                    await asyncio.sleep(0.5)
            tell(f"{given.nodes} nodes; pods come and go")
            await workload.run(tell)
            await asyncio.sleep(_LAG_S)


def has_begun(folder: Path) -> bool:
    """Whether both know all that there is."""
    try:
        is_recording = any(isinstance(event, Synced) for event in RecordingReader(folder / "recording.jsonl.gz"))
    except RecordingError:  # nothing is written yet
        return False
    return is_recording and "from now on" in (folder / "shadow.log").read_text()


def replayed(folder: Path, name: str) -> bytes:
    command = (*_KUBESCHED, "replay", str(folder / "recording.jsonl.gz"), "-o", "json")
    answer = subprocess.run(command, check=True, capture_output=True).stdout
    (folder / name).write_bytes(answer)
    return answer


def line_of(title: str, answer: bytes) -> str:
    found = msgspec.json.decode(answer)
    verdicts = ", ".join(f"{name} {n}" for name, n in found["verdicts"].items() if n)
    share = found["agreement"] or 0.0
    lines = [f"{title:<10} {share * 100:.2f} % of {found['decided']} decisions: {verdicts}"]
    lines += [
        f"             {group['count']} {group['verdict']} by {group['plugin']} {group['reason']}".rstrip()
        for group in found["groups"]
    ]
    lines += [f"             {text}" for text in found["suspects"]]
    lines += [f"             {gap['kind']} may be missing: {gap['why']}" for gap in found["gaps"]]
    return "\n".join(lines)


def run(given: argparse.Namespace, folder: Path) -> bool:
    """Whether the replays gave the same bytes."""
    asyncio.run(play(given, folder))
    first, second = (replayed(folder, f"replay-{n}.json") for n in (1, 2))
    is_same = first == second
    click.echo(line_of("shadow", (folder / "shadow.json").read_bytes()))
    click.echo(line_of("recording", first))
    click.echo("replayed twice: the same bytes" if is_same else "replayed twice: the bytes differ")
    return is_same


def main() -> None:
    parser = argparse.ArgumentParser(description="How far kubesched agrees with the scheduler of an API server.")
    parser.add_argument("kubeconfig", type=Path, help="Of a server that nobody else uses.")
    parser.add_argument("--scheduler", default="", metavar="COMMAND", help="Start this; {} is the kubeconfig.")
    parser.add_argument("--nodes", type=int, default=150)
    parser.add_argument("--bindings", type=int, default=5_500)
    parser.add_argument("--rate", type=float, default=60.0, help="Pods a second, at most.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="Keep the recording, answers and logs there.")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        try:
            is_same = run(given, folder)
        except (KubeschedError, ApiError, Unreachable, AnswerLost, TimeoutError) as problem:
            sys.exit(f"error: {problem}")
        if not is_same:
            sys.exit(1)


if __name__ == "__main__":
    main()
