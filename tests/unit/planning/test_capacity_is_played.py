"""What capacity says fits is true when it is played: so many copies run, and one more waits."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import kubesched
from kubesched.testing import make
from kubesched.testing.make import Manifest


def cluster(chance: Random) -> list[Manifest]:
    objects = []
    for number in range(chance.randint(2, 6)):
        taints = [{"key": "team", "value": "x", "effect": "NoSchedule"}] if chance.random() < 0.2 else []
        cpu, zone = chance.choice((2, 4)), chance.choice("ab")
        objects.append(make.node(f"n{number}", cpu=cpu, pods=9, labels={make.ZONE: zone}, taints=taints))
    for number in range(chance.randint(0, 5)):
        node = f"n{chance.randrange(len(objects[:2]))}"
        objects.append(make.pod(f"old-{number}", cpu="300m", labels={"app": "web"}, on=node))
    return objects


def deployment(replicas: int, chance: Random) -> Manifest:
    labels = {"app": "web"}
    spec: dict[str, Any] = {}
    if chance.random() < 0.6:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": chance.randint(1, 3),
                "topologyKey": chance.choice((make.ZONE, make.HOSTNAME)),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": labels},
            }
        ]
    if chance.random() < 0.3:
        term = make.affinity_term(make.HOSTNAME, {"app": "db"})
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = make.pod("x", cpu=chance.choice(("250m", "700m")), labels=labels, spec=spec)
    template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("way", ["every", "workloads"])
def test_so_many_more_replicas_run_and_no_more(seed: int, way: str) -> None:
    asked: dict[str, Any] = {"every": True} if way == "every" else {"workloads": ["deploy/default/web"]}
    objects = cluster(Random(seed))
    fits = kubesched.capacity([*objects, deployment(0, Random(seed))], **asked).answers[0].fits
    for more, n_waiting in ((0, 0), (1, 1)):
        played = kubesched.simulate([*objects, deployment(fits + more, Random(seed))], until="1h", seed=seed)
        assert played.summary["states"].get("Pending", 0) == n_waiting
