"""DynamicResources: sharing answers between nodes and remembering them between pods never changes an answer."""

from __future__ import annotations

import numpy as np
from device_clusters import (
    DRIVER,
    Attempt,
    DeviceCluster,
    alternative,
    claim,
    device,
    device_class,
    every,
    first_of,
    held,
    node,
    pod,
    request,
    slice_of,
    slice_on,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.scheduler.plugins.dynamic_resources.outcomes import AllocationError, NotFound, SearchBudget
from kubesched.scheduler.plugins.dynamic_resources.search import Search
from kubesched.testing.make import Manifest

NODES = ["a", "b", "c", "d"]
BIG = f'device.attributes["{DRIVER}"].size == "big"'

sizes = st.sampled_from(["big", "small"])
memory = st.sampled_from(["1Gi", "2Gi"])


@st.composite
def devices(draw: st.DrawFn) -> list[Manifest]:
    found = []
    for index in range(draw(st.integers(0, 3))):
        entry = device(f"d{index}", memory=draw(memory), attributes={"size": draw(sizes)})
        if draw(st.integers(0, 3)) == 0:
            entry["allowMultipleAllocations"] = True
        if draw(st.integers(0, 4)) == 0:
            entry["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        found.append(entry)
    return found


@st.composite
def slices(draw: st.DrawFn) -> Manifest:
    """Local ones, often alike, some for racks, some of pools that span nodes or are not complete."""
    number = draw(st.integers(0, 5))
    content = draw(devices())
    where = draw(st.sampled_from(["local", "local", "local", "rack", "all", "spread"]))
    name = draw(st.sampled_from(NODES))
    generation = draw(st.sampled_from([1, 1, 1, 2]))
    if where == "local":
        return slice_on(name, *content, generation=generation)
    if where == "spread":
        return slice_on(name, *content, name=f"spread-{name}", pool="spread", total=2, generation=generation)
    if where == "all":
        return slice_of(f"all-{number}", f"pool-{number}", *content, allNodes=True, generation=generation)
    rack = {"key": "rack", "operator": "In", "values": [draw(st.sampled_from(["1", "2"]))]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [rack]}]}
    return slice_of(f"rack-{number}", f"pool-{number}", *content, nodeSelector=selector, generation=generation)


@st.composite
def holdings(draw: st.DrawFn) -> Manifest:
    pool = draw(st.sampled_from([*NODES, "spread", "pool-0", "pool-1"]))
    name = draw(st.integers(0, 5))
    share: Manifest = {"shareID": "s", "consumedCapacity": {"memory": "1Gi"}} if draw(st.booleans()) else {}
    return held(f"held-{name}", f"{pool}/d{draw(st.integers(0, 2))}", **share)


@st.composite
def requests(draw: st.DrawFn, name: str) -> Manifest:
    kind = draw(st.sampled_from(["count", "count", "all", "first", "capacity"]))
    selectors = [BIG] if draw(st.booleans()) else []
    if kind == "all":
        return every(name, *selectors)
    if kind == "first":
        return first_of(name, alternative("x", draw(st.integers(1, 2)), BIG), alternative("y", 1))
    if kind == "capacity":
        return request(name, 1, *selectors, capacity={"requests": {"memory": "1Gi"}})
    return request(name, draw(st.integers(1, 2)), *selectors)


@st.composite
def wanted_claims(draw: st.DrawFn, name: str) -> Manifest:
    entries = [draw(requests(f"r{index}")) for index in range(draw(st.integers(1, 2)))]
    attribute = {"matchAttribute": f"{DRIVER}/size"}
    return claim(name, *entries, constraints=[attribute] if draw(st.booleans()) else [])


def basis() -> list[Manifest]:
    nodes = [node(name, labels={"rack": str(1 + index % 2)}) for index, name in enumerate(NODES)]
    return [*nodes, device_class(), pod("one", name="p"), pod("two", "one", name="q")]


def described(attempt: Attempt) -> dict[str, object]:
    """Per node: the devices it would give, or its code and reasons."""
    found: dict[str, object] = {}
    for name in attempt.cluster.nodes.names:
        status = attempt.status(name)
        found[name] = attempt.allocation(name) if status.is_success else (status.code, status.reasons)
    return found


@given(st.lists(slices(), max_size=6), st.lists(holdings(), max_size=4), wanted_claims("one"), wanted_claims("two"))
@settings(max_examples=60, deadline=None)
def test_nodes_that_share_an_answer_would_get_it_alone(
    published: list[Manifest], taken: list[Manifest], one: Manifest, two: Manifest
) -> None:
    world = DeviceCluster(*basis(), *published, *taken, one, two)
    attempt = world.attempt("q")
    allocator = attempt.state.allocator
    assert allocator is not None
    (order,) = attempt.state.orders.values()
    for position, name in enumerate(world.nodes.names):
        offer = allocator.offer(world.nodes.take(np.array([position])))
        found = attempt.state.sheet.found_at(position)
        try:
            alone = Search(order.claims, offer, SearchBudget()).run()
        except AllocationError:
            assert attempt.status(name).code.value == "Error"
            continue
        if isinstance(alone, NotFound):
            assert attempt.status(name).reasons == (alone.reason,)
        else:
            assert found is not None
            assert found[0] == alone


@given(st.data(), wanted_claims("one"), wanted_claims("two"))
@settings(max_examples=30, deadline=None)
def test_what_is_kept_up_to_date_equals_what_is_built_anew(data: st.DataObject, one: Manifest, two: Manifest) -> None:
    world = DeviceCluster(*basis(), one, two)
    current: dict[tuple[str, str], Manifest] = {}
    for _ in range(data.draw(st.integers(1, 5))):
        change = data.draw(st.one_of(slices(), holdings()))
        key = (change["kind"], change["metadata"]["name"])
        if key in current and data.draw(st.booleans()):
            del current[key]
            store = world.cluster.objects
            name = change["metadata"]["name"]
            is_slice = change["kind"] == "ResourceSlice"
            world.cluster.remove(store.resource_slices[name] if is_slice else store.resource_claims[f"default/{name}"])
        else:
            current[key] = change
            world.put(change)
        anew = DeviceCluster(*basis(), one, two, *current.values())
        for name in ("p", "q"):
            assert described(world.attempt(name)) == described(anew.attempt(name))


@given(st.lists(slices(), max_size=4), st.lists(holdings(), max_size=3), wanted_claims("one"), wanted_claims("two"))
@settings(max_examples=30, deadline=None)
def test_reserving_and_giving_back_changes_nothing(
    published: list[Manifest], taken: list[Manifest], one: Manifest, two: Manifest
) -> None:
    world = DeviceCluster(*basis(), *published, *taken, one, two)
    before = described(world.attempt("q"))
    attempt = world.attempt("p")
    for name in attempt.fits():
        assert attempt.reserve(name).is_success
        world.plugin.unreserve(attempt.cycle, attempt.pod, name)
    assert described(world.attempt("q")) == before
    assert world.plugin.take_effects() == []
