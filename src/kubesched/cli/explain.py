"""`kubesched explain`: why a pod is pending or is where it is, what stands in the way of a workload's pods, of a
namespace's, and who could not come to a node.

The cluster comes from files, from a live server, or from a server with files on top.

Next: `kubesched.simulator.asking`, which answers; `kubesched.explanation`, which does the work; `live` for the server.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import click

from kubesched.cli.live import GivenCluster, ServerChoice, live_option, read_cluster_files, read_live, server_options
from kubesched.cli.output import (
    ERROR_EXIT,
    PENDING_EXIT,
    colour_option,
    exit_code_option,
    explanation_format,
    print_answer,
    print_record,
    say_warning,
    told_in_a_line,
)
from kubesched.cli.report_file import report_file_option, write_report
from kubesched.cli.scheduler_choice import SchedulerChoice, scheduler_options

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation
    from kubesched.explanation.layout import Style
    from kubesched.explanation.targets import AskedAbout
    from kubesched.k8s.client.target import ServerTarget

node_option = click.option("--node", metavar="NAME", help="Explain why the pod does not run on this node.")


@click.command("explain")
@click.argument("target", metavar="[[NAMESPACE/][KIND/]NAME]", required=False)
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of the object, or of all pending pods.")
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    metavar="FILE",
    help="Manifests of the cluster: YAML or JSON, a dump, a directory; - for standard input. Repeatable. "
    "Without any, the live cluster is read.",
)
@node_option
@server_options
@live_option
@scheduler_options
@explanation_format
@report_file_option
@colour_option
@exit_code_option
def explain(
    target: str | None,
    namespace: str | None,
    filenames: tuple[str, ...],
    node: str | None,
    kubeconfig: str | None,
    context: str | None,
    live: bool,
    scheduler: SchedulerChoice,
    output: str,
    is_exit_code: bool,
) -> None:
    """Explain why a pod is pending and what would make it fit, or why it is where it is; without a name, all pending
    pods by what keeps them pending.

    \b
    kubesched explain
    kubesched explain shop/web-1
    kubesched explain shop/web-1 --node general-2
    kubesched explain shop/web-1 -f dump.yaml
    kubesched explain shop/deployment/web -f dump.yaml -f web.yaml
    kubesched explain namespace/shop
    kubesched explain node/general-2
    kubesched explain ml/podgroup/training
    kubesched explain ml/compositepodgroup/training --emulate 1.37

    For a workload or a namespace, the pods are grouped by what keeps them pending; for a workload without pods, one is
    explained as its controller would create it now. For a node, the answer is which pending pods it cannot take, and
    why. For a pod group, it is which pods are missing, which find no node, and which placement came nearest.
    """
    asked = asked_about(target, namespace)
    server = ServerChoice(kubeconfig, context, live)
    explain_and_print(asked, filenames, server, scheduler, output, node, is_exit_code=is_exit_code)


def asked_about(text: str | None, namespace: str | None) -> AskedAbout:
    """Raises click.UsageError if two namespaces are named."""
    from kubesched.explanation.targets import TargetError, read_target

    try:
        return read_target(text, namespace)
    except TargetError as error:
        raise click.UsageError(str(error)) from None


def explain_and_print(
    target: AskedAbout,
    filenames: tuple[str, ...],
    server: ServerChoice,
    scheduler: SchedulerChoice,
    output: str,
    node: str | None = None,
    *,
    is_exit_code: bool = False,
) -> None:
    """Exits with code 2 and a line on standard error if there is nothing to explain; on demand with 1, if what is asked
    about does not fit."""
    from kubesched.planning.report_pages import explanation_tables, page

    with told_in_a_line():
        answer, warnings = _answer(target, filenames, server, scheduler, node)
    for warning in warnings:
        say_warning(warning)
    if output in ("json", "yaml"):
        print_record(answer.to_dict(), output)
    else:
        print_answer(answer.render, output)
    explanation = answer.explanation if isinstance(answer, PodAnswer) and not answer.is_refusal else None
    write_report(lambda command: page(command, answer.render, explanation_tables(explanation)))
    if answer.is_refusal:
        sys.exit(ERROR_EXIT)
    if is_exit_code and answer.is_unschedulable:
        sys.exit(PENDING_EXIT)


class PrintedAnswer(Protocol):
    @property
    def is_refusal(self) -> bool:
        """Whether an older scheduler would not even have started."""
        ...

    @property
    def is_unschedulable(self) -> bool:
        """Whether a pod that is asked about has no node, and fits on none."""
        ...

    def to_dict(self) -> dict[str, Any]: ...
    def render(self, style: Style) -> str: ...


@dataclass(frozen=True, slots=True)
class PodAnswer:
    """One pod's explanation, as it is printed."""

    explanation: Explanation

    @property
    def is_refusal(self) -> bool:
        return bool(self.explanation.refusal)

    @property
    def is_unschedulable(self) -> bool:
        from kubesched.explanation.findings.finding import CauseKind

        return self.explanation.cause.kind not in (CauseKind.FITS, CauseKind.BOUND)

    def to_dict(self) -> dict[str, Any]:
        return self.explanation.report()

    def render(self, style: Style) -> str:
        from kubesched.explanation.text import render

        return render(self.explanation, style)


def _answer(
    target: AskedAbout, filenames: tuple[str, ...], server: ServerChoice, scheduler: SchedulerChoice, node: str | None
) -> tuple[PrintedAnswer, list[str]]:
    from kubesched.cli.files import InputError
    from kubesched.explanation.answer import Explanation
    from kubesched.explanation.explain import NotExplainableError, explain_emulated
    from kubesched.explanation.placement import why_not_node
    from kubesched.simulator.asking import answer, as_typed, check_pod

    if scheduler.reads_stdin and "-" in filenames:
        raise InputError("<stdin>: cannot be both the configuration and the manifests")
    generation = scheduler.generation()
    check_pod(target, node, is_emulation=generation is not None)
    scheduler.check_emulation()
    chosen = None if generation is not None else scheduler.of_today(scheduler.given())
    given, target = _given(target, filenames, server)
    target = as_typed(given.found, target)
    warnings = [*(chosen.notes if chosen is not None else ()), *given.server_warnings, *given.file_warnings]
    try:
        if chosen is None:
            assert generation is not None
            explanation = explain_emulated(given.found, target.key, scheduler.given(), generation)
            return (PodAnswer(explanation) if node is None else why_not_node(explanation, node)), warnings
        found, notes = answer(given.found, target, chosen.config, chosen.source, chosen.registry, node)
    except NotExplainableError as error:
        raise NotExplainableError(f"{given.source}: {error}") from None
    return (PodAnswer(found) if isinstance(found, Explanation) else found), [*warnings, *notes]


# -- the cluster -------------------------------------------------------------------------------------------------------


def _given(target: AskedAbout, filenames: tuple[str, ...], server: ServerChoice) -> tuple[GivenCluster, AskedAbout]:
    """The cluster, and what is asked about with its namespace, if the context has a say in it."""
    from kubesched.explanation.targets import AskedKind
    from kubesched.simulator.asking import kinds_for

    kinds = kinds_for(target)
    if filenames and not server.is_made:
        return read_cluster_files(filenames, kinds), target
    chosen = server.target() if server.is_made else _default_target()
    target = target.within(chosen.namespace)
    pod = target.key if target.kind is AskedKind.POD else ""
    return read_live(chosen, filenames, kinds=kinds, pod=pod), target


def _default_target() -> ServerTarget:
    from kubesched.cli.files import InputError

    try:
        return ServerChoice().target()
    except InputError as error:
        raise InputError(f"{error}; or read manifests with -f FILE") from None
