"""`kubectl why`: `kubesched explain` of a live pod, as a plugin of kubectl with kubectl's options.

kubectl finds it as the program `kubectl-why`. Without a pod it lists all that are pending, each with a line.

Next: `explain`, and `kubesched.live.pending` for the list.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kubesched.cli.explain import explain_and_print
from kubesched.cli.live import ServerChoice, read_live, server_options
from kubesched.cli.main import OneLineCommand
from kubesched.cli.output import ERROR_EXIT, explanation_format, print_record, say_error, say_warning
from kubesched.cli.scheduler_choice import SchedulerChoice, plugin_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubesched.live.pending import PodVerdict

_POD_WORDS = ("pod", "pods", "po")


@click.command("why", cls=OneLineCommand)
@click.argument("pod", metavar="[POD]", required=False)
@click.option("-n", "--namespace", metavar="NAME", help="Namespace to use instead of the context's.")
@click.option("-A", "--all-namespaces", is_flag=True, help="List the pending pods of all namespaces.")
@server_options
@click.option("--config", "config_file", metavar="FILE", help="A KubeSchedulerConfiguration; - for standard input.")
@plugin_option
@explanation_format
def why(
    pod: str | None,
    namespace: str | None,
    all_namespaces: bool,
    kubeconfig: str | None,
    context: str | None,
    config_file: str | None,
    plugin_files: tuple[str, ...],
    output: str,
) -> None:
    """Explain why a pod is pending, or where it would go; without POD, list all pending pods, one line each.

    \b
    kubectl why web-1 -n shop
    kubectl why -A
    """
    server = ServerChoice(kubeconfig, context)
    scheduler = SchedulerChoice(config_file, plugin_files=plugin_files)
    if pod is not None:
        explain_and_print(_in_namespace(pod, namespace), (), server, scheduler, output)
        return
    from kubesched.cli.files import InputError
    from kubesched.k8s.model.manifests import ManifestError
    from kubesched.scheduler.config import ConfigError

    try:
        _list_pending(server, namespace, all_namespaces, scheduler, output)
    except (InputError, ManifestError, ConfigError) as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)


def main() -> None:
    why(prog_name="kubectl why")


def _in_namespace(pod: str, namespace: str | None) -> str:
    """kubectl's `pod/web-1` is `web-1`; `shop/web-1` is as for explain."""
    first, slash, rest = pod.partition("/")
    if slash and first in _POD_WORDS:
        first, slash, pod = "", "", rest
    if namespace is None:
        return pod
    if slash and first != namespace:
        raise click.UsageError(f"{pod} is not in the namespace {namespace}: specify the namespace once")
    return pod if slash else f"{namespace}/{pod}"


def _list_pending(
    server: ServerChoice, namespace: str | None, all_namespaces: bool, scheduler: SchedulerChoice, output: str
) -> None:
    from kubesched.live.pending import judge_pending

    chosen = scheduler.read()
    target = server.target()
    wanted = None if all_namespaces else namespace or target.namespace
    given = read_live(target)
    verdicts = list(judge_pending(given.found, wanted, chosen.config, chosen.source, chosen.registry))
    for warning in given.server_warnings:
        say_warning(warning)
    if output in ("json", "yaml"):
        print_record({"pods": [_record(verdict) for verdict in verdicts]}, output)
    elif verdicts:
        click.echo("\n".join(_table(verdicts, with_namespace=all_namespaces)))
    else:
        where = f"in {wanted} namespace" if wanted else "in any namespace"
        click.echo(f"No pending pods found {where}.", err=True)


def _record(verdict: PodVerdict) -> dict[str, str | None]:
    pod = f"{verdict.namespace}/{verdict.name}"
    return {"pod": pod, "node": verdict.node or None, "why": verdict.text}


def _table(verdicts: Sequence[PodVerdict], *, with_namespace: bool) -> list[str]:
    """As kubectl prints: the last column is never cut."""
    rows = [("NAMESPACE", "NAME", "WHY"), *((verdict.namespace, verdict.name, verdict.text) for verdict in verdicts)]
    first = max(len(namespace) for namespace, _, _ in rows)
    second = max(len(name) for _, name, _ in rows)
    shown = [(f"{namespace:{first}}   " if with_namespace else "", name, text) for namespace, name, text in rows]
    return [f"{namespace}{name:{second}}   {text}" for namespace, name, text in shown]
