"""Health checks, and what they say: the texts of Kubernetes' `/healthz`, `/livez` and `/readyz`, to the letter.

Which checks stand where is kube-scheduler's choice too (`scheduler_checks`). Next: `pages/component_pages`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class HealthCheck(NamedTuple):
    """`problem` says what is wrong; empty if all is well."""

    name: str
    problem: Callable[[], str]


PING = HealthCheck("ping", lambda: "")


class HealthAnswer(NamedTuple):
    is_healthy: bool
    body: str
    problems: tuple[str, ...]
    """For the log: the page withholds reasons."""


@dataclass(slots=True)
class HealthRecords:
    """What checks said: `kubernetes_healthcheck` and `kubernetes_healthchecks_total` count this."""

    last: dict[tuple[str, str], bool] = field(default_factory=dict)
    """By check and page."""
    totals: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By check, page, and success or error."""

    def note(self, check: str, page: str, is_healthy: bool) -> None:
        self.last[check, page] = is_healthy
        self.totals[check, page, "success" if is_healthy else "error"] += 1


@dataclass(frozen=True, slots=True)
class HealthChecks:
    """By page; a page without checks has `ping`."""

    healthz: Sequence[HealthCheck] = ()
    livez: Sequence[HealthCheck] = ()
    readyz: Sequence[HealthCheck] = ()


def scheduler_checks(
    *,
    is_shutting_down: Callable[[], bool],
    are_handlers_synced: Callable[[], bool],
    leader_election: Callable[[], str] | None = None,
    unsynced_informers: Callable[[], Sequence[str]] | None = None,
    unanswered: Callable[[], int] | None = None,
) -> HealthChecks:
    """kube-scheduler's checks in its order. `leader_election` is the watchdog's word, if there is an election;
    `unsynced_informers` names the kinds that have not been listed yet. `unanswered`, which is ours, counts writes that
    were not answered, and of which reading did not tell either what became of them: only a restart helps."""
    alive = [] if leader_election is None else [HealthCheck("leaderElection", leader_election)]
    if unanswered is not None:
        alive.append(HealthCheck("writes-answered", lambda: _unanswered(unanswered())))
    ready = [
        *alive,
        HealthCheck("shutdown", lambda: "process is shutting down" if is_shutting_down() else ""),
        HealthCheck(
            "sched-handler-sync", lambda: "" if are_handlers_synced() else "handlers are not fully synchronized"
        ),
    ]
    if unsynced_informers is not None:
        ready.append(HealthCheck("informer-sync", lambda: _unsynced(unsynced_informers())))
    return HealthChecks(healthz=alive, readyz=ready)


def examine(
    page: str,
    checks: Sequence[HealthCheck],
    records: HealthRecords,
    excluded: Collection[str] = (),
    *,
    verbose: bool = False,
) -> HealthAnswer:
    """What a page says. Always at length if something is wrong."""
    lines, failed, problems = [], [], []
    for check in checks:
        if check.name in excluded:
            lines.append(f"[+]{check.name} excluded: ok\n")
            continue
        problem = check.problem()
        records.note(check.name, page, not problem)
        if problem:
            lines.append(f"[-]{check.name} failed: reason withheld\n")
            failed.append(check.name)
            problems.append(f"[-]{check.name} failed: {problem}")
        else:
            lines.append(f"[+]{check.name} ok\n")
    unknown = sorted(set(excluded) - {check.name for check in checks})
    if unknown:
        quoted = ",".join(map(json.dumps, unknown))
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}\n")
    if failed:
        return HealthAnswer(False, f"{''.join(lines)}{page} check failed\n", tuple(problems))
    return HealthAnswer(True, f"{''.join(lines)}{page} check passed\n" if verbose else "ok", ())


def _unanswered(n_writes: int) -> str:
    return f"{n_writes} writes were not answered, and could not be found out about" if n_writes else ""


def _unsynced(kinds: Sequence[str]) -> str:
    return f"{len(kinds)} informers not started yet: [{' '.join(kinds)}]" if kinds else ""
