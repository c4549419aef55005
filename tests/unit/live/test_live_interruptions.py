"""Whatever is interrupted, watches, the server or the scheduler: in the end every pod is bound, and only once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

import pytest
from live_copies import (
    BindingJournal,
    all_bound,
    assert_no_node_is_over_committed,
    n_bound,
    put_nodes,
    put_pods,
    scheduling,
    start_copy,
    tell,
)

from harness.scripted_server import ScriptedServer, until
from kubesched.framework.effects import BindPod, Effect
from kubesched.k8s.client.credentials.stored import StaticCredentials
from kubesched.live import live_scheduler
from kubesched.live.live_scheduler import LeadershipLost
from kubesched.live.writes.writer import Answer, EffectWriter
from kubesched.scheduler.engine import self_check

N_NODES, N_PODS, BATCH = 20, 60, 10


async def all_bound_once(server: ScriptedServer, journal: BindingJournal) -> None:
    await all_bound(server)
    assert n_bound(server) == N_PODS
    assert journal.needless == []
    assert_no_node_is_over_committed(server)


# -- watches -----------------------------------------------------------------------------------------------------------


def cut(server: ScriptedServer) -> None:
    server.cut_watches()


def expire(server: ScriptedServer) -> None:
    server.expire_watches()


def cut_and_forget(server: ScriptedServer) -> None:
    server.cut_watches()
    server.storage.forget_history()


@pytest.mark.parametrize(
    "interrupt",
    [
        pytest.param(cut, id="connections break"),
        pytest.param(expire, id="versions expire"),
        pytest.param(cut_and_forget, id="connections break, and what happened since is forgotten"),
    ],
)
def test_watches_that_end_under_load_lose_no_pod(interrupt: Callable[[ScriptedServer], None]) -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, N_NODES)
        async with scheduling(server):
            journal = BindingJournal(server)
            for first in range(0, N_PODS, BATCH):
                put_pods(server, first, BATCH)
                await until(lambda at_least=first: n_bound(server) >= at_least)  # type: ignore[misc]
                interrupt(server)
            await all_bound_once(server, journal)

    tell(story)


# -- the server --------------------------------------------------------------------------------------------------------


def test_a_server_that_was_away_is_taken_up_again_without_a_restart() -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, N_NODES)
        async with scheduling(server) as copy:
            put_pods(server, 0, N_PODS // 2)
            await until(lambda: n_bound(server) > 0)
            await server.stop()
            put_pods(server, N_PODS // 2, N_PODS // 2)
            await until(lambda: copy.scheduler.shell.is_leading)
            await server.start()
            journal = BindingJournal(server)
            await all_bound_once(server, journal)
            assert not copy.running.done()

    tell(story)


# -- the scheduler -----------------------------------------------------------------------------------------------------


async def kill_under_load(journal: BindingJournal, name: str, running: asyncio.Task[None]) -> None:
    """Without warning: from one moment to the next nothing it sends arrives any more."""
    journal.cut_off_after[name] = N_PODS // 3
    put_pods(journal.server, 0, N_PODS)
    await until(lambda: name in journal.cut_off)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


def test_after_a_kill_without_warning_another_goes_on() -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, N_NODES)
        journal = BindingJournal(server)
        first = start_copy(server, name="first")
        await first.schedules()
        await kill_under_load(journal, "first", first.running)
        assert n_bound(server) < N_PODS
        async with scheduling(server):
            await all_bound_once(server, journal)

    tell(story)


def test_when_the_leader_is_killed_the_other_copy_leads_and_no_pod_is_bound_by_both() -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, N_NODES)
        journal = BindingJournal(server)
        first = start_copy(server, name="first", leader_elect=True)
        await first.schedules()
        second = start_copy(server, name="second", leader_elect=True)
        await until(lambda: second.scheduler.informers.has_synced)
        assert not second.scheduler.is_scheduling.is_set()
        await kill_under_load(journal, "first", first.running)
        await second.schedules()
        await all_bound_once(server, journal)
        by = {copy: {pod for pod, sender in journal.sent if sender == copy} for copy in ("first", "second")}
        assert by["first"] and by["second"]
        await second.stop()

    tell(story)


def test_a_copy_that_is_stopped_gives_the_lease_to_the_other_at_once() -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, N_NODES)
        first = start_copy(server, name="first", leader_elect=True)
        await first.schedules()
        second = start_copy(server, name="second", leader_elect=True)
        await until(lambda: second.scheduler.informers.has_synced)
        await first.stop()
        (lease,) = server.objects("Lease")
        assert not lease["spec"].get("holderIdentity") or second.scheduler.is_scheduling.is_set()
        await second.schedules()
        await second.stop()

    tell(story)


def test_a_copy_that_loses_the_lease_ends_and_writes_nothing_more() -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, N_NODES)
        journal = BindingJournal(server)
        first = start_copy(server, name="first", leader_elect=True)
        await first.schedules()
        second = start_copy(server, name="second", leader_elect=True)
        journal.cut_off_leases.add("first")
        with pytest.raises(LeadershipLost):
            await asyncio.wait_for(first.running, 10)
        n_written = journal.writes["first"]
        put_pods(server, 0, N_PODS)
        await second.schedules()
        await all_bound_once(server, journal)
        assert journal.writes["first"] == n_written
        assert {copy for _, copy in journal.sent} == {"second"}
        await second.stop()

    tell(story)


# -- pauses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("for_s", [1.7, 2.6], ids=["longer than it may write", "longer than its lease"])
@pytest.mark.parametrize("n_pods", [10, 200], ids=["few pods", "with bindings in line"])
def test_after_a_pause_the_only_copy_goes_on_with_nothing_lost(for_s: float, n_pods: int) -> None:
    """Everything in this process stands still, as a machine does that is suspended."""

    async def story(server: ScriptedServer) -> None:
        put_nodes(server, n_pods // 2)
        async with scheduling(server, leader_elect=True) as copy:
            journal = BindingJournal(server)
            put_pods(server, 0, n_pods // 2)
            await until(lambda: n_bound(server) > 0)
            put_pods(server, n_pods // 2, n_pods // 2)
            time.sleep(for_s)
            await all_bound(server)
            assert journal.needless == []
            assert_no_node_is_over_committed(server)
            await until(lambda: not copy.scheduler.loop.bindings)
            assert not copy.running.done()

    tell(story)


def test_a_write_that_is_never_answered_is_told_and_settled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug in the writer: the answers to two bindings vanish without a trace."""
    monkeypatch.setattr(live_scheduler, "_answer_limit", lambda qps: self_check.AnswerLimit(2.0))
    monkeypatch.setattr(self_check, "LOOK_EVERY_S", 0.1)
    ended = EffectWriter._ended
    lost: list[str] = []

    def forgetful(self: EffectWriter, effect: Effect, answer: Answer, task: asyncio.Task[object]) -> None:
        if isinstance(effect.action, BindPod) and len(lost) < 2:
            lost.append(effect.action.pod)
            ended(self, effect, lambda number, outcome: None, task)
        else:
            ended(self, effect, answer, task)

    monkeypatch.setattr(EffectWriter, "_ended", forgetful)

    async def story(server: ScriptedServer) -> None:
        put_nodes(server, N_NODES)
        async with scheduling(server) as copy:
            journal = BindingJournal(server)
            put_pods(server, 0, N_PODS)
            await all_bound_once(server, journal)
            await until(lambda: not copy.scheduler.loop.bindings)
            told = [record for record in caplog.records if record.message.startswith("An effect was not answered")]
            assert {record.levelname for record in told} == {"ERROR"}
            assert {record.fields["about"] for record in told} >= set(lost)  # type: ignore[attr-defined]

    tell(story)


# -- rights ------------------------------------------------------------------------------------------------------------


def test_a_missing_right_is_told_and_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, 2)
        put_pods(server, 0, 1)
        for verb in ("list", "watch"):
            server.refuse(verb, "persistentvolumes")
        copy = start_copy(server)
        told = "RBAC does not let us watch persistentvolumes (API group core)"
        await until(lambda: any(told in str(getattr(record, "fields", "")) for record in caplog.records))
        assert not copy.scheduler.is_scheduling.is_set()
        for verb in ("list", "watch"):
            server.allow(verb, "persistentvolumes")
        await copy.schedules()
        await all_bound(server)
        await copy.stop()

    with caplog.at_level(logging.INFO):
        tell(story)


def test_a_token_that_is_not_accepted_is_told_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    def told() -> list[str]:
        return [f"{record.message} {getattr(record, 'fields', '')}" for record in caplog.records]

    async def story(server: ScriptedServer) -> None:
        put_nodes(server, 2)
        login = StaticCredentials((("Authorization", "Bearer s3cret"),), "get a new token")
        async with scheduling(server, login=login):
            server.access.accepts_token = "another"
            server.cut_watches()
            await until(lambda: any("does not accept the credentials" in line for line in told()))
            put_pods(server, 0, 1)
            server.access.accepts_token = "s3cret"
            await all_bound(server)

    with caplog.at_level(logging.INFO):
        tell(story, accepts_token="s3cret")
    assert any(line.startswith("Failed to watch") and "get a new token" in line for line in told())
    assert "s3cret" not in "".join(told())


def test_a_missing_right_to_bind_is_told_and_the_pod_bound_when_it_is_granted() -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, 2)
        server.refuse("create", "pods/binding")
        async with scheduling(server):
            put_pods(server, 0, 1)
            await until(lambda: any("cannot create" in note for note in notes(server)))
            server.allow("create", "pods/binding")
            await all_bound(server)

    tell(story)


def notes(server: ScriptedServer) -> list[str]:
    return [event["note"] for event in server.objects("events.events.k8s.io")]
