"""`kubesched plugin`: begin a plugin of one's own, and try it out.

Next: `kubesched.plugin_tools.check`, which does the work.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubesched.cli.output import ERROR_EXIT, print_record, say_error

if TYPE_CHECKING:
    from kubesched.plugin_tools.check.subject import Case, Subject

FAILED_EXIT = 1
_CHECKS = ("answers", "forms", "writes", "bounds", "symmetry", "events", "determinism", "scope")


@click.group("plugin")
def plugin() -> None:
    """Create and check a plugin of your own."""


@plugin.command("new")
@click.argument("name")
@click.option(
    "--directory", default=".", show_default=True, metavar="DIR", help="Directory to write to; created if missing."
)
def new(name: str, directory: str) -> None:
    """Create a working plugin and its test.

    NAME is CamelCase or kebab-case: QuietHours or quiet-hours. Existing files are not overwritten.
    """
    from kubesched.cli.files import InputError, write_files
    from kubesched.plugin_tools.new_plugin import PluginNameError, new_plugin

    try:
        made = new_plugin(name)
        paths = {Path(directory) / file: text for file, text in made.files.items()}
        for path in paths:
            if path.exists():
                raise FileExistsError(f"{path}: already exists, not overwritten")
        Path(directory).mkdir(parents=True, exist_ok=True)
        write_files({str(path): text.encode() for path, text in paths.items()})
    except (PluginNameError, InputError) as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)
    except OSError as problem:
        say_error(f"{problem.filename}: {problem.strerror}" if problem.strerror else str(problem))
        sys.exit(ERROR_EXIT)
    for path in paths:
        click.echo(f"wrote {path}")
    click.echo(f"next: kubesched plugin check {next(iter(paths))}")


@plugin.command("check", short_help="Check plugins against the plugin contract on random clusters.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--config", "config_file", metavar="FILE", help="A KubeSchedulerConfiguration with the plugin's arguments."
)
@click.option(
    "-f",
    "--filename",
    "manifests",
    multiple=True,
    metavar="FILE",
    help="Manifests of a cluster to check it on as well. Repeatable.",
)
@click.option("--only", multiple=True, type=click.Choice(_CHECKS), help="Run only this check. Repeatable.")
@click.option(
    "--cases", "n_cases", type=click.IntRange(1), default=100, show_default=True, help="Number of random clusters."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random clusters.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def check(
    files: tuple[str, ...],
    config_file: str | None,
    manifests: tuple[str, ...],
    only: tuple[str, ...],
    n_cases: int,
    seed: int,
    output: str,
) -> None:
    """Run plugins on random clusters and check their answers against the plugin contract.

    Exit code 1: a check failed, and the smallest failing case is shown. Exit code 2: there was nothing to check.
    """
    from kubesched.cli.files import InputError
    from kubesched.k8s.model.manifests import ManifestError
    from kubesched.plugin_tools.check import check_plugin
    from kubesched.plugin_tools.check.hash_seeds import OtherPythonError
    from kubesched.scheduler.config import ConfigError

    try:
        subjects, given = _subjects(files, config_file), _cases_of(manifests)
        reports = [check_plugin(s, seed=seed, n_cases=n_cases, given=given, only=only) for s in subjects]
    except (ConfigError, InputError, ManifestError, OtherPythonError) as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)
    if output == "json":
        print_record({"plugins": [report.as_record() for report in reports]}, output)
    else:
        click.echo("\n\n".join(report.as_text() for report in reports))
    if not all(report.has_passed for report in reports):
        sys.exit(FAILED_EXIT)


def _subjects(files: tuple[str, ...], config_file: str | None) -> list[Subject]:
    """The plugins of the files, with their arguments of the first profile that has some."""
    from kubesched.cli.scheduler_choice import SchedulerChoice
    from kubesched.plugin_tools.check.subject import outside_subjects
    from kubesched.scheduler.plugin_loading import plugins_from_files

    outside = plugins_from_files(files, enable=True)
    args: dict[str, Any] = {}
    if config_file is not None:
        chosen = SchedulerChoice(config_file, plugin_files=files).read()
        for profile in reversed(chosen.config.profiles):
            args |= {entry.name: entry.args for entry in profile.plugin_config}
    return outside_subjects(outside, args.get, from_files=True)


def _cases_of(filenames: tuple[str, ...]) -> list[Case]:
    """One for each pending pod of the files."""
    from kubesched.cli.files import InputError
    from kubesched.cli.nodes import documents_of_files
    from kubesched.plugin_tools.check.subject import cases_of

    if not filenames:
        return []
    cases = cases_of(documents_of_files(filenames))
    if not cases:
        raise InputError(f"{filenames[0]}: contains no pending pod")
    return cases
