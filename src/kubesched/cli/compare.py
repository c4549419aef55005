"""`kubesched compare`: variants of configuration, plugins or requests over one scenario.

Next: `kubesched.planning.compare`, which runs and compares them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kubesched.cli.planning import NO_EXIT, print_report, report_options, told_in_a_line
from kubesched.cli.scenario import AskedScenario, jobs_option, scenario_options, seeds_option, until_option

if TYPE_CHECKING:
    from kubesched.planning.compare import ComparedVariant

_KEYS = ("config", "plugin", "resize")


@click.command("compare")
@scenario_options
@click.option(
    "--variant",
    "variants",
    multiple=True,
    required=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="config=FILE, plugin=FILE, resize=FILE or resize=cpu*0.7. The first is the baseline. Repeatable.",
)
@click.option("--baseline", metavar="NAME", help="Compare with this variant instead of the first.")
@seeds_option
@jobs_option
@until_option
@report_options(["metrics"])
@click.option("--exit-code", "is_exit_code", is_flag=True, help="Exit with 1 if a variant is worse in any metric.")
def compare(
    scenario: AskedScenario,
    variants: tuple[str, ...],
    baseline: str | None,
    seeds: int,
    jobs: int,
    until: float | None,
    output: str,
    table: str,
    is_exit_code: bool,
) -> None:
    """Compare configurations, plugins or requests over one scenario, with the same seeds for all.

    \b
    kubesched compare -f cluster.yaml -f day.yaml --variant base --variant packed:config=packed.yaml
    kubesched compare -f cluster.yaml -f day.yaml --variant base --variant small:resize=krr.json --seeds 20
    """
    from kubesched.planning.compare import ComparedInput, compare_variants
    from kubesched.simulator.options import SimulationOptions

    with told_in_a_line():
        asked = [_variant(text) for text in variants]
        shared = ComparedInput(scenario.read(), SimulationOptions(until_s=until))
        report = compare_variants(shared, asked, baseline or asked[0].name, seeds, jobs=jobs)
    print_report(report, output, table)
    if is_exit_code and any(one.is_worse for one in report.variants):
        sys.exit(NO_EXIT)


def _variant(text: str) -> ComparedVariant:
    from kubesched.planning.compare import CompareError, variant_of

    name, _, rest = text.partition(":")
    config, resize, plugins = None, "", []
    for part in filter(None, rest.split(",")):
        key, sign, value = part.partition("=")
        if key not in _KEYS or not sign or not value:
            raise CompareError(f'--variant {text}: "{part}" is none of {", ".join(f"{one}=…" for one in _KEYS)}')
        if key == "config":
            config = value
        elif key == "resize":
            resize = value
        else:
            plugins.append(value)
    if not name:
        raise CompareError(f"--variant {text}: a name is needed before the colon")
    return variant_of(name, config, plugins, resize, source=config or name)
