"""Random trials on one world, and whether anything is left of them: `make trials TRIALS=10000`.

A trial adds, cordons, drains and deletes nodes, adds, evicts and deletes pods, settles, holds trials of its own, which
are committed or taken back; then it is taken back itself, and the state of the world must have the hash that it had.
Now and then everything that is counted in the table is recounted, and a trial is held on a fresh world as well: both
must decide the same. Ends with 1 at the first trial that leaves something behind, and says which.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from random import Random
from typing import Any

import click
import msgspec

import kubesched
from kubesched.framework.pod_info import PodInfo
from kubesched.scheduler.cluster.self_check import recount_rows
from kubesched.testing import make
from kubesched.testing.make import HOSTNAME, ZONE, Manifest

OWNER = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}]
_APPS = ("web", "api", "db")
_RECOUNT_EVERY = 100
_TELL_EVERY = 1_000

_encode = msgspec.json.Encoder(enc_hook=repr).encode


def owned(manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": OWNER}}


def state(world: kubesched.LoadedWorld) -> Any:
    """All that decisions depend on."""
    cluster, table = world.cluster, world.cluster.table
    return (
        table.names[:],
        table.nodes[:],
        world.nodes,
        [[_told(info) for info in table.pods.on(row)] for row in range(table.n)],
        [_told(info) for info in cluster.pending.values()],
        dict(cluster.nominations.node_by_uid),
        {name: [_told(info) for info in cluster.nominations.on(name)] for name in cluster.nominations.node_names()},
        {key: _told(info) for key, info in cluster.placed.items()},
        {name: sorted(pods) for name, pods in cluster.orphans.items()},
        list(cluster.objects),
        table.pods.lowest_priority,
        world._state(),
    )


def state_hash(world: kubesched.LoadedWorld) -> str:
    """Orders count; but for that of the pods by key, which nobody goes through."""
    *first, placed, orphans, objects, lowest, ties = state(world)
    return hashlib.sha256(_encode([*first, sorted(placed.items()), orphans, objects, lowest, ties])).hexdigest()


def miscounted(world: kubesched.LoadedWorld) -> list[tuple[str, str]]:
    return list(recount_rows(world.cluster))


def _told(info: PodInfo) -> tuple[Any, ...]:
    return info.key, info.uid, info.pod


def act_at_random(trial: kubesched.WorldTrial, random: Random, number: int) -> None:
    world = trial.world
    nodes, placed = world.nodes, sorted(world.placed)
    match random.randrange(9):
        case 0:
            labels = {ZONE: random.choice("abc")}
            trial.add_node(make.node(f"new-{number}", allocatable={"cpu": "4", "pods": "5"}, labels=labels))
        case 1 if nodes:
            trial.delete_node(random.choice(nodes))
        case 2 if nodes:
            trial.cordon(random.choice(nodes))
        case 3 if placed:
            trial.evict(*random.sample(placed, min(2, len(placed))))
        case 4:
            trial.add_pod(random_pod(f"new-{number}", random))
        case 5:
            with trial.trial() as inner:
                act_at_random(inner, random, 100 * number + 1)
                inner.settle()
                if random.random() < 0.5:
                    inner.commit()
        case 6 if nodes:
            trial.drain(random.choice(nodes))
        case 7 if placed:
            trial.delete_pod(random.choice(placed))
        case _:
            trial.settle()


def random_pod(name: str, random: Random, on: str = "") -> Manifest:
    app = random.choice(_APPS)
    spec: dict[str, Any] = {}
    if random.random() < 0.2:
        labels = {"app": random.choice(_APPS)}
        spec["topologySpreadConstraints"] = [make.spread(ZONE, hard=random.random() < 0.5, labels=labels)]
    if random.random() < 0.2:
        term = make.affinity_term(HOSTNAME, {"app": random.choice(_APPS)})
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return make.pod(
        name,
        on=on,
        cpu=random.choice(["250m", "1", "3"]),
        memory=random.choice(["64Mi", "1Gi"]),
        labels={"app": app},
        priority=random.choice([0, 0, 5, 10] if on else [-5, 0, 5, 20]),
        host_ports=random.choice([(), (), (), (80,)]),
        spec=spec,
    )


def random_cluster(n_nodes: int, random: Random) -> list[Manifest]:
    nodes = [
        make.node(
            f"n{i}",
            cpu=random.choice([4, 8]),
            labels={ZONE: random.choice("abc")},
            taints=[make.taint("spot")] if random.random() < 0.1 else [],
        )
        for i in range(n_nodes)
    ]
    pods = [random_pod(f"p{i}", random, on=f"n{random.randrange(n_nodes)}") for i in range(3 * n_nodes)]
    waiting = [random_pod(f"waits-{i}", random) for i in range(n_nodes // 5)]
    return [*nodes, *(owned(pod) if random.random() < 0.8 else pod for pod in pods), *waiting]


def hold(world: kubesched.LoadedWorld, seed: str) -> Any:
    """One random trial, taken back at its end; what came of it."""
    random = Random(seed)
    with world.trial() as trial:
        for step in range(random.randrange(1, 6)):
            act_at_random(trial, random, step + 1)
        return trial.settle(), dict(sorted(world.placed.items())), world.pending


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1_000)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    objects = random_cluster(chosen.nodes, Random(chosen.seed))
    world = kubesched.world(objects, seed=chosen.seed)
    before, began_s, spent_s = state_hash(world), time.process_time(), 0.0
    for number in range(1, chosen.trials + 1):
        seed = f"{chosen.seed} {number}"
        trial_s = time.process_time()
        result = hold(world, seed)
        spent_s += time.process_time() - trial_s
        problem = "" if state_hash(world) == before else "the state is another one"
        if not problem and number % _RECOUNT_EVERY == 0:
            found = miscounted(world)
            problem = f"miscounted: {found[0]}" if found else ""
            if not problem and hold(kubesched.world(objects, seed=chosen.seed), seed) != result:
                problem = "a fresh world decides otherwise"
        if problem:
            click.echo(f"trial {number} of seed {chosen.seed} leaves something behind: {problem}")
            return 1
        if number % _TELL_EVERY == 0:
            click.echo(f"{number} of {chosen.trials} trials", err=True)
    took_s = time.process_time() - began_s
    click.echo(
        f"{chosen.trials} random trials on {chosen.nodes} nodes: the state's hash is what it was, {before[:16]}. "
        f"{spent_s / chosen.trials * 1e3:.2f} ms of CPU each, {took_s:.0f} s with all checks."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
