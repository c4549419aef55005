"""One scenario from beginning to end: make, wait, check, take away; and how long its pods took."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from harness.live_scenarios.node_comes import node_comes
from harness.live_scenarios.placement import affinity, plain, spread
from harness.live_scenarios.preemption import preemption
from harness.live_scenarios.site import ScenarioSize, Site
from harness.live_scenarios.volumes import volumes
from kubesched.k8s.client.rest import RestClient

SCENARIOS: dict[str, Callable[[Site], Awaitable[None]]] = {
    "plain": plain,
    "spread": spread,
    "affinity": affinity,
    "preemption": preemption,
    "volumes": volumes,
    "node-comes": node_comes,
}


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """Times are from sending a pod's creation to hearing of its binding. That of `node-comes` holds the wait for
    nodes, and that of `preemption` both kinds of pods."""

    name: str
    n_pods: int
    for_s: float
    """From the first creation to the last binding."""
    p50_s: float
    p99_s: float

    @property
    def pods_per_s(self) -> float:
        return self.n_pods / max(self.for_s, 1e-9)


async def run_scenario(
    client: RestClient,
    name: str,
    scheduler_name: str,
    size: ScenarioSize,
    *,
    patience_s: float = 60.0,
    victims_are_told_names: bool = False,
) -> ScenarioResult:
    """Raises `ScenarioFailedError` if anything is not as it should be. Takes away what it made in any case."""
    site = Site(client, f"{name}-{secrets.token_hex(3)}", scheduler_name, size, patience_s)
    site.victims_are_told_names = victims_are_told_names
    try:
        await site.open()
        await SCENARIOS[name](site)
        return _result(name, site)
    finally:
        await site.close()


def _result(name: str, site: Site) -> ScenarioResult:
    bound = [(one.sent_at_s, one.bound_at_s) for one in site.pods if one.bound_at_s is not None]
    took_s = sorted(at_s - sent_at_s for sent_at_s, at_s in bound)
    for_s = max(at_s for _, at_s in bound) - min(sent_at_s for sent_at_s, _ in bound)
    return ScenarioResult(name, len(bound), for_s, _share(took_s, 0.5), _share(took_s, 0.99))


def _share(ordered: Sequence[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
