"""`kubesched explain`: where a pending pod would go and why, or why it goes nowhere and what would help.

Next: `kubesched.explanation`, which does the work.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kubesched.cli.output import ERROR_EXIT, line_width, print_record, say_error, say_warning

if TYPE_CHECKING:
    from kubesched.config import KubeSchedulerConfiguration
    from kubesched.explanation.explain import Explanation


@click.command("explain")
@click.argument("pod", metavar="[NAMESPACE/]POD")
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    required=True,
    metavar="FILE",
    help="Manifests of the cluster: YAML or JSON, lists, dumps, a directory; - for standard input. Repeatable.",
)
@click.option("--config", "config_file", metavar="FILE", help="A KubeSchedulerConfiguration; - for standard input.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml"]),
    default="text",
    show_default=True,
    help="wide shows every node with all that speaks against it.",
)
def explain(pod: str, filenames: tuple[str, ...], config_file: str | None, output: str) -> None:
    """Explain where a pending pod would go, or why nowhere and what would make it fit.

    \b
    kubectl get nodes,pods,pv,pvc,sc -A -o json | kubesched explain shop/web-1 -f -
    """
    from kubesched.cli.files import InputError
    from kubesched.config import ConfigError
    from kubesched.explanation.explain import NotExplainableError
    from kubesched.model.manifests import ManifestError

    try:
        explanation, warnings = _explain(pod, filenames, config_file)
    except (InputError, ManifestError, ConfigError, NotExplainableError) as mistake:
        say_error(str(mistake))
        sys.exit(ERROR_EXIT)
    for warning in warnings:
        say_warning(warning)
    _print(explanation, output)


def _explain(pod: str, filenames: tuple[str, ...], config_file: str | None) -> tuple[Explanation, list[str]]:
    from kubesched.cli.files import InputError, read_manifests, source_name
    from kubesched.explanation.explain import NotExplainableError, explain_pod

    if config_file == "-" and "-" in filenames:
        raise InputError("<stdin>: cannot be both the configuration and the manifests")
    config = _configuration(config_file)
    source = "" if config_file is None else source_name(config_file)
    found, warnings = read_manifests(filenames)
    try:
        return explain_pod(found, pod, config, source), warnings
    except NotExplainableError as mistake:
        raise NotExplainableError(f"{', '.join(map(source_name, filenames))}: {mistake}") from None


def _configuration(config_file: str | None) -> KubeSchedulerConfiguration:
    from kubesched.cli.files import read_bytes, source_name
    from kubesched.config import default, load

    return default() if config_file is None else load(read_bytes(config_file), source_name(config_file))


def _print(explanation: Explanation, output: str) -> None:
    from kubesched.explanation.layout import Style
    from kubesched.explanation.text import render

    if output in ("json", "yaml"):
        print_record(explanation.report(), output)
    else:
        click.echo(render(explanation, Style(width=line_width(), wide=output == "wide")))
