"""The interpreter of effects, and the writer with a real API server behind it, are given the same effects: they answer
alike, and leave the same objects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import msgspec
import pytest
from msgspec.structs import replace

from kubesched.framework.effects import BindPod, Done, Effect, EvictPod, Failed, FindOut, PatchPodStatus, Written
from kubesched.k8s.client.kubeconfig import load_target
from kubesched.k8s.client.resources import resource_of
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.model.core import ContainerExtendedResourceRequest, Pod, PodCondition
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from kubesched.k8s.model.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kubesched.live.writes.claim_writes import ClaimWrites, VolumeWrites
from kubesched.live.writes.object_writes import ObjectWrites, PodWrites
from kubesched.live.writes.writer import EffectWriter, ExtenderCalls, LeaderGate
from kubesched.playground.apiserver.server import ApiServer, ServerSettings
from kubesched.scheduler.plugins.dynamic_resources.effects import (
    AddClaimFinalizer,
    CreateResourceClaim,
    DeallocateClaim,
    DeleteResourceClaim,
    PatchPodExtendedResourceClaimStatus,
    ReadResourceClaim,
    RemoveReservation,
    UpdateClaimStatus,
)
from kubesched.scheduler.plugins.volume_binding.binding import BindVolumeToClaim, SelectNodeForClaim
from kubesched.simulator.api_model import EffectInterpreter, Handler, TypedStore
from kubesched.testing import make

Item = TypeVar("Item", bound=KubeObject)
KINDS: tuple[type[KubeObject], ...] = (Pod, PersistentVolume, PersistentVolumeClaim, ResourceClaim)
A, B = PodKey("default/a"), PodKey("default/b")
DISRUPTED = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler", "make room")
PENDING = PodCondition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "disk"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/disk"},
        "storageClassName": "late",
    },
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
EXACTLY = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
DEVICES = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpu", "namespace": "default"},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": EXACTLY}]}},
}
GATED = make.pod("b", spec={"schedulingGates": [{"name": "later"}]})
SHORT = make.pod("b", spec={"terminationGracePeriodSeconds": 0})
KIND_OF: Mapping[str, type[KubeObject]] = {kind.__name__: kind for kind in KINDS}

Find = Callable[[type[Any], str], Any]
Ask = Callable[[Find], object]
"""An action, given how to find objects: versions are not the same on both sides."""


class Sides:
    """An API server with the writer before it, and a store with the interpreter, which hold the same objects."""

    def __init__(self, client: RestClient, also: Mapping[type, Handler] | None = None) -> None:
        self._client = client
        gate = LeaderGate(client)
        self._writer = EffectWriter(
            PodWrites(gate, lambda key: None, sleep=_no_pause),
            VolumeWrites(gate),
            ClaimWrites(gate),
            ObjectWrites(gate, _no_pause),
            ExtenderCalls([]),
            lambda record: None,
            lambda key: None,
        )
        self._store = TypedStore()
        self._interpreter = EffectInterpreter(self._store, also=also)
        self._number = 0
        self._served: dict[type[KubeObject], dict[str, KubeObject]] = {}

    # -- what others do, on both sides ---------------------------------------------------------------------------------

    async def create(self, manifest: Mapping[str, Any]) -> None:
        kind = KIND_OF[manifest["kind"]]
        body = msgspec.json.encode(manifest)
        namespace = manifest["metadata"].get("namespace", "default") if kind is not PersistentVolume else None
        answer = await self._client.request("POST", resource_of(kind).path(namespace), body=body)
        self._store.keep(msgspec.json.decode(answer, type=kind))

    async def remove(self, key: PodKey) -> None:
        """The pod is gone, whoever it was."""
        body = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})
        namespace, _, name = key.partition("/")
        await self._client.request("DELETE", resource_of(Pod).path(namespace, name), body=body)
        self._store.remove(self._store.of(Pod)[key])

    # -- what a scheduler asks -----------------------------------------------------------------------------------------

    async def compare(self, ask: Ask) -> object:
        """Asks both, and says what they answer. Raises AssertionError if they differ."""
        await self._read()
        written = await self._write(ask(lambda kind, key: self._served[kind].get(key)))
        answer = self._interpreter.carry_out(ask(self._store.find))
        assert _comparable(answer) == _comparable(written)
        await self._read()
        for kind in KINDS:
            served, kept = self._served[kind], self._store.of(kind)
            assert _all(kept.values()) == _all(served.values())
        return answer

    async def _write(self, action: object) -> object:
        answers: list[object] = []
        self._number += 1
        self._writer.send([Effect(self._number, action)], lambda number, answer: answers.append(answer))
        await self._writer.settled()
        await asyncio.sleep(0)
        return answers[0] if answers else None

    async def _read(self) -> None:
        for kind in KINDS:
            listed = msgspec.json.decode(await self._client.request("GET", resource_of(kind).path()))
            items = [msgspec.convert(item, kind) for item in listed["items"]]
            self._served[kind] = {item.key: item for item in items}


async def _no_pause(_for_s: float) -> None:
    await asyncio.sleep(0)


def _all(items: Iterable[KubeObject]) -> list[object]:
    return [_comparable(item) for item in sorted(items, key=lambda item: item.key)]


def _comparable(found: object) -> object:
    """Without what is each side's own: versions, times, the end of a name that was to be made, the order of
    conditions, which are a map by their types."""
    if isinstance(found, Written):
        return Written
    if not isinstance(found, KubeObject):
        return found
    metadata = found.metadata
    is_made = metadata.name.startswith("made-")
    metadata = replace(
        metadata,
        name="made" if is_made else metadata.name,
        uid="made" if is_made else metadata.uid,
        resource_version="",
        generation=0,
        creation_timestamp=None,
        deletion_timestamp="some time" if metadata.deletion_timestamp else None,
        labels=metadata.labels or None,
        annotations=metadata.annotations or None,
        finalizers=metadata.finalizers or None,
    )
    found = replace(found, metadata=metadata)
    if isinstance(found, Pod):
        conditions = tuple(sorted(found.status.conditions or (), key=lambda known: known.type))
        return replace(found, status=replace(found.status, conditions=conditions))
    if isinstance(found, ResourceClaim) and found.status.allocation is not None:
        allocation = replace(found.status.allocation, allocation_timestamp=None)
        found = replace(found, status=replace(found.status, allocation=allocation))
    return found


# -- actions -----------------------------------------------------------------------------------------------------------


def bind(key: PodKey, node: str = "n1", uid: str = "") -> Ask:
    return lambda find: BindPod(key, uid or _uid(find, Pod, key), node)


def evict(key: PodKey, uid: str = "") -> Ask:
    return lambda find: EvictPod(key, uid or _uid(find, Pod, key), DISRUPTED, PodKey("default/high"))


def patch(key: PodKey, condition: PodCondition | None = PENDING, node: str | None = None, uid: str = "") -> Ask:
    return lambda find: PatchPodStatus(key, uid or _uid(find, Pod, key), condition, node)


def look_after(ask: Ask) -> Ask:
    return lambda find: FindOut(99, ask(find))


def bind_volume(version: str = "", is_ours: bool = True) -> Ask:
    def ask(find: Find) -> object:
        claim = ObjectReference("PersistentVolumeClaim", "default", "data", _uid(find, PersistentVolumeClaim), "v1")
        return BindVolumeToClaim("disk", version or _version(find, PersistentVolume, "disk"), claim, is_ours)

    return ask


def select_node(version: str = "") -> Ask:
    return lambda find: SelectNodeForClaim(
        "default", "data", version or _version(find, PersistentVolumeClaim, "default/data"), "n1"
    )


def of_devices(action: type, *more: object, uid: str = "", version: str | None = "") -> Ask:
    """An action about the claim `gpu`; `version` None for those that are about any."""

    def ask(find: Find) -> object:
        about = ["default/gpu", uid or _uid(find, ResourceClaim, "default/gpu")]
        if version is not None:
            about.append(version or _version(find, ResourceClaim, "default/gpu"))
        return action(*about, *more)

    return ask


def _uid(find: Find, kind: type[Any], key: str = "default/data") -> str:
    found = find(kind, key)
    return "none" if found is None else str(found.metadata.uid)


def _version(find: Find, kind: type[Any], key: str) -> str:
    found = find(kind, key)
    return "1" if found is None else str(found.metadata.resource_version)


ALLOCATION = AllocationResult(
    DeviceAllocationResult(results=(DeviceRequestAllocationResult("r", "gpu.example.com", "pool", "gpu-0"),))
)
USER = ResourceClaimConsumerReference(resource="pods", name="a", uid="u-a")
ALLOCATE = of_devices(UpdateClaimStatus, ALLOCATION, (USER,))
RELEASE = of_devices(RemoveReservation, "u-a", version=None)
DELETE_CLAIM = of_devices(DeleteResourceClaim, version=None)
CREATE_CLAIM = lambda find: CreateResourceClaim(  # noqa: E731
    replace(
        msgspec.convert(DEVICES, ResourceClaim),
        metadata=replace(msgspec.convert(DEVICES, ResourceClaim).metadata, name=""),
    ),
    "made-",
)
MAPPING = ContainerExtendedResourceRequest("main", "example.com/gpu", "r")
TELL_POD = lambda find: PatchPodExtendedResourceClaimStatus(A, _uid(find, Pod, A), "gpu", (MAPPING,))  # noqa: E731

Step = Ask | Mapping[str, Any] | PodKey
"""An action, an object that somebody creates, or a pod that goes."""

SCRIPTS: dict[str, tuple[Sequence[Step], object]] = {
    "binding": ([bind(A)], Done()),
    "binding twice": ([bind(A), bind(A, "n2")], Failed),
    "binding twice to the same node": ([bind(A), bind(A)], Failed),
    "binding a pod that is gone": ([A, bind(A, uid="u")], True),
    "binding another pod of that name": ([A, make.pod("a"), bind(A, uid="u")], False),
    "binding a pod that is being deleted": ([bind(A), evict(A), bind(A)], False),
    "binding a gated pod": ([GATED, bind(B)], False),
    "binding a nominated pod that had failed": ([patch(A, node="n2"), bind(A)], Done()),
    "evicting a pod that runs": ([bind(A), evict(A)], Done()),
    "evicting it twice": ([bind(A), evict(A), evict(A)], Done()),
    "evicting a pod without a node": ([evict(A)], Done()),
    "evicting it when it is gone": ([evict(A), evict(A)], True),
    "evicting a pod without time to end": ([SHORT, bind(B), evict(B)], Done()),
    "evicting a pod that is gone": ([bind(A), A, evict(A, uid="u")], True),
    "evicting another pod of that name": ([A, make.pod("a"), evict(A, uid="u")], False),
    "patching": ([patch(A), patch(A, None, "n1"), patch(A, None, ""), patch(A)], None),
    "patching beside other conditions": ([patch(A, DISRUPTED), patch(A), patch(A, DISRUPTED)], None),
    "nominating a pod that has a node": ([bind(A), patch(A, node="n2"), patch(A, node="")], None),
    "patching a pod that is gone": ([A, patch(A, uid="u")], None),
    "patching another pod of that name": ([A, make.pod("a"), patch(A, uid="u")], None),
    "a binding is found": ([bind(A), look_after(bind(A))], Done()),
    "a binding is not found": ([look_after(bind(A))], False),
    "a binding elsewhere is found": ([bind(A), look_after(bind(A, "n2"))], False),
    "a binding of another pod is looked for": ([look_after(bind(A, uid="u"))], True),
    "an eviction is found": ([bind(A), evict(A), look_after(evict(A))], Done()),
    "an eviction of a pod that is gone is found": ([A, look_after(evict(A, uid="u"))], Done()),
    "an eviction is not found": ([bind(A), look_after(evict(A))], False),
    "a volume is bound": ([VOLUME, CLAIM, bind_volume()], Written),
    "a volume of another version": ([VOLUME, CLAIM, bind_volume("1")], False),
    "a volume that is not there": ([CLAIM, bind_volume()], True),
    "a volume that the user bound": ([VOLUME, CLAIM, bind_volume(is_ours=False)], Written),
    "a node for a claim": ([CLAIM, select_node(), select_node()], Written),
    "a node for a claim of another version": ([CLAIM, select_node("1")], False),
    "a node for a claim that is not there": ([select_node()], True),
    "nobody can tell what became of a volume": ([VOLUME, CLAIM, look_after(bind_volume())], False),
    "a finalizer": ([DEVICES, of_devices(AddClaimFinalizer), of_devices(AddClaimFinalizer)], ResourceClaim),
    "a finalizer for another version": ([DEVICES, of_devices(AddClaimFinalizer, version="1")], None),
    "a finalizer for another claim": ([DEVICES, of_devices(AddClaimFinalizer, uid="u")], True),
    "an allocation": ([DEVICES, of_devices(AddClaimFinalizer), ALLOCATE], ResourceClaim),
    "an allocation for a claim that is not there": ([ALLOCATE], True),
    "a user leaves": ([DEVICES, of_devices(AddClaimFinalizer), ALLOCATE, RELEASE, RELEASE], None),
    "a claim is deallocated": (
        [DEVICES, of_devices(AddClaimFinalizer), ALLOCATE, RELEASE, of_devices(DeallocateClaim)],
        None,
    ),
    "a claim of another version is not": (
        [DEVICES, of_devices(AddClaimFinalizer), ALLOCATE, RELEASE, of_devices(DeallocateClaim, version="1")],
        None,
    ),
    "a claim is deleted": ([DEVICES, of_devices(AddClaimFinalizer), DELETE_CLAIM, DELETE_CLAIM], None),
    "another claim is not": ([DEVICES, of_devices(DeleteResourceClaim, uid="u", version=None)], None),
    "a claim is made": ([CREATE_CLAIM], ResourceClaim),
    "a claim is read": ([DEVICES, lambda find: ReadResourceClaim("default/gpu")], ResourceClaim),
    "a claim that is not there is read": ([lambda find: ReadResourceClaim("default/gpu")], True),
    "a pod is told of its claim": ([TELL_POD, TELL_POD], Done()),
    "a pod that is gone is told of its claim": ([A, TELL_POD], True),
    "an action that nobody knows": ([lambda find: DISRUPTED], False),
}


def _tell(folder: Path, steps: Callable[[Sides], Any], also: Mapping[type, Handler] | None = None) -> Any:
    async def scene() -> Any:
        async with AsyncExitStack() as stack:
            server = ApiServer(ServerSettings())
            await server.start()
            stack.push_async_callback(server.stop)
            server.write_kubeconfig(folder / "kubeconfig")
            client = RestClient(load_target(folder / "kubeconfig"), qps=0)
            stack.push_async_callback(client.close)
            return await steps(Sides(client, also))

    return asyncio.run(scene())


async def _play(sides: Sides, steps: Sequence[Step]) -> object:
    """The last answer."""
    answer: object = None
    for step in (make.pod("a"), *steps):
        if isinstance(step, Mapping):
            await sides.create(step)
        elif isinstance(step, str):
            await sides.remove(step)
        else:
            answer = await sides.compare(step)
    return answer


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_answered_alike(name: str, tmp_path: Path) -> None:
    steps, expected = SCRIPTS[name]
    answer = _tell(tmp_path, lambda sides: _play(sides, steps))
    if isinstance(expected, bool):
        assert isinstance(answer, Failed) and answer.is_gone == expected, answer
    elif isinstance(expected, type):
        assert isinstance(answer, expected)
    elif expected is not None:
        assert answer == expected


def _drawn(seed: int) -> list[Step]:
    """Any effects in any order; pods go and come again between them."""
    dice = Random(seed)
    alive = {A}
    steps: list[Step] = []
    for _ in range(25):
        key = dice.choice((A, B))
        if dice.random() < 0.2:
            steps.append(make.pod(key[-1]) if key not in alive else key)
            alive ^= {key}
            continue
        uid = dice.choice(("", "", "", "u"))
        asks = [bind(key, dice.choice(("n1", "n2")), uid), patch(key, dice.choice((PENDING, DISRUPTED, None)), uid=uid)]
        asks += [patch(key, PENDING, dice.choice(("n1", "")), uid), look_after(bind(key, "n1", uid))]
        if key in alive and dice.random() < 0.2:
            steps += [bind(key), evict(key, uid)]  # bound pods stay, marked, whatever else happens to them
        else:
            steps.append(dice.choice(asks))
    return steps


@pytest.mark.parametrize("seed", range(8))
def test_any_effects_are_answered_alike(seed: int, tmp_path: Path) -> None:
    _tell(tmp_path, lambda sides: _play(sides, _drawn(seed)))


def test_an_interpreter_that_is_lenient_is_found(tmp_path: Path) -> None:
    lenient: dict[type, Handler] = {EvictPod: lambda action: Done()}
    with pytest.raises(AssertionError):
        _tell(tmp_path, lambda sides: _play(sides, [A, evict(A, uid="u")]), lenient)
