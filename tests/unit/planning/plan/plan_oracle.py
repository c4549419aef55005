"""The optimum by trying everything: all mixes of few machines, with every placement or judged by the scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Any

import kubesched
from kubesched.testing import make
from kubesched.testing.make import Manifest

MOST_NODES = 6


def catalogue(*shapes: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": list(shapes)}


def shape(name: str, cpu: int, memory: int, price: float, **fields: Any) -> dict[str, Any]:
    """`cpu` in cores, `memory` in GiB."""
    allocatable = {"cpu": cpu, "memory": f"{memory}Gi", "pods": 20}
    return {"name": name, "allocatable": allocatable, "price": price, **fields}


def pod(name: str, cpu_milli: int, memory_mib: int = 128, **fields: Any) -> Manifest:
    return make.pod(name, requests={"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}, **fields)


def mixes(machines: Sequence[tuple[int, int, int]], most: int = MOST_NODES) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(price, machines) of every multiset, the cheapest first. A machine is (milli-cpu, MiB, price)."""
    found: list[tuple[int, tuple[int, ...]]] = []
    for n in range(most + 1):
        multisets = combinations_with_replacement(range(len(machines)), n)
        found += [(sum(machines[k][2] for k in chosen), chosen) for chosen in multisets]
    yield from sorted(found)


def packs(pods: Sequence[tuple[int, int]], rooms: list[tuple[int, int]]) -> bool:
    """Whether any placement holds all pods (milli-cpu, MiB): tries them all, the largest pod first."""
    if not pods:
        return True
    (cpu, memory), rest = pods[0], pods[1:]
    tried = set()
    for k, (free_cpu, free_memory) in enumerate(rooms):
        if cpu <= free_cpu and memory <= free_memory and (free_cpu, free_memory) not in tried:
            tried.add((free_cpu, free_memory))
            rooms[k] = free_cpu - cpu, free_memory - memory
            if packs(rest, rooms):
                rooms[k] = free_cpu, free_memory
                return True
            rooms[k] = free_cpu, free_memory
    return False


def best_packing(pods: Sequence[tuple[int, int]], machines: Sequence[tuple[int, int, int]]) -> int | None:
    """The price of the cheapest mix of at most six machines that holds all pods in some placement."""
    largest_first = sorted(pods, reverse=True)
    for price, chosen in mixes(machines):
        if packs(largest_first, [(machines[k][0], machines[k][1]) for k in chosen]):
            return price
    return None


def best_for_scheduler(
    pods: Sequence[Manifest], machines: Sequence[tuple[int, int, int]], names: Sequence[str]
) -> int | None:
    """The price of the cheapest mix on which the scheduler itself, from scratch, places all pods; nodes named as a plan
    names them, in the order of the catalogue."""
    for price, chosen in mixes(machines):
        nodes = []
        for k in sorted(set(chosen)):
            for number in range(1, chosen.count(k) + 1):
                cpu, memory, _ = machines[k]
                amounts: dict[str, str | int] = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": 20}
                labels = {"node.kubernetes.io/instance-type": names[k]}
                nodes.append(make.node(f"new-{names[k]}-{number}", allocatable=amounts, labels=labels))
        with kubesched.world([*nodes, *pods]).trial() as trial:
            if not trial.settle().pending:
                return price
    return None
