"""What becomes of a binding that went wrong: it is never repeated blindly, and its pod never forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from live_copies import (
    BindingJournal,
    all_bound,
    assert_no_node_is_over_committed,
    node_of,
    put_nodes,
    put_pods,
    scheduling,
    tell,
)

from harness.scripted_server import Fault, ScriptedServer, until


@pytest.mark.parametrize(
    ("plan", "n_sent"),
    [
        pytest.param(
            lambda server: server.drop_next("POST", "/binding", after=True),
            1,
            id="done, and the answer lost: seen by reading, not repeated",
        ),
        pytest.param(
            lambda server: server.drop_next("POST", "/binding"),
            2,
            id="not done, and the answer lost: tried again later",
        ),
        pytest.param(
            lambda server: server.fail_next("POST", "/binding", status=500), 2, id="refused by a server in trouble"
        ),
        pytest.param(lambda server: server.fail_next("POST", "/binding", status=409), 2, id="refused for a conflict"),
        pytest.param(
            lambda server: server.fail_next("POST", "/binding", status=404), 2, id="not found, though it is there"
        ),
        pytest.param(
            lambda server: server.fail_next("POST", "/binding", status=429, retry_after_s=1),
            2,
            id="refused by a server that is too busy, and asks to come again",
        ),
    ],
)
def test_a_binding_that_went_wrong_is_settled(plan: Callable[[ScriptedServer], Fault], n_sent: int) -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, 3)
        async with scheduling(server):
            fault = plan(server)
            put_pods(server, 0, 1)
            await all_bound(server)
            await until(lambda: any(one["reason"] == "Scheduled" for one in server.objects("events.events.k8s.io")))
            assert fault.hits == 1
            assert len(server.asked("POST", "/binding")) == n_sent

    tell(story)


def test_many_lost_answers_leave_every_pod_bound_once() -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, 10)
        async with scheduling(server):
            journal = BindingJournal(server)
            lost = [server.drop_next("POST", f"/pods/pod-{i}/binding", after=i % 2 == 0) for i in range(0, 30, 3)]
            put_pods(server, 0, 30)
            await all_bound(server)
            assert [fault.hits for fault in lost] == [1] * len(lost)
            assert journal.needless == []
            assert_no_node_is_over_committed(server)

    tell(story)


def test_a_pod_that_was_deleted_while_it_was_bound_leaves_its_room_to_others() -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, 1, cpu="1")
        async with scheduling(server):
            held = server.hold_next("POST", "/pods/pod-0/binding")
            put_pods(server, 0, 1, cpu="1")
            await until(lambda: held.hits == 1)
            put_pods(server, 1, 1, cpu="1")
            server.delete("Pod", "pod-0", "default")
            held.release()
            await until(lambda: node_of(server, "pod-1") == "node-0")
            assert len(server.asked("POST", "/pods/pod-0/binding")) == 1

    tell(story)


def test_a_pod_that_somebody_else_bound_is_left_where_it_is() -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, 2, cpu="1")
        async with scheduling(server):
            held = server.hold_next("POST", "/pods/pod-0/binding")
            put_pods(server, 0, 1, cpu="1")
            await until(lambda: held.hits == 1)
            server.bind("pod-0", "node-1")
            held.release()
            put_pods(server, 1, 1, cpu="1")
            await all_bound(server)
            assert (node_of(server, "pod-0"), node_of(server, "pod-1")) == ("node-1", "node-0")

    tell(story)


def test_a_binding_waits_for_what_is_written_about_the_pod_before() -> None:
    """Else the pod would be bound, and its condition say that it is not scheduled."""

    async def story(server: ScriptedServer) -> None:
        put_nodes(server, 1, cpu="1")
        async with scheduling(server):
            held = server.hold_next("PATCH", "/pods/pod-0/status")
            put_pods(server, 0, 1, cpu="2")
            await until(lambda: held.hits == 1)
            server.put(
                {
                    "kind": "Node",
                    "metadata": {"name": "large"},
                    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
                }
            )
            put_pods(server, 1, 1, cpu="2")
            await until(lambda: node_of(server, "pod-1") == "large")
            held.release()
            await all_bound(server)
            pod = server.get("Pod", "pod-0", "default")
            assert pod is not None
            scheduled = [one for one in pod["status"]["conditions"] if one["type"] == "PodScheduled"]
            assert [one["status"] for one in scheduled] == ["True"]

    tell(story)


@pytest.mark.parametrize(
    ("was_gone", "told"),
    [
        pytest.param(False, ["Preempted"], id="evicted by us: told"),
        pytest.param(True, [], id="gone before we came: not told"),
    ],
)
def test_only_a_pod_that_we_evicted_is_told_to_be_preempted(was_gone: bool, told: list[str]) -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, 1, cpu="1")
        async with scheduling(server):
            put_pods(server, 0, 1, cpu="1")
            await all_bound(server)
            held = server.hold_next("DELETE", "/pods/pod-0")
            put_pods(server, 1, 1, cpu="1", priority=10)
            await until(lambda: held.hits == 1)
            if was_gone:
                server.delete("Pod", "pod-0", "default")
            held.release()
            await until(lambda: node_of(server, "pod-1") == "node-0")
            await until(lambda: len([one for one in events(server) if one["reason"] == "Scheduled"]) == 2)
            assert [one["reason"] for one in events(server) if one["reason"] == "Preempted"] == told
            assert all(one["regarding"]["resourceVersion"] for one in events(server))

    tell(story)


def events(server: ScriptedServer) -> list[dict[str, Any]]:
    return server.objects("events.events.k8s.io")
