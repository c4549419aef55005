"""Extenders that filter nodes."""

from __future__ import annotations

from typing import Any

import pytest
from fake_extender import URL, ExtendedWorld, FakeExtender, Json, Serve, accept, accept_all

from kubesched.framework.effects import CallExtender
from kubesched.testing import make

NO_HELP = (
    " no new claims to deallocate, preemption: 0/{n} nodes are available: {n} Preemption is not helpful for scheduling."
)


def _world(*extenders: FakeExtender, **fields: Any) -> ExtendedWorld:
    world = ExtendedWorld(*extenders)
    world.put(*(make.node(name, cpu=2) for name in ("a", "b", "c")), make.pod("p", cpu=1, **fields))
    world.run()
    return world


def test_a_pod_goes_where_the_extender_lets_it() -> None:
    world = _world(FakeExtender(filter=accept("c")))
    assert world.bound == {"default/p": "c"}
    assert world.loop.paused is not None and len(world.loop.paused) == 0


def test_an_extender_is_asked_about_nodes_that_fit_only() -> None:
    extender = FakeExtender(filter=accept_all)
    world = ExtendedWorld(extender)
    world.put(make.node("a", cpu=1), make.node("b", cpu=4), make.node("c", cpu=4), make.pod("p", cpu=2))
    world.run()
    ((verb, said),) = extender.asked
    assert (verb, sorted(said["NodeNames"])) == ("filter", ["b", "c"])


def test_an_extender_without_node_cache_gets_and_gives_nodes_in_full() -> None:
    def only_b(said: Json) -> Json:
        assert said["NodeNames"] is None
        items = [node for node in said["Nodes"]["items"] if node["metadata"]["name"] == "b"]
        return {"Nodes": {"items": [*items, {"metadata": {"name": "unheard-of"}}]}}

    assert _world(FakeExtender(filter=only_b, options={"nodeCacheCapable": False})).bound == {"default/p": "b"}


def test_extenders_are_asked_one_after_another_about_what_is_left() -> None:
    first, second = FakeExtender(filter=accept("a", "b")), FakeExtender(filter=accept("b", "c"))
    world = _world(first, second)
    assert world.bound == {"default/p": "b"}
    assert second.asked[0][1]["NodeNames"] == ["a", "b"]


def test_extenders_that_can_be_done_without_come_last() -> None:
    optional = FakeExtender(filter=accept("a"), options={"ignorable": True})
    needed = FakeExtender(filter=accept("a", "b"))
    _world(optional, needed)
    assert len(needed.asked[0][1]["NodeNames"]) == 3
    assert optional.asked[0][1]["NodeNames"] == ["a", "b"]


def test_nobody_is_asked_once_no_node_is_left() -> None:
    first, second = FakeExtender(filter=accept()), FakeExtender(filter=accept_all)
    world = _world(first, second)
    assert world.bound == {}
    assert second.asked == []


REASONS: Json = {
    "FailedNodes": {"a": "too old", "b": "too old", "c": "no"},
    "FailedAndUnresolvableNodes": {"c": "never"},
}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(
            {"NodeNames": [], **REASONS},
            "0/3 nodes are available: 1 never, 2 too old. no new claims to deallocate, preemption: 0/3 nodes are "
            "available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.",
            id="reasons, of which for-good ones count more",
        ),
        pytest.param({"NodeNames": []}, "0/3 nodes are available:" + NO_HELP.format(n=3), id="no reasons"),
        pytest.param({}, "0/3 nodes are available:" + NO_HELP.format(n=3), id="nothing at all"),
    ],
)
def test_a_pod_that_no_extender_lets_in_says_why(answer: Json, message: str) -> None:
    """Twice: its own new condition is a change, too, and extenders do not say which changes matter."""
    assert _world(FakeExtender(filter=lambda _: answer)).notes() == [message] * 2


def test_reasons_of_plugins_and_extenders_are_counted_together() -> None:
    world = ExtendedWorld(
        FakeExtender(filter=lambda _: {"NodeNames": [], "FailedAndUnresolvableNodes": {"b": "too old"}})
    )
    world.put(make.node("a", cpu=1), make.node("b", cpu=4), make.pod("p", cpu=2, spec={"preemptionPolicy": "Never"}))
    world.run()
    assert world.notes()[0] == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 too old. no new claims to deallocate, preemption: "
        "not eligible due to preemptionPolicy=Never."
    )


@pytest.mark.parametrize(
    ("serve", "message"),
    [
        pytest.param(lambda _: 503, f"failed filter with extender at URL {URL}0/filter, code 503", id="an HTTP status"),
        pytest.param(lambda _: {"Error": "out of order"}, "out of order", id="its own error"),
        pytest.param(
            lambda _: {"NodeNames": ["x"]},
            f'extender "{URL}0" claims a filtered node "x" which is not found in the input node list',
            id="a node it was not asked about",
        ),
        pytest.param(
            lambda _: b"oops",
            "cannot read the extender's answer: JSON is malformed: invalid character (byte 0)",
            id="no JSON",
        ),
    ],
)
def test_an_extender_that_fails_ends_the_attempt_unless_it_can_be_done_without(serve: Serve, message: str) -> None:
    world = _world(FakeExtender(filter=serve))
    assert world.notes() == [message]
    (condition,) = world.pods["default/p"].status.conditions or ()  # type: ignore[index]
    assert condition.reason == "SchedulerError"
    assert world.bound == {}
    assert list(_world(FakeExtender(filter=serve, options={"ignorable": True})).bound.values()) == ["a"]


def test_a_pod_is_tried_again_after_an_extender_failed() -> None:
    answers: list[Any] = [500, {"NodeNames": ["b"]}]
    world = _world(FakeExtender(filter=lambda _: answers.pop(0)))
    world.run(for_s=3)
    assert world.bound == {"default/p": "b"}


def test_any_change_brings_back_a_pod_that_an_extender_rejected() -> None:
    extender = FakeExtender(filter=accept())
    world = _world(extender)
    queued = world.loop.queue.contents.find("default/p")  # type: ignore[arg-type]
    assert queued is not None and queued.unschedulable_plugins == {"Extender"}
    extender.filter = accept("b")
    world.put(
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s"}, "provisioner": "x"}
    )
    world.run(for_s=5)
    assert world.bound == {"default/p": "b"}


LIMITED = {"initContainers": [{"name": "i", "resources": {"limits": {"example.com/gpu": 1}}}]}


@pytest.mark.parametrize(
    ("fields", "is_asked"),
    [
        pytest.param({"requests": {"example.com/gpu": 1}}, True, id="a pod that requests a managed resource"),
        pytest.param({"spec": LIMITED}, True, id="a pod whose init container is limited to one"),
        pytest.param({}, False, id="a pod that does not"),
    ],
)
def test_an_extender_with_managed_resources_is_asked_about_pods_that_name_them(fields: Any, is_asked: bool) -> None:
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    extender = FakeExtender(filter=accept_all, options={"managedResources": managed})
    world = _world(extender, **fields)
    assert list(world.bound) == ["default/p"]
    assert bool(extender.asked) is is_asked


def test_the_nominated_node_is_asked_about_first() -> None:
    extender = FakeExtender(filter=accept_all)
    assert _world(extender, status={"nominatedNodeName": "c"}).bound == {"default/p": "c"}
    assert [said["NodeNames"] for _, said in extender.asked] == [["c"]]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(500, id="the extender fails there"),
        pytest.param({"NodeNames": []}, id="the extender does not let the pod in there"),
    ],
)
def test_all_nodes_are_asked_about_if_the_nominated_one_does_not_do(answer: Any) -> None:
    answers = [answer, {"NodeNames": ["b"]}]
    world = _world(FakeExtender(filter=lambda _: answers.pop(0)), status={"nominatedNodeName": "c"})
    assert world.bound == {"default/p": "b"}


def test_in_a_large_cluster_enough_nodes_are_asked_about_and_nothing_is_said_of_the_rest() -> None:
    extender = FakeExtender(filter=lambda said: {"FailedAndUnresolvableNodes": dict.fromkeys(said["NodeNames"], "no")})
    world = ExtendedWorld(extender, config={"percentageOfNodesToScore": 50})
    world.put(*(make.node(f"n{i:03}", cpu=4 if i % 2 else 1) for i in range(400)), make.pod("p", cpu=2))
    world.run()
    assert len(extender.asked[0][1]["NodeNames"]) == 200
    assert world.notes()[0].startswith("0/400 nodes are available: 200 Insufficient cpu, 200 no.")
    world.put(make.pod("q", cpu="100m"))
    world.run()
    assert world.notes()[-1].startswith("0/400 nodes are available: 200 no.")


def test_a_filter_extender_is_asked_about_more_than_one_node_even_if_nobody_scores() -> None:
    extender = FakeExtender(filter=accept("c"))
    world = ExtendedWorld(extender, config={"profiles": [{"plugins": {"score": {"disabled": [{"name": "*"}]}}}]})
    world.put(*(make.node(name) for name in ("a", "b", "c")), make.pod("p"))
    world.run()
    assert world.bound == {"default/p": "c"}


@pytest.mark.parametrize(
    ("options", "insecure"),
    [
        pytest.param({}, False, id="plain HTTP"),
        pytest.param({"enableHTTPS": True}, True, id="HTTPS without certificates to trust"),
        pytest.param({"enableHTTPS": True, "tlsConfig": {"caFile": "/ca"}}, False, id="with a file of them"),
        pytest.param(
            {"enableHTTPS": True, "tlsConfig": {"caData": "eA=="}}, False, id="with them in the configuration"
        ),
        pytest.param({"tlsConfig": {"insecure": True}}, True, id="asked for"),
    ],
)
def test_a_certificate_is_not_verified_where_nothing_says_whom_to_trust(options: Json, insecure: bool) -> None:
    world = ExtendedWorld(FakeExtender(filter=accept_all, options=options))
    world.put(make.node("a"), make.pod("p"))
    world.loop.schedule_one(0.0)
    (effect,) = world.loop.take_effects()
    assert isinstance(effect.action, CallExtender)
    (extender,) = world.loop.extenders
    assert extender.is_insecure is insecure


@pytest.mark.parametrize(
    ("options", "timeout_s"), [({}, 5.0), ({"httpTimeout": "250ms"}, 0.25)], ids=["by default", "configured"]
)
def test_a_call_says_where_to_and_how_long_it_may_take(options: Json, timeout_s: float) -> None:
    world = ExtendedWorld(FakeExtender(filter=accept_all, options=options))
    world.put(make.node("a"), make.pod("p"))
    world.loop.schedule_one(0.0)
    call = world.loop.take_effects()[0].action
    assert isinstance(call, CallExtender)
    assert (call.extender, call.verb, call.url, call.timeout_s) == (0, "filter", f"{URL}0/filter", timeout_s)
