"""`kubesched record`: writes what happens in a live cluster to a file, for `kubesched replay` later. Read only.

Next: `kubesched.live.recorder`, which follows the cluster; `kubesched.simulator.recording` for the file.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.live import ServerChoice, server_options
from kubesched.cli.output import ERROR_EXIT, UNREACHABLE_EXIT, say_error
from kubesched.cli.scenario import SPAN

if TYPE_CHECKING:
    from kubesched.k8s.client.target import ServerTarget
    from kubesched.simulator.recording.anonymous import Anonymiser
    from kubesched.simulator.recording.lines import RecordingWriter
    from kubesched.simulator.recording.reader import Recorded

_FLUSH_EVERY_S = 0.5
"""What is lost when the process is killed is at most what came since."""


@click.command("record")
@click.option("-o", "--output", required=True, metavar="FILE", help="File to write, such as day.jsonl.gz.")
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="FILE",
    help="Convert another tool's trace instead of recording a live cluster. Repeatable.",
)
@server_options
@click.option("--for", "for_s", type=SPAN, help="Stop after this time; without it, on Ctrl-C.")
@click.option("--rotate", "rotate_s", type=SPAN, help="Start a new file this often: day-0002.jsonl.gz and so on.")
@click.option("--append", is_flag=True, help="Continue an existing recording in a new file; the gap is noted.")
@click.option("--anonymise", is_flag=True, help="Replace names, label values and images by keyed hashes.")
@click.option(
    "--anonymise-key", metavar="FILE", help="Use the key in this file, so that names match across recordings."
)
def record(
    output: str,
    sources: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    for_s: float | None,
    rotate_s: float | None,
    append: bool,
    anonymise: bool,
    anonymise_key: str | None,
) -> None:
    """Record a live cluster to a file: objects, changes and bindings, with what scheduling reads of them and no more.

    \b
    kubesched record -o day.jsonl.gz --for 24h
    kubesched replay day.jsonl.gz
    kubesched record -o trace.jsonl.gz --from nodes.csv --from pods.csv
    """
    from kubesched.explanation.layout import counted
    from kubesched.k8s.errors import KubeschedError
    from kubesched.live.cluster_reader import ClusterReadError

    try:
        anonymiser = _anonymiser(anonymise, anonymise_key)
        path = _place(output, append)
        if sources:
            written = _convert(sources, path, anonymiser)
        else:
            target = ServerChoice(kubeconfig, context).target()
            written = asyncio.run(_record(target, path, anonymiser, for_s, rotate_s))
    except ClusterReadError as error:
        say_error(str(error))
        sys.exit(UNREACHABLE_EXIT)
    except KubeschedError as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)
    size = f"{written.n_bytes / 1e6:.1f} MB"
    click.echo(f"{written.path}: {counted(written.n_bindings, 'binding')} recorded, {size}")


def _anonymiser(wanted: bool, key_file: str | None) -> Anonymiser | None:
    from kubesched.k8s.loaded_cluster import read_file
    from kubesched.simulator.recording.anonymous import Anonymiser

    if key_file is not None:
        return Anonymiser(read_file(key_file))
    return Anonymiser() if wanted else None


def _place(output: str, append: bool) -> Path:
    from kubesched.cli.files import InputError, check_place

    check_place(output)
    path = Path(output)
    if path.exists() and not append:
        raise InputError(f"{output}: exists already; --append continues it in a new file")
    return path


def _convert(sources: tuple[str, ...], path: Path, anonymiser: Anonymiser | None) -> RecordingWriter:
    from kubesched.k8s.dumped_kinds import READ_RESOURCES
    from kubesched.live.recorder import write_to
    from kubesched.simulator.recording.imports import imported
    from kubesched.simulator.recording.lines import RecordingError, RecordingWriter, chunks_of, unpacked

    read = [(name, b"".join(unpacked(chunks_of(Path(name))))) for name in sources]
    events = imported(read)
    kinds = [resource.type.__name__ for resource in READ_RESOURCES]
    writer = RecordingWriter(
        path, kinds, events[0].at_s, anonymised=anonymiser is not None, source=", ".join(map(str, sources))
    )
    hand_on = write_to(writer, anonymiser)
    for event in events:
        hand_on(event)
    try:
        writer.close()
    except RecordingError:
        path.unlink(missing_ok=True)
        raise
    return writer


async def _record(
    target: ServerTarget, path: Path, anonymiser: Anonymiser | None, for_s: float | None, rotate_s: float | None
) -> RecordingWriter:
    from kubesched.k8s.dumped_kinds import READ_RESOURCES
    from kubesched.live.recorder import check_readable, follow, write_to
    from kubesched.simulator.recording.lines import RecordingWriter, next_number, segments_of
    from kubesched.simulator.recording.reader import Synced

    await check_readable(target)
    writer = RecordingWriter(
        path,
        [resource.type.__name__ for resource in READ_RESOURCES],
        time.time(),
        anonymised=anonymiser is not None,
        rotate_s=rotate_s,
        first_number=next_number(path),
        gap_from_s=segments_of(path)[-1].stat().st_mtime if path.exists() else None,
    )
    write = write_to(writer, anonymiser)

    def take(event: Recorded) -> None:
        write(event)
        if isinstance(event, Synced) and sys.stderr.isatty():
            click.echo(f"Recording {target.source} to {writer.path} from now on. Ctrl-C stops.", err=True)

    try:
        await follow(
            target,
            take,
            stopping=stop_signal(),
            for_s=for_s,
            every=lambda: writer.flush(time.time()),
            every_s=_FLUSH_EVERY_S,
        )
    finally:
        writer.close()
    return writer


def stop_signal() -> asyncio.Event:
    """Set by Ctrl-C, and when the process is told to end."""
    stopping = asyncio.Event()
    if threading.current_thread() is threading.main_thread():  # others are not told of signals
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping
