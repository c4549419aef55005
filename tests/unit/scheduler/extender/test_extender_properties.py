"""Whatever the order of answers and facts: no node holds too much, no pod is lost, extenders are obeyed."""

from __future__ import annotations

from fake_extender import ExtendedWorld, FakeExtender, Json
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kubesched.testing import make

NODES = ("a", "b", "c")
IMPORTANT = "p99"


def _likes(pod: str, node: str) -> bool:
    """Every pod dislikes one node of three."""
    return NODES[int(pod[1:]) % 3] != node


def _filter(said: Json) -> Json:
    name = said["Pod"]["metadata"]["name"]
    return {"NodeNames": [node for node in said["NodeNames"] if _likes(name, node)]}


def _extender() -> FakeExtender:
    return FakeExtender(
        filter=_filter,
        prioritize=lambda said: [{"Host": node, "Score": 5} for node in said["NodeNames"][:1]],
        preempt=lambda said: {"NodeNameToMetaVictims": said["NodeNameToMetaVictims"]},
        options={"managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}]},
    )


PODS = st.lists(
    st.tuples(st.integers(1, 2), st.booleans(), st.integers(0, 2)), min_size=1, max_size=8
)  # cpu, asks the extender, priority
STEPS = st.lists(
    st.sampled_from(
        ["answer first", "answer last", "schedule", "schedule", "drop node", "add node", "delete pod", "important pod"]
    )
)


def _is_sound(world: ExtendedWorld, asking: set[str]) -> None:
    table = world.loop.cluster.table
    for row, name in enumerate(table.names):
        infos = table.pods.on(row)
        assert sum(info.resources.requests["cpu"] for info in infos) <= 2000
        assert all(_likes(info.name, name) for info in infos if info.name in asking)
    flying = {queued.uid for queued in world.loop.queue.contents.in_flight}
    paused = world.loop.paused
    assert paused is not None
    assert all(uid in paused or uid in world.loop.bindings for uid in flying)


@settings(deadline=None)
@given(PODS, STEPS)
def test_nothing_goes_wrong_while_extenders_think(pods: list[tuple[int, bool, int]], steps: list[str]) -> None:
    world = ExtendedWorld(_extender())
    world.is_slow = True
    asking = {IMPORTANT, *(f"p{i}" for i, (_, asks, _) in enumerate(pods) if asks)}
    world.put(*(make.node(name, cpu=2) for name in NODES))
    for i, (cpu, asks, priority) in enumerate(pods):
        requests = {"cpu": cpu, **({"example.com/gpu": 1} if asks else {})}
        world.put(make.pod(f"p{i}", requests=requests, priority=priority))
    for step in steps:
        _take(world, step)
        _is_sound(world, asking)
    world.is_slow = False
    world.catch_up()
    world.run(for_s=60)
    _is_sound(world, asking)
    paused = world.loop.paused
    assert paused is not None and len(paused) == 0
    assert world.loop.queue.contents.in_flight == []
    waiting = {queued.key for queued in [*world.loop.queue.contents.unschedulable, *world.loop.queue.contents.backoff]}
    assert waiting == {key for key, pod in world.pods.items() if not pod.spec.node_name}
    event(f"waiting: {bool(waiting)}, evicted: {bool(world.evicted)}")


def _take(world: ExtendedWorld, step: str) -> None:
    match step:
        case "answer first":
            world.catch_up(1)
        case "answer last":
            world.waiting.reverse()
            world.catch_up(1)
        case "schedule":
            world.loop.schedule_one(world.now_s)
            world.settle()
        case "drop node" if "b" in world.loop.cluster.table.rows:
            world.delete(world.loop.cluster.table.nodes[world.loop.cluster.table.rows["b"]])
        case "add node":
            world.put(make.node("b", cpu=2))
        case "important pod" if f"default/{IMPORTANT}" not in world.pods:
            world.put(make.pod(IMPORTANT, requests={"cpu": 2, "example.com/gpu": 1}, priority=9))
        case "delete pod" if world.pods:
            world.delete(next(iter(world.pods.values())))


@settings(deadline=None)
@given(PODS)
def test_an_extender_that_agrees_with_everything_changes_no_decision(pods: list[tuple[int, bool, int]]) -> None:
    items = [make.pod(f"p{i}", cpu=cpu, priority=priority) for i, (cpu, _, priority) in enumerate(pods)]
    agrees = FakeExtender(
        filter=lambda said: {"NodeNames": said["NodeNames"]},
        prioritize=lambda _: [],
        preempt=lambda said: {"NodeNameToMetaVictims": said["NodeNameToMetaVictims"]},
    )
    worlds = ExtendedWorld(agrees), ExtendedWorld()
    for world in worlds:
        world.put(*(make.node(name, cpu=2) for name in NODES), *items)
        world.run(for_s=60)
    assert worlds[0].bound == worlds[1].bound
    assert worlds[0].evicted == worlds[1].evicted
