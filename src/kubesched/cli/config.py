"""`kubesched config`: show, complete, check and convert KubeSchedulerConfiguration files.

Errors go to standard error, one line each, and make the exit code 2. `-` stands for standard input. `view --emulate`
shows what an older scheduler runs, as tables.

Next: `kubesched.scheduler.config`, which does the work.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from kubesched.cli.output import ERROR_EXIT, say_error
from kubesched.cli.scheduler_choice import GatePairs

if TYPE_CHECKING:
    from kubesched.cli.scheduler_choice import SchedulerChoice
    from kubesched.older.config import Emulation
    from kubesched.scheduler.config import KubeSchedulerConfiguration, ResolvedProfile

_STDIN = "-"

_output_option = click.option(
    "-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True, help="Output format."
)


@click.group("config")
def config() -> None:
    """Show, validate and convert KubeSchedulerConfiguration files."""


@config.command("view", short_help="Print a configuration with all defaults.")
@click.option("-f", "--filename", metavar="FILE", help="Configuration file; - for standard input.")
@click.option("--emulate", metavar="VERSION", help="Show what this version runs: 1.13, 1.14, 1.17, 1.18 or 1.19.")
@click.option("--policy-config-file", metavar="FILE", help="With --emulate: a Policy file.")
@click.option("--algorithm-provider", metavar="NAME", help="With --emulate: an algorithm provider.")
@click.option(
    "--feature-gates", type=GatePairs(), metavar="NAME=BOOL,...", help="With --emulate: feature gates of that version."
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "yaml", "json"]),
    help="Output format.  [default: yaml; text with --emulate]",
)
def view(
    filename: str | None,
    emulate: str | None,
    policy_config_file: str | None,
    algorithm_provider: str | None,
    feature_gates: dict[str, bool] | None,
    output: str | None,
) -> None:
    """Print a configuration with all defaults, or what an older version runs.

    With --emulate, shows the predicates and priorities, or the plugins of each extension point, with their weights:
    those of the given configuration, Policy or provider, or of that version's default provider.
    """
    from kubesched.cli.files import InputError
    from kubesched.cli.scheduler_choice import SchedulerChoice
    from kubesched.scheduler.config import ConfigError

    choice = SchedulerChoice(filename, policy_config_file, algorithm_provider, emulate, feature_gates or {})
    try:
        if choice.generation() is not None:
            _view_emulated(choice, output or "text")
            return
        for flag, given in (("--policy-config-file", policy_config_file), ("--algorithm-provider", algorithm_provider)):
            if given is not None:
                raise click.UsageError(
                    f"{flag} needs --emulate; to convert older files, use `kubesched config convert`"
                )
        if filename is None and emulate is None:
            raise click.UsageError("Missing option '-f' / '--filename', or --emulate.")
        if output == "text":
            raise click.UsageError("-o text needs --emulate of an older version")
        _view_today(filename, emulate, output or "yaml")
    except (ConfigError, InputError) as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)


def _view_today(filename: str | None, emulate: str | None, output: str) -> None:
    from msgspec.structs import replace

    from kubesched.older.config import emulated_in_config
    from kubesched.scheduler.config import default, load, to_manifest
    from kubesched.scheduler.newer.version import configuration_as_emulated

    config = default() if filename is None else load(_read(filename), _source(filename))
    if (version := emulated_in_config(emulate)) is not None:
        config = replace(config, emulate=version)
    _print_manifest(to_manifest(configuration_as_emulated(config)), output)


def _view_emulated(choice: SchedulerChoice, output: str) -> None:
    from kubesched.cli.output import print_record, say_warning
    from kubesched.older.config.running import running

    emulation = choice.read().emulation
    assert emulation is not None
    for note in emulation.notes:
        say_warning(note)
    if output == "text":
        click.echo("\n".join(view_lines(emulation)))
    else:
        print_record(running(emulation), output)


@config.command("default")
@_output_option
def default_configuration(output: str) -> None:
    """Print the default configuration."""
    from kubesched.scheduler.config import default, to_manifest

    _print_manifest(to_manifest(default()), output)


@config.command("validate")
@click.argument("filenames", nargs=-1, required=True, metavar="FILE...")
@click.option("--resolved", is_flag=True, help="Also show the plugins of each extension point, in order, with weights.")
def validate(filenames: tuple[str, ...], resolved: bool) -> None:
    """Validate configurations: prints `FILE: ok`, or every error."""
    from kubesched.cli.files import InputError
    from kubesched.scheduler.config import ConfigError, load
    from kubesched.scheduler.config.configuration import extender_warnings

    n_bad = 0
    for filename in filenames:
        source = _source(filename)
        try:
            loaded = load(_read(filename), source)
            profiles = _resolved(loaded, source)
        except (ConfigError, InputError) as error:
            click.echo(str(error), err=True)
            n_bad += 1
            continue
        click.echo(f"{source}: ok")
        for warning in extender_warnings(loaded.extenders):
            click.echo(f"{source}: warning: {warning}", err=True)
        if resolved:
            for profile in profiles:
                _print_resolved(profile)
    if n_bad:
        sys.exit(ERROR_EXIT)


@config.command("convert")
@click.argument("filename", metavar="FILE")
@_output_option
def convert(filename: str, output: str) -> None:
    """Convert a Policy or an older configuration to v1.

    The result goes to standard output; what had to be changed or dropped goes to standard error, one line each.
    FILE may be - for standard input.
    """
    from kubesched.cli.files import InputError
    from kubesched.older.config.conversion import load_any
    from kubesched.scheduler.config import ConfigError

    source = _source(filename)
    try:
        converted = load_any(_read(filename), source)
    except (ConfigError, InputError) as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)
    for note in converted.notes:
        click.echo(f"{source}: {note}", err=True)
    _print_manifest(converted.manifest, output)


def _resolved(config: KubeSchedulerConfiguration, source: str) -> tuple[ResolvedProfile, ...]:
    """With the plugins that the configuration names the files of, and those that are installed."""
    from kubesched.scheduler.config import resolve_profiles
    from kubesched.scheduler.plugin_loading import assemble
    from kubesched.scheduler.plugins.registry import capabilities

    assembled = assemble(config, source)
    return resolve_profiles(assembled.config, capabilities(assembled.registry), source)


def _read(filename: str) -> bytes:
    from kubesched.cli.files import read_bytes

    return read_bytes(filename)


def _source(filename: str) -> str:
    return "<stdin>" if filename == _STDIN else filename


def _print_manifest(manifest: dict[str, Any], output: str) -> None:
    import json

    from kubesched.scheduler.config import to_yaml

    if output == "json":
        click.echo(json.dumps(manifest, indent=2, ensure_ascii=False))
    else:
        click.echo(to_yaml(manifest), nl=False)


def _print_resolved(profile: ResolvedProfile) -> None:
    click.echo(f"profile {profile.scheduler_name}")
    width = max(map(len, profile.points))
    for point, plugins in profile.points.items():
        names = [f"{plugin.name} ({plugin.weight})" if plugin.weight else plugin.name for plugin in plugins]
        click.echo(f"  {point:<{width}}  {', '.join(names) or '-'}")


Row = tuple[str, ...]


def view_lines(emulation: Emulation) -> Iterator[str]:
    """The answer first; then each profile, and what counts besides."""
    from kubesched.older.config.running import how_many, running, summary

    record = running(emulation)
    yield summary(emulation)
    several = len(emulation.profiles) > 1
    for profile, shown in zip(emulation.profiles, record["profiles"], strict=True):
        yield ""
        if several:
            yield f"Profile {shown['schedulerName']}: {how_many(profile, emulation.generation)}"
        yield from _plugins(shown) if "plugins" in shown else _predicates(shown)
    yield ""
    yield from _table(list(_settings(record)), ())


def _predicates(profile: dict[str, Any]) -> Iterator[str]:
    rows = [(entry["name"], _args(entry)) for entry in profile["predicates"]]
    yield from _table(rows, ("PREDICATE", "ARGUMENTS"))
    yield ""
    rows_of_priorities = [(entry["name"], str(entry["weight"]), _args(entry)) for entry in profile["priorities"]]
    yield from _table(rows_of_priorities, ("PRIORITY", "WEIGHT", "ARGUMENTS"))


def _plugins(profile: dict[str, Any]) -> Iterator[str]:
    rows = []
    for point, entries in profile["plugins"].items():
        for entry in entries or [{"name": "-"}]:
            older = entry.get("predicate") or entry.get("priority") or ""
            rows.append((point, entry["name"], str(entry.get("weight", "")), older, _args(entry)))
    yield from _table(rows, ("POINT", "PLUGIN", "WEIGHT", "PREDICATE OR PRIORITY", "ARGUMENTS"))


def _settings(record: dict[str, Any]) -> Iterator[Row]:
    profiles = record["profiles"]
    yield "preemption", _by_profile(profiles, "preempts")
    if any(profile["checksAllPredicates"] for profile in profiles):
        yield "check all predicates of a node", _by_profile(profiles, "checksAllPredicates")
    share = record["percentageOfNodesToScore"]
    yield "nodes to score", f"{share} %" if share else "depends on cluster size"
    for name, value in sorted(record["featureGates"].items()):
        yield f"feature gate {name}", "on" if value else "off"
    for extender in record.get("extenders", ()):
        verbs = [verb for verb in ("filter", "prioritize", "preempt", "bind") if extender.get(f"{verb}Verb")]
        yield f"extender {extender['urlPrefix']}", ", ".join(verbs) or "no verbs"


def _by_profile(profiles: Sequence[dict[str, Any]], field: str) -> str:
    said = ["yes" if profile[field] else "no" for profile in profiles]
    return (
        said[0]
        if len(set(said)) == 1
        else ", ".join(f"{profile['schedulerName']}: {answer}" for profile, answer in zip(profiles, said, strict=True))
    )


def _args(entry: dict[str, Any]) -> str:
    return json.dumps(entry["args"], ensure_ascii=False) if entry.get("args") else ""


def _table(rows: Sequence[Row], heading: Row) -> Iterator[str]:
    """Columns under their headings; a column in which nothing stands is left out."""
    lines = [heading, *rows] if heading else list(rows)
    kept = [column for column in range(len(lines[0])) if not rows or any(row[column] for row in rows)] if lines else []
    widths = {column: max(len(line[column]) for line in lines) for column in kept}
    for line in lines:
        yield "  ".join(line[column].ljust(widths[column]) for column in kept).rstrip()
    if heading and not rows:
        yield "none"
