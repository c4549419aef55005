"""Scenarios in which all pods fit at once: plain ones, ones that spread, ones that keep together."""

from __future__ import annotations

from typing import Any

from harness.live_scenarios import checks, event_checks
from harness.live_scenarios.manifests import HOSTNAME, ZONE, Manifest
from harness.live_scenarios.site import Site

N_GROUPS = 5


async def plain(site: Site) -> None:
    """Pods that ask for a little cpu and memory."""
    await _schedule(site, [site.pod(f"pod-{i}") for i in range(site.size.n_pods)])


async def spread(site: Site) -> None:
    """Evenly over zones, and over nodes."""
    labels = {"app": "spread"}
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": labels},
        }
        for key in (ZONE, HOSTNAME)
    ]
    made = [site.pod(f"pod-{i}", labels=labels, topologySpreadConstraints=constraints) for i in range(site.size.n_pods)]
    await _schedule(site, made)
    checks.must_hold(*[checks.counts_differ_by_at_most(1, key, site, site.pods) for key in (ZONE, HOSTNAME)])


async def affinity(site: Site) -> None:
    """Each pod in the zone of the others of its group; the first may choose."""
    made = [
        site.pod(f"pod-{i}", labels={"group": f"group-{i % N_GROUPS}"}, affinity=_with_its_group(i % N_GROUPS))
        for i in range(site.size.n_pods)
    ]
    await _schedule(site, made)
    for group in range(min(N_GROUPS, site.size.n_pods)):
        members = [site.pods[f"pod-{i}"] for i in range(group, site.size.n_pods, N_GROUPS)]
        checks.must_hold(checks.all_in_one_zone(site, members, f"group-{group}"))


def _with_its_group(group: int) -> dict[str, Any]:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"group": f"group-{group}"}}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


async def _schedule(site: Site, pods: list[Manifest]) -> None:
    """Enough nodes, then the pods; all of them are bound, and it is told."""
    await site.add_nodes(cpu=4 + site.size.n_pods // site.size.n_nodes)
    await site.create_all(pods)
    await site.until(lambda: site.pods.n_bound == len(pods), "every pod is bound")
    checks.must_hold(checks.every_pod_is_bound_once(site, site.pods), checks.no_node_is_over_committed(site))
    await site.settle(lambda: event_checks.every_binding_is_told(site, site.pods))
