"""`kubectl why`: `kubesched explain` of a live cluster, as a plugin of kubectl with kubectl's options.

kubectl finds it as the program `kubectl-why`. Without a name, all pending pods are grouped by what stands in their way.

Next: `explain`, and `kubesched.explanation.overview` for the groups.
"""

from __future__ import annotations

import sys

import click

from kubesched.cli.explain import asked_about, explain_and_print, node_option
from kubesched.cli.live import ServerChoice, read_live, server_options
from kubesched.cli.main import OneLineCommand
from kubesched.cli.output import (
    colour_option,
    explanation_format,
    print_answer,
    print_record,
    say_warning,
    told_in_a_line,
)
from kubesched.cli.scheduler_choice import SchedulerChoice, plugin_option

_NO_FILES = ":4"
"""What kubectl reads last: no names of files are to be offered."""


@click.command("why", cls=OneLineCommand)
@click.argument("target", metavar="[[KIND/]NAME]", required=False)
@click.option("-n", "--namespace", metavar="NAME", help="The namespace, instead of the context's.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Group the pending pods of all namespaces.")
@node_option
@server_options
@click.option("--config", "config_file", metavar="FILE", help="A KubeSchedulerConfiguration; - for standard input.")
@plugin_option
@explanation_format
@colour_option
def why(
    target: str | None,
    namespace: str | None,
    all_namespaces: bool,
    node: str | None,
    kubeconfig: str | None,
    context: str | None,
    config_file: str | None,
    plugin_files: tuple[str, ...],
    output: str,
) -> None:
    """Explain why a pod is pending, or why it is where it is; without a name, all pending pods by what stands in their
    way.

    \b
    kubectl why web-1 -n shop
    kubectl why deployment/web -n shop
    kubectl why web-1 --node general-2
    kubectl why node/general-2
    kubectl why -A
    """
    server = ServerChoice(kubeconfig, context)
    scheduler = SchedulerChoice(config_file, plugin_files=plugin_files)
    if target is not None:
        explain_and_print(asked_about(target, namespace), (), server, scheduler, output, node)
        return
    with told_in_a_line():
        _group_pending(server, namespace, all_namespaces, scheduler, output)


def main() -> None:
    why(prog_name="kubectl why", complete_var="_KUBECTL_WHY_COMPLETE")


def complete() -> None:
    """The program `kubectl_complete-why`, which kubectl asks for completions: the words so far, the last unfinished."""
    from click.shell_completion import ShellComplete

    *words, unfinished = sys.argv[1:] or [""]
    for item in ShellComplete(why, {}, "kubectl why", "").get_completions(words, unfinished):
        click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(_NO_FILES)


def _group_pending(
    server: ServerChoice, namespace: str | None, all_namespaces: bool, scheduler: SchedulerChoice, output: str
) -> None:
    from kubesched.explanation.overview import explain_pods

    chosen = scheduler.read()
    target = server.target()
    wanted = None if all_namespaces else namespace or target.namespace
    given = read_live(target)
    overview = explain_pods(
        given.found,
        lambda pod: wanted in (None, pod.namespace),
        f"Namespace {wanted}" if wanted else "All namespaces",
        chosen.config,
        chosen.source,
        chosen.registry,
    )
    for warning in given.server_warnings:
        say_warning(warning)
    if output in ("json", "yaml"):
        print_record(overview.to_dict(), output)
    elif overview.groups:
        print_answer(overview.render, output)
    else:
        where = f"in {wanted} namespace" if wanted else "in any namespace"
        click.echo(f"No pending pods found {where}.", err=True)
