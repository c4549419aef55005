"""An extender that binds."""

from __future__ import annotations

from typing import Any

from fake_extender import URL, ExtendedWorld, FakeExtender, Json
from msgspec.structs import replace

from kubesched.framework.effects import BindPod
from kubesched.k8s.model.core import Pod
from kubesched.testing import make


class _BindingWorld(ExtendedWorld):
    """The extender binds for real: the API server shows the pod with its node."""

    def bind_for(self, said: Json) -> Json:
        pod = self.pods[f"{said['PodNamespace']}/{said['PodName']}"]  # type: ignore[index]
        assert isinstance(pod, Pod) and pod.metadata.uid == said["PodUID"]
        self.add(replace(pod, spec=replace(pod.spec, node_name=said["Node"])))
        return {}

    def carry_out(self, action: object) -> object:
        assert not isinstance(action, BindPod)
        return super().carry_out(action)


def test_an_extender_binds_in_the_place_of_the_bind_plugins() -> None:
    extender = FakeExtender(bind=lambda said: world.bind_for(said))
    world = _BindingWorld(extender)
    world.put(make.node("a"), make.pod("p"))
    world.run()
    assert extender.verbs() == ["bind"]
    assert world.pods["default/p"].spec.node_name == "a"  # type: ignore[index]
    assert world.notes("Scheduled") == ["Successfully assigned default/p to a"]
    assert world.loop.cluster.n_assumed == 0


def _world(answer: Any, **options: Any) -> ExtendedWorld:
    world = ExtendedWorld(FakeExtender(bind=lambda _: answer, options=options))
    world.put(make.node("a", cpu=1), make.pod("p", cpu=1))
    world.run()
    return world


def test_an_error_of_the_extender_undoes_the_binding() -> None:
    world = _world({"Error": "node is taken"})
    assert world.notes() == ["node is taken"]
    assert world.loop.cluster.n_assumed == 0
    assert world.loop.cluster.nodes.at(0).requested("cpu") == 0
    assert _world(500).notes() == [f"failed bind with extender at URL {URL}0/bind, code 500"]


def test_the_bind_plugins_stand_in_for_an_extender_that_can_be_done_without() -> None:
    assert _world({"Error": "no"}, ignorable=True).bound == {"default/p": "a"}


def test_an_extender_binds_only_pods_that_interest_it() -> None:
    assert _world({"Error": "no"}, managedResources=[{"name": "example.com/gpu"}]).bound == {"default/p": "a"}


def test_an_extender_that_only_binds_has_no_say_in_the_decision() -> None:
    world = _world({})
    assert world.loop.paused is not None and len(world.loop.paused) == 0
