"""A gang on a server: its PodGroup is watched, its pods are bound together, and its condition is written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from live_copies import SCHEDULER, all_bound, n_bound, put_nodes, scheduling, tell

from harness.scripted_server import ScriptedServer, until
from harness.scripted_server.routing import ServedKind
from kubesched.framework.effects import BindPod, Effect, PatchPodGroupStatus
from kubesched.k8s.model import manifests
from kubesched.k8s.model.scheduling import GroupCondition
from kubesched.live.shell import LiveShell
from kubesched.live.writes.object_writes import ObjectWrites
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import default
from kubesched.scheduler.config.defaults import with_gates
from kubesched.scheduler.engine.observations import GroupAttemptBegan
from kubesched.scheduler.engine.score import ByName
from kubesched.testing import make

_GATES = ("--feature-gates=GenericWorkload=true,GangScheduling=true",)
_GROUP: dict[str, Any] = {
    "apiVersion": "scheduling.k8s.io/v1alpha2",
    "kind": "PodGroup",
    "metadata": {"name": "gang", "namespace": "default", "generation": 1},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
}


def _put_members(server: ScriptedServer, n: int) -> None:
    for i in range(n):
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}
        spec = {
            "schedulerName": SCHEDULER,
            "containers": [container],
            "schedulingGroup": {"podGroupName": "gang"},
        }
        server.put({"kind": "Pod", "metadata": {"name": f"pod-{i}"}, "spec": spec})


def _condition(server: ScriptedServer) -> dict[str, Any]:
    group = server.get("PodGroup", "gang", "default") or {}
    return next(iter(group.get("status", {}).get("conditions", ())), {})


def test_a_gang_is_bound_once_there_is_room_for_all() -> None:
    async def story(server: ScriptedServer) -> None:
        put_nodes(server, 1)
        server.put(_GROUP)
        _put_members(server, 3)
        async with scheduling(server, flags=_GATES):
            await until(lambda: _condition(server).get("status") == "False")
            assert _condition(server)["reason"] == "Unschedulable"
            assert n_bound(server) == 0
            put_nodes(server, 2)
            await all_bound(server)
            await until(lambda: _condition(server).get("status") == "True")
            found = _condition(server)
            assert (found["type"], found["reason"], found["observedGeneration"]) == (
                "PodGroupScheduled",
                "Scheduled",
                1,
            )
            assert found["lastTransitionTime"]

    tell(story)


_NEXT: dict[str, Any] = {"disruptionMode": {"all": {}}, "workloadRef": {"workloadName": "w", "templateName": "t"}}


@pytest.mark.parametrize(("version", "fields"), [("v1beta1", _NEXT), ("v1alpha2", {})])
def test_v1_37_finds_groups_and_writes_another_condition(version: str, fields: dict[str, Any]) -> None:
    """An older server, the playground's for one, has them in v1alpha2."""
    group = {**_GROUP, "apiVersion": f"scheduling.k8s.io/{version}", "spec": {**_GROUP["spec"], **fields}}

    async def story(server: ScriptedServer) -> None:
        server.routes.remove("podgroups")
        server.routes.add(ServedKind("scheduling.k8s.io", version, "podgroups", "PodGroup", True))
        put_nodes(server, 2)
        server.put(group)
        _put_members(server, 3)
        async with scheduling(server, flags=("--feature-gates=GenericWorkload=true", "--emulate=1.37")):
            await all_bound(server)
            await until(lambda: _condition(server).get("status") == "True")
            assert _condition(server)["type"] == "PodGroupInitiallyScheduled"

    tell(story)


class _SlowFirst:
    """Answers the first request after the second, if that comes meanwhile."""

    def __init__(self) -> None:
        self.written: list[str] = []

    async def request(self, method: str, path: str, *, body: bytes = b"", **_: Any) -> bytes:
        status = msgspec.json.decode(body)["status"]["conditions"][0]["status"]
        if status == "False":
            await asyncio.sleep(0.01)
        self.written.append(status)
        return b"{}"


def test_what_was_said_of_a_group_last_is_written_last() -> None:
    requests: Any = _SlowFirst()

    async def story() -> None:
        writes = ObjectWrites(requests)
        said = [
            PatchPodGroupStatus("d/g", "u", GroupCondition("PodGroupScheduled", status), 1, True)
            for status in ("False", "True")
        ]
        await asyncio.gather(*map(writes.patch_group_status, said))

    asyncio.run(story())
    assert requests.written == ["False", "True"]


def test_what_was_decided_leaves_before_a_group_is_tried() -> None:
    """A group's cycle may take long, and a pod that was decided before must not wait for it."""
    tried: list[str] = []
    loop = build_loop(with_gates(default(), {"GenericWorkload": True, "GangScheduling": True}), ByName())
    loop.listen(lambda what: tried.append("group") if isinstance(what, GroupAttemptBegan) else None)

    class Writes:
        def send(self, effects: Sequence[Effect], answer: Callable[[int, object], None]) -> None:
            tried.extend(effect.action.pod for effect in effects if isinstance(effect.action, BindPod))

        def resume(self) -> None:
            pass

    shell = LiveShell(loop, Writes(), lambda: 0.0)
    group = {**_GROUP, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    members = [make.pod(f"m-{number}", spec={"schedulingGroup": {"podGroupName": "gang"}}) for number in range(2)]

    async def story() -> None:
        for item in manifests.from_dicts([make.node("n"), make.pod("a"), group, *members, make.pod("z")]).objects:
            shell.put(item)
        shell.lead()
        for _ in range(20):
            await asyncio.sleep(0)
        shell.stop()

    asyncio.run(story())
    assert tried == ["default/a", "group", "default/m-0", "default/m-1", "default/z"]
