"""Fleets: machines on which a scheduler that spreads pods loses little."""

from __future__ import annotations

from random import Random

from plan_oracle import catalogue, pod, shape

import kubesched
from kubesched.testing import make


def test_large_machines_are_bought_where_pods_are_spread() -> None:
    """By the hour and cpu the small machine is cheaper by a little; evenly filled, it has no room for a large pod that
    comes late."""
    chance = Random(1)
    pods = [pod(f"small-{k}", 250, 256) for k in range(240)] + [pod(f"large-{k}", 3000, 3072) for k in range(20)]
    chance.shuffle(pods)
    machines = catalogue(
        {**shape("small", 8, 16, 0.396), "allocatable": {"cpu": 8, "memory": "16Gi", "pods": 110}},
        {**shape("large", 64, 128, 3.2), "allocatable": {"cpu": 64, "memory": "128Gi", "pods": 400}},
    )
    report = kubesched.plan(pods, machines, from_scratch=True, time_limit_s=600)
    assert report.answer == "yes"
    assert "large" in {one.shape for one in report.mix}
    only_small = kubesched.plan(pods, catalogue(machines["shapes"][0]), from_scratch=True, time_limit_s=600)
    assert report.cost < only_small.cost
    assert report.gap < 0.08 < only_small.gap


def test_fleets_are_as_large_in_each_zone_where_zones_matter() -> None:
    labels = {"app": "web"}
    spread = {
        "maxSkew": 1,
        "topologyKey": make.ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
        "minDomains": 2,
    }
    pods = [pod(f"web-{k}", 1000, labels=labels, spec={"topologySpreadConstraints": [spread]}) for k in range(12)]
    offers = [{"zone": zone, "price": 0.2} for zone in "ab"]
    machine = {"name": "four", "allocatable": {"cpu": 4, "memory": "16Gi", "pods": 20}, "offers": offers}
    report = kubesched.plan(pods, catalogue(machine), from_scratch=True)
    assert report.answer == "yes"
    assert {one.zone: one.count for one in report.mix} == {"a": 2, "b": 2}
