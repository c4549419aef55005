"""`kubesched explain`: why a pod is pending or is where it is, what stands in the way of a workload's pods, of a
namespace's, and who could not come to a node.

The cluster comes from files, from a live server, or from a server with files on top.

Next: `targets` for what may be asked about; `kubesched.explanation`, which does the work; `live` for the server.
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
    say_error,
    say_warning,
)
from kubesched.cli.scheduler_choice import ChosenScheduler, SchedulerChoice, scheduler_options
from kubesched.cli.targets import AskedAbout, AskedKind, read_target

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation
    from kubesched.explanation.layout import Style
    from kubesched.k8s.client.target import ServerTarget
    from kubesched.k8s.model.manifests import Kinds, Manifests

node_option = click.option("--node", metavar="NAME", help="Why the pod does not go to this node, or did not.")


@click.command("explain")
@click.argument("target", metavar="[NAMESPACE/][KIND/]NAME")
@click.option("-n", "--namespace", metavar="NAME", help="The namespace of what is asked about.")
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
@colour_option
@exit_code_option
def explain(
    target: str,
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
    """Explain why a pod is pending and what would make it fit, or why it is where it is.

    \b
    kubesched explain shop/web-1
    kubesched explain shop/web-1 --node general-2
    kubesched explain shop/web-1 -f dump.yaml
    kubesched explain shop/deployment/web -f dump.yaml -f web.yaml
    kubesched explain namespace/shop
    kubesched explain node/general-2

    Of a workload or a namespace, the pods are grouped by what stands in their way; of a workload that has none yet, one
    is explained as its controller would create it now. Of a node, it is said which pending pods it could not take.
    """
    asked = read_target(target, namespace)
    server = ServerChoice(kubeconfig, context, live)
    explain_and_print(asked, filenames, server, scheduler, output, node, is_exit_code=is_exit_code)


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
    from kubesched.cli.files import InputError
    from kubesched.explanation.explain import NotExplainableError
    from kubesched.explanation.placement import UnknownNodeError
    from kubesched.k8s.model.manifests import ManifestError
    from kubesched.scheduler.config import ConfigError

    try:
        answer, warnings = _answer(target, filenames, server, scheduler, node)
    except (InputError, ManifestError, ConfigError, NotExplainableError, UnknownNodeError) as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)
    for warning in warnings:
        say_warning(warning)
    if output in ("json", "yaml"):
        print_record(answer.to_dict(), output)
    else:
        print_answer(answer.render, output)
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
        return not self.explanation.placed_on and not self.explanation.fits

    def to_dict(self) -> dict[str, Any]:
        return self.explanation.report()

    def render(self, style: Style) -> str:
        from kubesched.explanation.text import render

        return render(self.explanation, style)


def _answer(
    target: AskedAbout, filenames: tuple[str, ...], server: ServerChoice, scheduler: SchedulerChoice, node: str | None
) -> tuple[PrintedAnswer, list[str]]:
    from kubesched.cli.files import InputError
    from kubesched.explanation.explain import NotExplainableError

    if scheduler.reads_stdin and "-" in filenames:
        raise InputError("<stdin>: cannot be both the configuration and the manifests")
    if node is not None and target.kind is not AskedKind.POD:
        raise InputError(f"{target.text}: --node is about a pod and a node")
    is_emulation = scheduler.generation() is not None
    if is_emulation and target.kind is not AskedKind.POD:
        raise InputError(f"{target.text}: --emulate explains pods only")
    scheduler.check_emulation()
    chosen = None if is_emulation else scheduler.of_today(scheduler.given())
    given, target = _given(target, filenames, server)
    warnings = [*(chosen.notes if chosen is not None else ()), *given.server_warnings, *given.file_warnings]
    try:
        if target.kind is AskedKind.POD:
            return _pod_answer(given.found, target.key, chosen, scheduler, node), warnings
        assert chosen is not None
        answer, notes = _overview(given, target, chosen)
        return answer, [*warnings, *notes]
    except NotExplainableError as error:
        raise NotExplainableError(f"{given.source}: {error}") from None


def _pod_answer(
    found: Manifests, key: str, chosen: ChosenScheduler | None, scheduler: SchedulerChoice, node: str | None = None
) -> PrintedAnswer:
    from kubesched.explanation.explain import explain_emulated, explain_pod
    from kubesched.explanation.placement import why_not_node

    if chosen is None:
        generation = scheduler.generation()
        assert generation is not None
        explanation = explain_emulated(found, key, scheduler.given(), generation)
    else:
        explanation = explain_pod(found, key, chosen.config, chosen.source, chosen.registry)
    return PodAnswer(explanation) if node is None else why_not_node(explanation, node)


# -- the cluster -------------------------------------------------------------------------------------------------------


def _given(target: AskedAbout, filenames: tuple[str, ...], server: ServerChoice) -> tuple[GivenCluster, AskedAbout]:
    """The cluster, and what is asked about with its namespace, if the context has a say in it.

    A pod is meant where there is one whose namespace is called like a kind.
    """
    from kubesched.k8s.model.core import Pod
    from kubesched.k8s.model.manifests import CLUSTER_KINDS, KINDS

    kinds: Kinds = KINDS if target.kind in (AskedKind.POD, AskedKind.NODE) else CLUSTER_KINDS
    if filenames and not server.is_made:
        given = read_cluster_files(filenames, kinds)
    else:
        chosen = server.target() if server.is_made else _default_target()
        target = target.within(chosen.namespace)
        given = read_live(chosen, filenames, kinds=kinds, pod=target.key if target.kind is AskedKind.POD else "")
    is_typed = any(isinstance(item, Pod) and item.key == target.text for item in given.found.objects)
    if is_typed and target.kind is not AskedKind.POD:
        namespace, _, name = target.text.partition("/")
        target = AskedAbout(target.text, AskedKind.POD, name, namespace)
        _keep_scheduled_kinds(given.found)
    return given, target


def _keep_scheduled_kinds(found: Manifests) -> None:
    from kubesched.k8s.model.manifests import KINDS

    kept = set(KINDS.values())
    found.objects[:] = [item for item in found.objects if type(item) in kept]


def _default_target() -> ServerTarget:
    from kubesched.cli.files import InputError

    try:
        return ServerChoice().target()
    except InputError as error:
        raise InputError(f"{error}; or read manifests with -f FILE") from None


# -- more than one pod -------------------------------------------------------------------------------------------------


def _overview(given: GivenCluster, target: AskedAbout, chosen: ChosenScheduler) -> tuple[PrintedAnswer, list[str]]:
    """The answer, and what is to be said about it."""
    from kubesched.explanation.overview import explain_node, explain_pods

    with_whom = (chosen.config, chosen.source, chosen.registry)
    if target.kind is AskedKind.NODE:
        return explain_node(given.found, target.name, *with_whom), []
    if target.kind is AskedKind.WORKLOAD:
        return _workload(given, target, chosen)
    from kubesched.simulator.one_pod import unmade_pods

    notes = [unmade.note for unmade in unmade_pods(given.found, target.name)]
    _keep_scheduled_kinds(given.found)
    subject = f"Namespace {target.name}"
    return explain_pods(given.found, lambda pod: pod.namespace == target.name, subject, *with_whom, notes=notes), []


def _workload(given: GivenCluster, target: AskedAbout, chosen: ChosenScheduler) -> tuple[PrintedAnswer, list[str]]:
    """Its pods that wait, grouped by cause; if none does, one as its controller would create it now."""
    from kubesched.cli.files import InputError
    from kubesched.explanation.overview import explain_pods, pods_of
    from kubesched.simulator.one_pod import find_workload, n_wanted, why_unmade, with_one_pod

    found, kind, key = given.found, target.workload, target.key
    own = pods_of(found.objects, kind, key)
    workload = find_workload(found, kind, key)
    if workload is None and not own:
        raise InputError(f"{given.source}: {kind} {key} does not exist")
    wanted = None if workload is None else n_wanted(workload)
    missing = None
    if workload is not None and kind != "DaemonSet" and (wanted is None or len(own) < wanted):
        missing = why_unmade(found, kind, key)
        if missing is None and not own:
            made = with_one_pod(found, kind, key)
            assert made is not None
            note = f"{kind} {key}: explained by one of its pods, as it would be created now"
            return _pod_answer(made[0], made[1].pod_key, chosen, SchedulerChoice()), [note]
    _keep_scheduled_kinds(found)
    overview = explain_pods(
        found,
        lambda pod: pod.key in own,
        f"{kind} {key}",
        chosen.config,
        chosen.source,
        chosen.registry,
        n_wanted=wanted,
        missing=missing,
    )
    return overview, []
