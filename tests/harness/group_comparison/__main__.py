"""`make compare-groups KUBECONFIG=f KUBE_SCHEDULER=/usr/local/bin/kube-scheduler`.

Each scenario is played with kube-scheduler, with ours that emulates v1.36's alpha, and with ours as it is by default;
beside a v1.37, with ours that emulates that. Where an outcome differs it is played again by all, as often as `--again`
says: what each of them does by chance shows then. Two schedulers differ in a scenario if no outcome of the one is an
outcome of the other.

The API server needs the feature gates and the version of groups that `scenarios.VERSIONS` names, a user who may do
everything, and no other scheduler. A kube-apiserver also needs
`--disable-admission-plugins=ServiceAccount,TaintNodesByCondition`: nobody makes accounts or takes taints away.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from harness.group_comparison.demanding_scenarios import draw
from harness.group_comparison.outcomes import Outcome, outcome_of
from harness.group_comparison.playing import Scheduler, play
from harness.group_comparison.scenarios import SETS, VERSIONS, Scenario, Version
from kubesched.k8s.client.kubeconfig import load_target
from kubesched.k8s.client.rest import RestClient

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_RUN = (sys.executable, "-m", "kubesched", "run")
_OURS = {
    "1.36": (Scheduler("1.36-alpha", (*_RUN, "--emulate=1.36-alpha")), Scheduler("default", _RUN)),
    "1.37": (Scheduler("1.37", (*_RUN, "--emulate=1.37")),),
}
"""Of each version; the first should differ nowhere."""
_AT_A_TIME = 20


@click.command()
@click.option("--kubeconfig", type=_FILE, required=True, help="Of a user who may do everything.")
@click.option("--kube-scheduler", required=True, help="Its binary.")
@click.option("--version", type=click.Choice(list(VERSIONS)), default="1.36", show_default=True, help="Of both.")
@click.option("--seed", default=1, show_default=True)
@click.option("--each", default=16, show_default=True, help="Scenarios of each set.")
@click.option("--set", "sets", multiple=True, type=click.Choice(SETS), help="Only these.")
@click.option("--scenario", "names", multiple=True, help="Only these of them.")
@click.option("--again", default=2, show_default=True, help="How often scenarios that differ are played again.")
def main(
    kubeconfig: Path,
    kube_scheduler: str,
    version: str,
    seed: int,
    each: int,
    sets: tuple[str, ...],
    names: tuple[str, ...],
    again: int,
) -> None:
    """Compares how scenarios with pod groups end with kube-scheduler and with kubesched."""
    theirs = Scheduler("kube-scheduler", (kube_scheduler,))
    comparison = _Comparison(kubeconfig.resolve(), VERSIONS[version], theirs, _OURS[version])
    drawn = {name: draw(name, each, seed) for name in sets or VERSIONS[version].gates}
    chosen = {name: [one for one in scenarios if not names or one.name in names] for name, scenarios in drawn.items()}
    sys.exit(asyncio.run(comparison.run(chosen, again)))


class _Comparison:
    def __init__(self, kubeconfig: Path, version: Version, theirs: Scheduler, ours: Sequence[Scheduler]) -> None:
        self._kubeconfig = kubeconfig
        self._version = version
        self._theirs = theirs
        self._ours = ours
        self._seen: dict[tuple[str, str], list[Outcome]] = {}
        """All outcomes of a scheduler in a scenario."""

    async def run(self, sets: dict[str, list[Scenario]], again: int) -> int:
        """1 if the emulation differs anywhere."""
        async with RestClient(load_target(self._kubeconfig), qps=0, user_agent="kubesched/compare-groups") as client:
            for name, scenarios in sets.items():
                for first in range(0, len(scenarios), _AT_A_TIME):
                    some = scenarios[first : first + _AT_A_TIME]
                    await self._settled(client, self._version.gates[name], some, again)
        everything = [one for scenarios in sets.values() for one in scenarios]
        for scheduler in self._ours:
            self._report(scheduler, everything)
        return int(any(self._differs(one, self._ours[0]) for one in everything))

    async def _settled(
        self, client: RestClient, gates: tuple[str, ...], scenarios: Sequence[Scenario], again: int
    ) -> None:
        for turn in range(again + 1):
            for scheduler in (self._theirs, *self._ours):
                played = await play(client, self._kubeconfig, scheduler, self._version, gates, scenarios)
                for name, ended in played.items():
                    self._seen.setdefault((scheduler.name, name), []).append(outcome_of(ended))
            differing = [one for one in scenarios if any(self._differs(one, ours) for ours in self._ours)]
            names = ", ".join(one.name for one in differing) or "-"
            click.echo(f"round {turn + 1} of {scenarios[0].name} to {scenarios[-1].name}: differ {names}", err=True)
            if not (scenarios := differing):
                return

    def _differs(self, scenario: Scenario, ours: Scheduler) -> bool:
        return set(self._seen[ours.name, scenario.name]).isdisjoint(self._seen[self._theirs.name, scenario.name])

    def _report(self, ours: Scheduler, scenarios: Sequence[Scenario]) -> None:
        differing = [one for one in scenarios if self._differs(one, ours)]
        click.echo(f"{ours.name}: {len(scenarios) - len(differing)} of {len(scenarios)} scenarios end alike")
        for one in differing:
            found, wanted = (min(self._seen[which.name, one.name]) for which in (ours, self._theirs))
            ways = (self._ways(which, one) for which in (self._theirs, ours))
            click.echo(f"  {one.name}: {' and '.join(ways)}")
            for sign, lines in (("-", set(wanted) - set(found)), ("+", set(found) - set(wanted))):
                for about, text in sorted(lines):
                    click.echo(f"    {sign} {about}: {text}")

    def _ways(self, scheduler: Scheduler, scenario: Scenario) -> str:
        seen = self._seen[scheduler.name, scenario.name]
        return f"{len(set(seen))} outcomes in {len(seen)} plays with {scheduler.name}"


if __name__ == "__main__":
    main()
