"""`kubesched compare`: variants of configuration, plugins, objects, requests or nodes over one scenario.

Next: `kubesched.planning.compare`, which runs and compares them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kubesched.cli.output import counted_progress, told_in_a_line
from kubesched.cli.planning import (
    NO_EXIT,
    asked_catalogue,
    catalogue_options,
    is_given,
    keep_option,
    premise_options,
    print_report,
    report_options,
)
from kubesched.cli.scenario import AskedScenario, jobs_option, scenario_options, seeds_option, until_option

if TYPE_CHECKING:
    from kubesched.planning.compare import ComparedVariant

_KEYS = ("config", "plugin", "feature-gates", "resize", "objects", "patch", "nodes", "catalogue")
_OTHER_NAMES = {"priorities": "objects", "scenario": "objects"}


@click.command("compare")
@scenario_options
@click.option(
    "--variant",
    "variants",
    multiple=True,
    required=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="config=FILE, plugin=FILE, feature-gates=A=true;B=false, resize=FILE or resize=cpu*0.7, objects=FILE (or "
    "priorities, scenario), patch=FILE, nodes=6xSHAPE with catalogue=FILE. The first is the baseline. Repeatable.",
)
@click.option("--baseline", metavar="NAME", help="Compare with this variant instead of the first.")
@click.option("--metrics", metavar="NAME,...", help="Show only these metrics.")
@seeds_option
@click.option(
    "--until-ci", metavar="PERCENT", help="Add seeds (5, 10, 20, 40) until every interval is this narrow: 1%."
)
@catalogue_options
@click.option("--usage", metavar="FILE", help="Measured usage: CSV with namespace,kind,name,container,resource,p95.")
@keep_option
@jobs_option
@until_option
@premise_options
@report_options(["metrics", "parting"])
@click.option("--exit-code", "is_exit_code", is_flag=True, help="Exit with 1 if a variant is worse in any metric.")
def compare(
    scenario: AskedScenario,
    variants: tuple[str, ...],
    baseline: str | None,
    metrics: str | None,
    seeds: int,
    until_ci: str | None,
    catalogues: tuple[str, ...],
    prices: str | None,
    usage: str | None,
    keep: tuple[str, ...],
    jobs: int,
    until: float | None,
    replicas: str,
    ignore: tuple[str, ...],
    output: str,
    table: str,
    is_exit_code: bool,
) -> None:
    """Compare configurations, plugins, objects, requests or nodes over one scenario, with the same seeds for all.

    \b
    kubesched compare -f cluster.yaml -f day.yaml --variant base --variant packed:config=packed.yaml
    kubesched compare -f dump.json --variant base --variant small:resize=krr.json --catalogue aws.json
    kubesched compare -f apps/ --variant small:nodes=12xm7i.large,catalogue=aws.json \\
        --variant large:nodes=3xm7i.2xlarge,catalogue=aws.json --until-ci 1%
    """
    from kubesched.planning.compare import ComparedInput, HowMany, compare_variants
    from kubesched.planning.resizing import read_usage
    from kubesched.simulator.options import SimulationOptions

    if until_ci is not None and is_given("seeds"):
        raise click.UsageError("--until-ci says how many seeds there are: not beside --seeds")
    how_many = HowMany(seeds, None if until_ci is None else _share(until_ci))
    with told_in_a_line():
        asked = [_variant(text) for text in variants]
        catalogue = asked_catalogue(catalogues, prices)
        used = None if usage is None else read_usage(usage)
        shared = ComparedInput(
            scenario.read(replicas, ignore), SimulationOptions(until_s=until), catalogue, used, keep=keep
        )
        with counted_progress("runs") as progress:
            report = compare_variants(
                shared,
                asked,
                baseline or asked[0].name,
                how_many,
                metrics=[name.strip() for name in metrics.split(",")] if metrics else (),
                jobs=jobs,
                progress=progress,
            )
    print_report(report, output, table)
    if is_exit_code and any(one.is_worse for one in report.variants):
        sys.exit(NO_EXIT)


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise click.UsageError(f'--until-ci "{text}" is no percentage, such as 1%')
    return share


def _variant(text: str) -> ComparedVariant:
    from kubesched.planning.compare import feature_gates_of, variant_of
    from kubesched.planning.compare_metrics import CompareError

    name, _, rest = text.partition(":")
    found: dict[str, list[str]] = {}
    for part in filter(None, rest.split(",")):
        key, sign, value = part.partition("=")
        key = _OTHER_NAMES.get(key, key)
        if key not in _KEYS or not sign or not value:
            raise CompareError(f'--variant {text}: "{part}" is none of {", ".join(f"{one}=…" for one in _KEYS)}')
        found.setdefault(key, []).append(value)
    if not name:
        raise CompareError(f"--variant {text}: a name is needed before the colon")
    single = {key: values[-1] for key, values in found.items()}
    return variant_of(
        name,
        single.get("config"),
        found.get("plugin", ()),
        single.get("resize", ""),
        found.get("objects", ()),
        found.get("patch", ()),
        single.get("nodes", ""),
        single.get("catalogue", ""),
        feature_gates_of(single["feature-gates"]) if "feature-gates" in single else None,
        source=single.get("config", name),
    )
