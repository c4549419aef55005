"""Plugins from outside wait for what others do: what ends a wait, and what one that breaks costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from outside_world import add, notes, world_with

from kubesched.framework import OK, Done, Failed, Status, WaitUntil
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Node, Pod, Service
from kubesched.testing import make
from kubesched.testing.world import World

SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "ready", "namespace": "default"}}


class Watching:
    """A world in which a plugin waits before each pod's binding, and all that it saw."""

    def __init__(self, is_settled: Callable[[Any], bool], **wait: Any) -> None:
        self.n_looks = 0
        self.answers: list[object] = []
        watching = self

        class Patient:
            name = "Patient"

            def __init__(self, handle: Any) -> None:
                self.handle = handle

            def pre_bind(self, cycle: Any, pod: Any, node_name: str) -> Any:
                answer = yield WaitUntil(self.look, **{"timeout_s": 10.0, "watched": (Service,), **wait})
                watching.answers.append(answer)
                return Status.error(answer.message) if isinstance(answer, Failed) else OK

            def look(self) -> bool:
                watching.n_looks += 1
                return is_settled(self.handle)

        self.world: World = world_with(Patient)
        add(self.world, make.node("a"), make.pod("p"))
        self.world.run()


def has_service(handle: Any) -> bool:
    return "default/ready" in handle.objects.services


def test_what_is_settled_already_is_not_waited_for() -> None:
    it = Watching(lambda handle: True)
    assert it.world.bound == {"default/p": "a"}
    assert (it.n_looks, it.answers) == (1, [Done()])


def test_a_change_of_a_watched_kind_is_looked_at_at_once() -> None:
    it = Watching(has_service)
    assert (it.n_looks, it.answers) == (1, [])
    add(it.world, make.node("b"))
    assert it.n_looks == 1, "it does not watch nodes"
    add(it.world, SERVICE)
    it.world.run()
    assert it.world.bound == {"default/p": "a"}
    assert it.world.now_s == 0.0


def test_an_object_that_goes_is_a_change_too() -> None:
    it = Watching(lambda handle: not has_service(handle), looks_at_once=False)
    (service,) = manifests.from_dicts([SERVICE]).objects
    it.world.add(service)
    assert it.answers == []
    it.world.delete(service)
    assert it.answers == [Done()]


@pytest.mark.parametrize("kind", [Pod, Node])
def test_pods_and_nodes_can_be_watched(kind: type) -> None:
    it = Watching(lambda handle: False, watched=(kind,))
    before = it.n_looks
    add(it.world, make.pod("other", on="a") if kind is Pod else make.node("b"))
    assert it.n_looks == before + 1


def test_every_second_and_at_the_deadline_it_is_looked_at_again() -> None:
    it = Watching(lambda handle: False, timeout_s=2.5)
    it.world.run(for_s=2.4)
    assert (it.n_looks, it.answers) == (3, [])
    it.world.run(for_s=0.1)
    assert (it.n_looks, it.answers) == (4, [Failed("context deadline exceeded")])
    assert notes(it.world) == ['running PreBind plugin "Patient": context deadline exceeded']


def test_a_pod_that_is_deleted_waits_no_longer() -> None:
    it = Watching(has_service)
    (pod,) = it.world.pods.values()
    it.world.delete(pod)
    assert it.answers == [Failed('pod does not exist any more: pod "p" not found', is_gone=True)]
    assert it.world.loop.bindings == {}


def test_a_look_that_raises_costs_the_attempt_and_names_the_plugin() -> None:
    zones: dict[str, bool] = {}

    def breaks(_handle: Any) -> bool:
        return zones["zone"]

    it = Watching(breaks)
    (note,) = notes(it.world)
    assert note.startswith("running PreBind plugin \"Patient\": KeyError: 'zone' (test_plugin_waits.py, line ")
    assert it.world.loop.bindings == {} and it.world.bound == {}


def test_a_wait_that_makes_no_sense_is_refused() -> None:
    for wrong, message in (
        ({"timeout_s": "long"}, "WaitUntil with timeout_s 'long', it must be a number of seconds"),
        ({"watched": ("Service",)}, "WaitUntil with watched ('Service',), it must be a tuple of kinds"),
    ):
        it = Watching(has_service, **wrong)
        assert notes(it.world) == [f'running PreBind plugin "Patient": yielded a {message}']


def test_nobody_waits_outside_of_a_binding_cycle() -> None:
    class Hopeful:
        name = "Hopeful"

        def reserve(self, cycle: Any, pod: Any, node_name: str) -> Status:
            return Status.unschedulable("no")

        def take_effects(self) -> list[object]:
            return [WaitUntil(lambda: True, 1.0)]

    world = world_with(Hopeful)
    add(world, make.node("a"), make.pod("p"))
    world.run()
    assert not world.loop.outbox.n_unanswered and not world.bound
