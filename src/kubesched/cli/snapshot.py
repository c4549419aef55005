"""`kubesched snapshot`: saves what decisions and plans depend on of a live cluster, for `-f` of other commands later.

The file is there whole or not at all, and only its owner can read it: it names what runs in a cluster.

Next: `kubesched.k8s.dumped_kinds` and `kubesched.live.saved_form`, which say what goes into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kubesched.cli.live import ServerChoice, read_live, server_options
from kubesched.cli.output import say_warning, told_in_a_line

if TYPE_CHECKING:
    from kubesched.cli.live import GivenCluster

STDOUT = "-"


@click.command("snapshot")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help="File to write: JSON if it ends in .json, else YAML; - prints YAML to standard output.",
)
@server_options
def snapshot(output: str, kubeconfig: str | None, context: str | None) -> None:
    """Save a live cluster to a file, without secrets, for explain and simulate.

    \b
    kubesched snapshot -o dump.json && kubesched explain shop/web-1 -f dump.json
    """
    from kubesched.cli.files import check_place
    from kubesched.k8s.model.manifests import CLUSTER_KINDS

    with told_in_a_line():
        if output != STDOUT:
            check_place(output)
        given = read_live(ServerChoice(kubeconfig, context).target(), kinds=CLUSTER_KINDS)
        _write(output, given)
    for warning in given.server_warnings:
        say_warning(warning)
    if output != STDOUT:
        click.echo(f"{output}: {_counted(given)}")


def _write(output: str, given: GivenCluster) -> None:
    from kubesched.cli.files import write_files
    from kubesched.live.saved_form import as_json, as_yaml, saved_list

    saved = saved_list(given.found.objects, sorted(given.found.dumped or ()))
    if output == STDOUT:
        click.echo(as_yaml(saved), nl=False)
        return
    write_files({output: as_json(saved) if output.endswith(".json") else as_yaml(saved)}, private=True)


def _counted(given: GivenCluster) -> str:
    from kubesched.explanation.layout import counted
    from kubesched.k8s.model.core import Node, Pod

    objects = given.found.objects
    n_nodes = sum(isinstance(item, Node) for item in objects)
    n_pods = sum(isinstance(item, Pod) for item in objects)
    others = counted(len(objects) - n_nodes - n_pods, "other object")
    return f"{counted(n_nodes, 'node')}, {counted(n_pods, 'pod')}, {others}"
