"""`kubesched replay`: plays a recording again, with the recorded decisions or with ours.

Next: `kubesched.simulator.replay`, which does it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.output import (
    ERROR_EXIT,
    colour_option,
    format_option,
    print_answer,
    print_record,
    say_error,
    say_warning,
)
from kubesched.cli.planning import NO_EXIT
from kubesched.cli.scheduler_choice import ChosenScheduler, SchedulerChoice, scheduler_options

if TYPE_CHECKING:
    from kubesched.simulator.replay.agreement import Agreement

_DAY_S = 86_400.0


@click.command("replay")
@click.argument("recording", metavar="FILE")
@click.option("--open", "mode", flag_value="open", default=True, help="Decide each recorded binding again (default).")
@click.option(
    "--closed", "mode", flag_value="closed", help="Bind pods where kubesched decides; they arrive and end as recorded."
)
@click.option("--exact", "mode", flag_value="exact", help="Rerun a journal of `kubesched run --record`, step by step.")
@click.option("--from", "from_", metavar="TIME", help="Compare only bindings from this time on: 09:00, or RFC 3339.")
@click.option("--to", metavar="TIME", help="Compare only bindings up to this time.")
@scheduler_options
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of --closed.")
@format_option("wide shows every difference.")
@colour_option
@click.option("--exit-code", "is_exit_code", is_flag=True, help="Exit with 1 if a decision differs.")
def replay(
    recording: str,
    mode: str,
    from_: str | None,
    to: str | None,
    scheduler: SchedulerChoice,
    seed: int,
    output: str,
    is_exit_code: bool,
) -> None:
    """Play a recording again: does this scheduler decide as the recorded one did?

    \b
    kubesched replay day.jsonl.gz
    kubesched replay day.jsonl.gz --config other.yaml --from 09:00 --to 10:00
    kubesched replay day.jsonl.gz --closed --config other.yaml
    kubesched replay --exact journal/
    """
    from kubesched.k8s.errors import KubeschedError
    from kubesched.simulator.replay.agreement import render_agreement

    try:
        chosen = scheduler.read()
        for note in chosen.notes:
            say_warning(note)
        if mode == "closed":
            _closed(recording, chosen, seed, output)
            return
        if mode == "exact":
            _exact(recording, scheduler.plugin_files)
            return
        found = _opened(recording, chosen, from_, to)
    except KubeschedError as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)
    if output in ("json", "yaml"):
        print_record(found.to_dict(), output)
    else:
        print_answer(lambda style: render_agreement(found, style), output)
    if is_exit_code and found.n_agreed < found.n_decided:
        sys.exit(NO_EXIT)


def _opened(recording: str, chosen: ChosenScheduler, from_: str | None, to: str | None) -> Agreement:
    from kubesched.simulator.recording.reader import RecordingReader
    from kubesched.simulator.replay.library import open_replay

    path = Path(recording)
    started_s = RecordingReader(path).header.started_s
    return open_replay(
        path,
        chosen.config,
        registry=chosen.registry,
        emulation=chosen.emulation,
        from_s=_moment("--from", from_, started_s),
        to_s=_moment("--to", to, started_s),
    )


def _closed(recording: str, chosen: ChosenScheduler, seed: int, output: str) -> None:
    from kubesched.simulator.replay.closed import closed_replay, render_closed

    found = closed_replay(
        Path(recording), chosen.config, registry=chosen.registry, emulation=chosen.emulation, seed=seed
    )
    if output in ("json", "yaml"):
        print_record(found.to_dict(), output)
    else:
        print_answer(lambda style: render_closed(found, style), output)


def _exact(directory: str, plugin_files: tuple[str, ...]) -> None:
    from kubesched.simulator.replay.exact import ExactReplay

    found = ExactReplay(Path(directory), plugin_files)
    found.run()
    click.echo(found.headline)
    if found.difference:
        sys.exit(NO_EXIT)


def _moment(option: str, text: str | None, started_s: float) -> float | None:
    """Seconds since the epoch; a time of day is on the day that the recording began, or the next."""
    from kubesched.cli.files import InputError
    from kubesched.k8s.model.times import InstantError, parse_instant

    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", text)
    if found is None:
        try:
            return parse_instant(text)
        except InstantError:
            raise InputError(f"{option}: {text!r} is neither a time such as 09:00 nor an RFC 3339 time") from None
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    if hours >= 24 or minutes >= 60 or seconds >= 60:
        raise InputError(f"{option}: {text!r} is not a time of day")
    midnight_s = started_s - started_s % _DAY_S
    at_s = midnight_s + hours * 3600 + minutes * 60 + seconds
    return at_s if at_s >= started_s else at_s + _DAY_S
