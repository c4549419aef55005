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
    from kubesched.explanation.answer import Explanation
    from kubesched.k8s.client.target import ServerTarget

_WORKLOADS = {
    **dict.fromkeys(("deployment", "deployments", "deploy"), "Deployment"),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), "ReplicaSet"),
    **dict.fromkeys(("replicationcontroller", "replicationcontrollers", "rc"), "ReplicationController"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "StatefulSet"),
    **dict.fromkeys(("job", "jobs"), "Job"),
    **dict.fromkeys(("cronjob", "cronjobs", "cj"), "CronJob"),
}
"""As kubectl calls them. A DaemonSet has a pod for each node, none of which stands for the others."""


@click.command("explain")
@click.argument("pod", metavar="[NAMESPACE/][KIND/]NAME")
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    metavar="FILE",
    help="Manifests of the cluster: YAML or JSON, a dump, a directory; - for standard input. Repeatable. "
    "Without any, the live cluster is read.",
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
    """Explain where a pending pod would go, or why it fits nowhere and what would make it fit.

    \b
    kubesched explain shop/web-1
    kubesched explain shop/web-1 -f dump.yaml
    kubesched explain shop/deployment/web -f dump.yaml -f web.yaml

    For a workload in the files, one pod is explained as its controller would create it now.
    """
    explain_and_print(pod, filenames, ServerChoice(kubeconfig, context, live), scheduler, output)


def explain_and_print(
    pod: str, filenames: tuple[str, ...], server: ServerChoice, scheduler: SchedulerChoice, output: str
) -> None:
    """Exits with code 2 and a line on standard error if there is nothing to explain."""
    from kubesched.cli.files import InputError
    from kubesched.explanation.explain import NotExplainableError
    from kubesched.k8s.model.manifests import ManifestError
    from kubesched.scheduler.config import ConfigError

    try:
        explanation, warnings = _explain(pod, filenames, server, scheduler)
    except (InputError, ManifestError, ConfigError, NotExplainableError) as error:
        say_error(str(error))
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
    given, pod, notes = _given(pod, filenames, server)
    warnings = [*given.server_warnings, *given.file_warnings, *notes]
    try:
        if generation is not None:
            return explain_emulated(given.found, pod, configured, generation), warnings
        assert chosen is not None
        explanation = explain_pod(given.found, pod, chosen.config, chosen.source, chosen.registry)
    except NotExplainableError as error:
        raise NotExplainableError(f"{given.source}: {error}") from None
    return explanation, [*chosen.notes, *warnings]


def _given(pod: str, filenames: tuple[str, ...], server: ServerChoice) -> tuple[GivenCluster, str, list[str]]:
    """The cluster, the pod with its namespace if the context has a say in it, and what is to be said about it."""
    workload = _workload_name(pod)
    if workload is not None and filenames:
        return _given_workload(pod, *workload, filenames, server)
    if filenames and not server.is_made:
        return read_files(filenames), pod, []
    target = server.target() if server.is_made else _default_target()
    if "/" not in pod:
        pod = f"{target.namespace}/{pod}"
    return read_live(target, filenames, pod=pod), pod, []


def _workload_name(text: str) -> tuple[str, str] | None:
    """Kind and key for `deployment/web`, or `shop/deployment/web` in a namespace; None for the name of a pod."""
    *namespace, kind, name = ("", *text.split("/"))[-3 if text.count("/") > 1 else -2 :]
    found = _WORKLOADS.get(kind.lower())
    return None if found is None else (found, f"{''.join(namespace) or 'default'}/{name}")


def _given_workload(
    text: str, kind: str, key: str, filenames: tuple[str, ...], server: ServerChoice
) -> tuple[GivenCluster, str, list[str]]:
    """One pod of the workload stands for all. A pod whose namespace is called like a kind is meant, if it is there."""
    from kubesched.cli.files import InputError
    from kubesched.k8s.model.core import Pod
    from kubesched.k8s.model.manifests import KINDS, KINDS_WITH_WORKLOADS
    from kubesched.simulator.one_pod import with_one_pod

    if server.is_made:
        given = read_live(server.target(), filenames, kinds=KINDS_WITH_WORKLOADS)
    else:
        given = read_files(filenames, KINDS_WITH_WORKLOADS)
    if any(isinstance(item, Pod) and item.key == text for item in given.found.objects):
        given.found.objects[:] = [item for item in given.found.objects if type(item) in KINDS.values()]
        return given, text, []
    made = with_one_pod(given.found, kind, key)
    if made is None:
        raise InputError(f"{given.source}: {kind} {key} does not exist")
    given.found, one = made
    return given, one.pod_key, [f"{kind} {key}: explained by one of its pods, as it would be created now"]


def _default_target() -> ServerTarget:
    from kubesched.cli.files import InputError

    try:
        return ServerChoice().target()
    except InputError as error:
        raise InputError(f"{error}; or read manifests with -f FILE") from None


def _print(explanation: Explanation, output: str) -> None:
    from kubesched.explanation.layout import Style
    from kubesched.explanation.text import render

    if output in ("json", "yaml"):
        print_record(explanation.report(), output)
    else:
        click.echo(render(explanation, Style(width=line_width(), wide=output == "wide")))
