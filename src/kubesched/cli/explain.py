"""`kubesched explain`: where a pending pod would go and why, or why it goes nowhere and what would help.

The cluster comes from files, from a live server, or from a server with files on top.

Next: `kubesched.explanation`, which does the work; `live` for the server.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kubesched.cli.live import GivenCluster, ServerChoice, live_option, read_files, read_live, server_options
from kubesched.cli.output import ERROR_EXIT, explanation_format, line_width, print_record, say_error, say_warning
from kubesched.cli.scheduler_choice import SchedulerChoice, scheduler_options

if TYPE_CHECKING:
    from kubesched.client.target import ServerTarget
    from kubesched.explanation.explain import Explanation


@click.command("explain")
@click.argument("pod", metavar="[NAMESPACE/]POD")
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    metavar="FILE",
    help="Manifests of the cluster: YAML or JSON, lists, dumps, a directory; - for standard input. Repeatable. "
    "Without any, the cluster of the kubeconfig is read.",
)
@server_options
@live_option
@scheduler_options
@explanation_format
def explain(
    pod: str,
    filenames: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    live: bool,
    scheduler: SchedulerChoice,
    output: str,
) -> None:
    """Explain where a pending pod would go, or why nowhere and what would make it fit.

    \b
    kubesched explain shop/web-1
    kubesched explain shop/web-1 -f dump.yaml
    """
    explain_and_print(pod, filenames, ServerChoice(kubeconfig, context, live), scheduler, output)


def explain_and_print(
    pod: str, filenames: tuple[str, ...], server: ServerChoice, scheduler: SchedulerChoice, output: str
) -> None:
    """Exits with code 2 and a line on standard error if there is nothing to explain."""
    from kubesched.cli.files import InputError
    from kubesched.config import ConfigError
    from kubesched.explanation.explain import NotExplainableError
    from kubesched.model.manifests import ManifestError

    try:
        explanation, warnings = _explain(pod, filenames, server, scheduler)
    except (InputError, ManifestError, ConfigError, NotExplainableError) as mistake:
        say_error(str(mistake))
        sys.exit(ERROR_EXIT)
    for warning in warnings:
        say_warning(warning)
    _print(explanation, output)
    if explanation.refusal:
        sys.exit(ERROR_EXIT)


def _explain(
    pod: str, filenames: tuple[str, ...], server: ServerChoice, scheduler: SchedulerChoice
) -> tuple[Explanation, list[str]]:
    from kubesched.cli.files import InputError
    from kubesched.explanation.explain import NotExplainableError, explain_emulated, explain_pod

    if scheduler.reads_stdin and "-" in filenames:
        raise InputError("<stdin>: cannot be both the configuration and the manifests")
    generation = scheduler.generation()
    configured = scheduler.given()
    scheduler.check_emulation()
    chosen = None if generation is not None else scheduler.of_today(configured)
    given, pod = _given(pod, filenames, server)
    warnings = [*given.server_warnings, *given.file_warnings]
    try:
        if generation is not None:
            return explain_emulated(given.found, pod, configured, generation), warnings
        assert chosen is not None
        explanation = explain_pod(given.found, pod, chosen.config, chosen.source, chosen.registry)
    except NotExplainableError as mistake:
        raise NotExplainableError(f"{given.source}: {mistake}") from None
    return explanation, [*chosen.notes, *warnings]


def _given(pod: str, filenames: tuple[str, ...], server: ServerChoice) -> tuple[GivenCluster, str]:
    """The cluster, and the pod with its namespace if the context has a say in it."""
    if filenames and not server.is_made:
        return read_files(filenames), pod
    target = server.target() if server.is_made else _default_target()
    if "/" not in pod:
        pod = f"{target.namespace}/{pod}"
    return read_live(target, filenames, pod=pod), pod


def _default_target() -> ServerTarget:
    from kubesched.cli.files import InputError

    try:
        return ServerChoice().target()
    except InputError as mistake:
        raise InputError(f"{mistake}, or -f FILE for the manifests of a cluster") from None


def _print(explanation: Explanation, output: str) -> None:
    from kubesched.explanation.layout import Style
    from kubesched.explanation.text import render

    if output in ("json", "yaml"):
        print_record(explanation.report(), output)
    else:
        click.echo(render(explanation, Style(width=line_width(), wide=output == "wide")))
