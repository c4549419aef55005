"""`kubesched check`: the gate for CI. May this change be merged, by the rules of a file?

Next: `kubesched.planning.check`, which answers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.live import ServerChoice, read_live, server_options
from kubesched.cli.output import colour_option, format_option, print_answer, print_csv, print_record, told_in_a_line
from kubesched.cli.planning import NO_EXIT, end_if_guessed, strict_option
from kubesched.cli.report_file import report_file_option, write_report
from kubesched.cli.scenario import jobs_option

if TYPE_CHECKING:
    from kubesched.k8s.loaded_cluster import LoadedCluster
    from kubesched.planning.check_report import CheckReport

UNDECIDED_EXIT = 3
"""Other seeds give other answers."""
CI_FORMS = ("junit", "sarif", "markdown", "github", "csv", "html", "prometheus")


INIT = "init"


@click.command("check")
@click.argument("file", metavar="FILE|init")
@click.option("-f", "--filename", metavar="DUMP", help="init: dump of the cluster.")
@click.option("--change", metavar="DIR", default="rendered", help="init: directory with the manifests of the change.")
@click.option("--to", "new_file", metavar="FILE", default="check.yaml", help="init: file to write.")
@server_options
@format_option("Format of the report.", *CI_FORMS)
@jobs_option
@strict_option
@report_file_option
@colour_option
def check(
    file: str,
    filename: str | None,
    change: str,
    new_file: str,
    kubeconfig: str | None,
    context: str | None,
    jobs: int,
    output: str,
) -> None:
    """Check in CI whether a change can be merged. The checks are in a file; `check init` writes a first one.

    Exits with 0 if all checks pass, 1 if one fails, 3 if the answer depends on chance.

    \b
    kubesched check check.yaml
    kubesched check check.yaml -o github
    kubesched check init -f dump.json --change rendered/
    """
    with told_in_a_line():
        if file == INIT:
            _init(filename, change, Path(new_file))
            return
        report = _run(Path(file), ServerChoice(kubeconfig, context), jobs)
    end_if_guessed(report)
    _print(report, output)
    if not report.passed:
        sys.exit(UNDECIDED_EXIT if report.undecided else NO_EXIT)


def _run(path: Path, server: ServerChoice, jobs: int) -> CheckReport:
    from kubesched.planning.check import run_check
    from kubesched.planning.check_file import read_check_file

    asked = read_check_file(path)
    cluster: LoadedCluster | None = None
    if asked.cluster.live is not None:
        cluster = _live(ServerChoice(server.kubeconfig, server.context or asked.cluster.live or None))
    return run_check(asked, path, cluster, jobs)


def _live(server: ServerChoice) -> LoadedCluster:
    from kubesched.k8s.loaded_cluster import LoadedCluster
    from kubesched.simulator.loading import SIMULATED_KINDS

    return LoadedCluster(read_live(server.target(), kinds=SIMULATED_KINDS).found)


def _print(report: CheckReport, output: str) -> None:
    from kubesched.planning.check_report import github, junit, markdown, sarif

    match output:
        case "json" | "yaml":
            print_record(report.to_dict(), output)
        case "junit":
            click.echo(junit(report), nl=False)
        case "sarif":
            click.echo(json.dumps(sarif(report), indent=2))
        case "markdown":
            click.echo(markdown(report), nl=False)
        case "csv":
            print_csv(report.tables["checks"])
        case "prometheus":
            click.echo(report.to_prometheus(), nl=False)
        case "html":
            click.echo(report.to_html(), nl=False)
        case "github":
            click.echo(github(report), nl=False)
        case _:
            print_answer(report.render, output)
    write_report(lambda _command: report.to_page())


def _init(dump: str | None, change: str, path: Path) -> None:
    from kubesched.cli.files import InputError, write_files
    from kubesched.planning.check import first_check
    from kubesched.simulator.library import load

    if dump is None:
        raise click.UsageError("check init needs the dump of the cluster: -f dump.json")
    if path.exists():
        raise InputError(f"{path}: exists already; --to names another file")
    cluster = load(dump)
    if not cluster.nodes:
        raise InputError(f"{dump}: there are no nodes")
    text = first_check(cluster, f"file: {dump}", change, path.name)
    write_files({str(path): text.encode()})
    click.echo(f"{path}: written; kubesched check {path} runs it")
