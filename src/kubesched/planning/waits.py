"""How long pods waited for a node in a simulation, and how many at a time: of their records.

Next: `upgrade` and `consolidate.timeline`, which tell it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kubesched.k8s.workloads.pod_states import NODE_BOUND_OWNERS
from kubesched.simulator.ledger import PodRecord


def is_of_its_node(record: PodRecord) -> bool:
    return record.workload.partition(" ")[0] in NODE_BOUND_OWNERS


def waited_s(record: PodRecord, end_s: float) -> float:
    until_s = record.scheduled_s if record.scheduled_s is not None else record.ended_s
    return (end_s if until_s is None else until_s) - record.created_s


def waiting_over_time(records: Iterable[PodRecord], end_s: float) -> list[tuple[float, int]]:
    """How many pods wait since when, of those that wait longer than an instant."""
    changes: Counter[float] = Counter()
    for record in records:
        waits_s = waited_s(record, end_s)
        if waits_s > 0:
            changes[record.created_s] += 1
            changes[record.created_s + waits_s] -= 1
    found, n = [], 0
    for at_s in sorted(changes):
        n += changes[at_s]
        found.append((at_s, n))
    return found
