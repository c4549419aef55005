"""Health pages: the texts to the letter."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from secured_port import MASTERS, Answered, ReviewingServer, serving

from kubesched.live.serving.sources import HealthChecks, Sources, scheduler_checks


@dataclass
class State:
    is_shutting_down: bool = False
    are_handlers_synced: bool = True
    election: str = ""
    unsynced: list[str] = field(default_factory=list)

    def checks(self) -> HealthChecks:
        return scheduler_checks(
            is_shutting_down=lambda: self.is_shutting_down,
            are_handlers_synced=lambda: self.are_handlers_synced,
            leader_election=lambda: self.election,
            unsynced_informers=lambda: self.unsynced,
        )


def ask(path: str, checks: HealthChecks, headers: dict[str, str] | None = None) -> Answered:
    async def run() -> Answered:
        async with serving(Sources(checks=checks), ReviewingServer()) as port:
            return await port.get(path, headers)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "state", "status", "body"),
    [
        pytest.param("/healthz", State(), 200, "ok", id="a short ok"),
        pytest.param(
            "/livez?verbose", State(), 200, "[+]ping ok\nlivez check passed\n", id="ping where nothing else is"
        ),
        pytest.param(
            "/healthz?verbose=1", State(), 200, "[+]leaderElection ok\nhealthz check passed\n", id="the watchdog alone"
        ),
        pytest.param(
            "/readyz?verbose",
            State(),
            200,
            "[+]leaderElection ok\n[+]shutdown ok\n[+]sched-handler-sync ok\n[+]informer-sync ok\n"
            "readyz check passed\n",
            id="all checks of a scheduler, in its order",
        ),
        pytest.param(
            "/readyz",
            State(is_shutting_down=True, are_handlers_synced=False),
            500,
            "[+]leaderElection ok\n[-]shutdown failed: reason withheld\n"
            "[-]sched-handler-sync failed: reason withheld\n[+]informer-sync ok\nreadyz check failed\n",
            id="at length, and without reasons, when something is wrong",
        ),
        pytest.param(
            "/readyz?exclude=shutdown&verbose",
            State(is_shutting_down=True),
            200,
            "[+]leaderElection ok\n[+]shutdown excluded: ok\n[+]sched-handler-sync ok\n[+]informer-sync ok\n"
            "readyz check passed\n",
            id="without a check that is excluded",
        ),
        pytest.param(
            "/livez?verbose&exclude=z&exclude=etcd",
            State(),
            200,
            '[+]ping ok\nwarn: some health checks cannot be excluded: no matches for "etcd","z"\nlivez check passed\n',
            id="with a warning about what cannot be excluded",
        ),
    ],
)
def test_health_pages_answer_everybody(path: str, state: State, status: int, body: str) -> None:
    answer = ask(path, state.checks())
    assert (answer.status, answer.body) == (status, body)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-cache, private"


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        pytest.param("/readyz/shutdown", 200, "ok", id="a check that passes"),
        pytest.param(
            "/readyz/sched-handler-sync",
            500,
            "internal server error: handlers are not fully synchronized\n",
            id="a check that fails, with its reason",
        ),
        pytest.param(
            "/readyz/informer-sync",
            500,
            "internal server error: 2 informers not started yet: [*v1.Pod *v1.Node]\n",
            id="informers by name",
        ),
        pytest.param("/healthz/leaderElection", 500, "internal server error: lease lost\n", id="the watchdog's words"),
        pytest.param("/healthz/ping", 404, "404 page not found\n", id="no ping where there are other checks"),
        pytest.param("/livez/ping", 200, "ok", id="ping"),
    ],
)
def test_single_checks_answer_with_their_reason(path: str, status: int, body: str) -> None:
    state = State(are_handlers_synced=False, election="lease lost", unsynced=["*v1.Pod", "*v1.Node"])
    answer = ask(path, state.checks(), MASTERS)
    assert (answer.status, answer.body) == (status, body)


def test_single_checks_are_not_open_to_everybody() -> None:
    assert ask("/readyz/shutdown", State().checks()).status == 403


def test_without_election_healthz_is_a_ping() -> None:
    checks = scheduler_checks(is_shutting_down=lambda: False, are_handlers_synced=lambda: True)
    assert ask("/healthz?verbose", checks).body == "[+]ping ok\nhealthz check passed\n"
    assert [check.name for check in checks.readyz] == ["shutdown", "sched-handler-sync"]


def test_what_checks_said_is_counted() -> None:
    state = State(election="lost")

    async def run() -> str:
        async with serving(Sources(checks=state.checks()), ReviewingServer()) as port:
            await port.get("/healthz")
            state.election = ""
            await port.get("/healthz")
            await port.get("/livez")
            return (await port.get("/metrics/slis", MASTERS)).body

    lines = asyncio.run(run()).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        'kubernetes_healthcheck{name="leaderElection",type="healthz"} 1',
        'kubernetes_healthcheck{name="ping",type="livez"} 1',
        'kubernetes_healthchecks_total{name="leaderElection",status="error",type="healthz"} 1',
        'kubernetes_healthchecks_total{name="leaderElection",status="success",type="healthz"} 1',
        'kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 1',
    ]
