"""Random histories of clusters with volumes and devices, few of each and under few names, so that they meet.

What happens is a list of steps: an object is put or deleted, a pod that runs is deleted, and the controllers of volumes
do their part. `outcome` runs one against the loop.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec import to_builtins
from msgspec.structs import replace

from kubesched.k8s.model import manifests
from kubesched.k8s.model.resource import ResourceClaim, ResourceClaimStatus
from kubesched.k8s.model.storage import (
    BIND_COMPLETED_ANNOTATION,
    SELECTED_NODE_ANNOTATION,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    is_fully_bound,
)
from kubesched.k8s.model.volumes import CSIPersistentVolumeSource
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import default
from kubesched.scheduler.engine.score import Seeded
from kubesched.scheduler.plugins.volume_binding.binding import reference_to
from kubesched.testing import make
from kubesched.testing.make import Manifest
from kubesched.testing.world import World

Step = tuple[str, Manifest]
"""What happens, and the object."""

DRIVER, OTHER_DRIVER = "disk.example.com", "other.example.com"
LATE, NOW, MEASURED, LOCAL = "late", "now", "measured", "local"
NODES = tuple(f"n{i}" for i in range(5))
_SMALL = st.integers(0, 3)


def named(api: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Manifest:
    metadata: Manifest = {"name": name, "uid": f"uid-{kind}-{name}", **fields.pop("metadata", {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


# -- storage -----------------------------------------------------------------------------------------------------------


@st.composite
def _nodes(draw: st.DrawFn, name: str) -> Manifest:
    labels = {make.HOSTNAME: name}
    if draw(_SMALL):
        labels[make.ZONE] = draw(st.sampled_from(("a", "b")))
    return make.node(name, cpu=draw(st.integers(2, 6)), labels=labels)


@st.composite
def _csi_nodes(draw: st.DrawFn, name: str, *, is_limited: bool = False) -> Manifest:
    if is_limited:
        limited = {"name": DRIVER, "nodeID": name, "allocatable": {"count": draw(st.integers(1, 3))}}
        return named("storage.k8s.io/v1", "CSINode", name, spec={"drivers": [limited]})
    drivers = [
        {"name": driver, "nodeID": name, **({"allocatable": {"count": draw(_SMALL)}} if draw(_SMALL) else {})}
        for driver in (DRIVER, OTHER_DRIVER)
        if draw(_SMALL)
    ]
    return named("storage.k8s.io/v1", "CSINode", name, spec={"drivers": drivers})


CLASSES = (LATE, NOW, MEASURED, LOCAL)


@st.composite
def _storage_classes(draw: st.DrawFn, name: str) -> Manifest:
    provisioner = {MEASURED: OTHER_DRIVER, LOCAL: "kubernetes.io/no-provisioner"}.get(name, DRIVER)
    mode = "Immediate" if name == NOW else "WaitForFirstConsumer"
    fields: Manifest = {"provisioner": provisioner, "volumeBindingMode": mode}
    if draw(_SMALL) == 0:
        fields["allowedTopologies"] = [{"matchLabelExpressions": [{"key": make.ZONE, "values": ["a"]}]}]
    return named("storage.k8s.io/v1", "StorageClass", name, **fields)


@st.composite
def _volumes(draw: st.DrawFn, number: int) -> Manifest:
    """Free, or meant for a claim; of a driver, of an in-tree plugin, or local."""
    name = f"v{number}"
    spec: Manifest = {
        "capacity": {"storage": draw(st.sampled_from(("1Gi", "2Gi")))},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": draw(st.sampled_from((LATE, LOCAL, LOCAL, NOW))),
    }
    kind = draw(st.integers(0, 5))
    if kind == 0:
        spec["awsElasticBlockStore"] = {"volumeID": "vol-1"}
    elif kind == 1:
        spec["local"] = {"path": "/disk"}
    else:
        spec["csi"] = {"driver": DRIVER, "volumeHandle": draw(st.sampled_from((name, name, "shared")))}
    where = draw(st.sampled_from((None, None, make.HOSTNAME, make.ZONE)))
    if where is not None:
        value = draw(st.sampled_from(NODES if where == make.HOSTNAME else ("a", "b")))
        term = {"matchExpressions": [{"key": where, "operator": "In", "values": [value]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    if draw(_SMALL):
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": f"c{number}"}
    metadata = {"labels": {make.ZONE: draw(st.sampled_from(("a", "b", "a__b")))}} if draw(_SMALL) == 0 else {}
    status = {"phase": "Bound" if "claimRef" in spec else "Available"}
    return named("v1", "PersistentVolume", name, metadata=metadata, spec=spec, status=status)


@st.composite
def _claims(draw: st.DrawFn, number: int) -> Manifest:
    name = f"c{number}"
    spec: Manifest = {
        "accessModes": [draw(st.sampled_from(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod")))],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": draw(st.sampled_from((LATE, LATE, LATE, NOW, MEASURED, LOCAL, "missing"))),
    }
    metadata: Manifest = {}
    if draw(st.booleans()):
        spec["volumeName"] = draw(st.sampled_from((f"v{number}", f"v{number}", f"v{number}", "v0")))
        if draw(_SMALL):
            metadata["annotations"] = {BIND_COMPLETED_ANNOTATION: "yes"}
    elif draw(st.integers(0, 5)) == 0:
        metadata["annotations"] = {SELECTED_NODE_ANNOTATION: draw(st.sampled_from(NODES))}
    if draw(st.integers(0, 9)) == 0:
        metadata["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    phase = "Bound" if "volumeName" in spec else "Pending"
    return named("v1", "PersistentVolumeClaim", name, "default", metadata=metadata, spec=spec, status={"phase": phase})


@st.composite
def _capacities(draw: st.DrawFn) -> Manifest:
    name = draw(st.sampled_from(("here", "there")))
    topology = {"matchLabels": {make.ZONE: "a"} if name == "here" else {}}
    return named(
        "storage.k8s.io/v1",
        "CSIStorageCapacity",
        name,
        "default",
        storageClassName=MEASURED,
        nodeTopology=topology,
        capacity=draw(st.sampled_from(("1Mi", "5Gi"))),
    )


@st.composite
def _attachments(draw: st.DrawFn) -> Manifest:
    number = draw(st.sampled_from((0, 1, 2, 3, 10, 20, 30, 40)))
    node_name = draw(st.sampled_from(NODES[:3]))
    return named(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        f"a{number}-{node_name}",
        spec={"attacher": DRIVER, "nodeName": node_name, "source": {"persistentVolumeName": f"v{number}"}},
    )


def _csi_driver(has_capacity: bool) -> Manifest:
    spec = {"storageCapacity": has_capacity}
    return named("storage.k8s.io/v1", "CSIDriver", OTHER_DRIVER, spec=spec)


# -- devices -----------------------------------------------------------------------------------------------------------

DEVICE_API = "resource.k8s.io/v1"
GPUS = "gpus.example.com"


@st.composite
def _slices(draw: st.DrawFn, name: str) -> Manifest:
    attributes = {"size": {"int": draw(st.integers(1, 2))}} if draw(st.integers(0, 9)) else {}
    devices = [{"name": f"d{i}", "attributes": attributes} for i in range(draw(st.integers(1, 3)))]
    pool = {"name": name, "generation": draw(st.integers(1, 2)), "resourceSliceCount": 1}
    spec: Manifest = {"driver": GPUS, "pool": pool, "devices": devices}
    if name == "afar":
        spec["allNodes"] = True
    else:
        spec["nodeName"] = name
    return named(DEVICE_API, "ResourceSlice", name, spec=spec)


def device_class(expression: str) -> Manifest:
    return named(DEVICE_API, "DeviceClass", "gpu", spec={"selectors": [{"cel": {"expression": expression}}]})


_EXPRESSIONS = (f'device.driver == "{GPUS}"', f'device.attributes["{GPUS}"].size > 1', "true")


def device_requests(wanted: str) -> Manifest:
    one = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    two = {**one, "count": 2}
    if wanted == "either":
        return {
            "devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "b", **two}, {"name": "a", **one}]}]}
        }
    every = {"deviceClassName": "gpu", "allocationMode": "All"}
    return {"devices": {"requests": [{"name": "r", "exactly": {"one": one, "two": two, "all": every}[wanted]}]}}


_WANTED = st.sampled_from(("one", "one", "two", "either", "all"))


@st.composite
def _shared_device_claims(draw: st.DrawFn, number: int) -> Manifest:
    return named(DEVICE_API, "ResourceClaim", f"shared{number}", "default", spec=device_requests(draw(_WANTED)))


# -- pods --------------------------------------------------------------------------------------------------------------


@st.composite
def _kinds(draw: st.DrawFn, focus: str) -> Manifest:
    """What pods of a kind have in common."""
    volumes = draw(st.sampled_from(_VOLUMES_OF_PODS[focus]))
    devices = draw(st.sampled_from(("", "", "template", "shared") if volumes else ("template", "template", "shared")))
    spread = [make.spread(make.ZONE, labels={"app": "web"})] if draw(st.integers(0, 5)) == 0 else None
    return {
        "volumes": volumes,
        "devices": "" if focus == "limits" else devices,
        "is_late": draw(st.booleans()),
        "class": LATE if focus == "limits" else draw(st.sampled_from((LATE, LATE, MEASURED, LOCAL))),
        "wanted": draw(_WANTED),
        "priority": draw(st.sampled_from((0, 0, 0, 10))),
        "spread": spread,
    }


_OWN, _OWN_TWICE = ("own",), ("own", "own")
_VOLUMES_OF_PODS: dict[str, tuple[tuple[str, ...], ...]] = {
    "any": (_OWN, _OWN, _OWN_TWICE, ("any",), ("own", "any"), ("ephemeral",), ("disk",), ("own", "disk"), ()),
    "limits": (_OWN, _OWN, _OWN, _OWN_TWICE, ("ephemeral",)),
    "devices": ((),),
}


@st.composite
def _copies(draw: st.DrawFn, kind: Manifest, number: int) -> list[Manifest]:
    """One more pod of a kind, and the claims that are made for it."""
    name = f"p{number}"
    made: list[Manifest] = []
    volumes: list[Manifest] = []
    for at, source in enumerate(kind["volumes"]):
        if source == "own":
            claim = draw(_claims(10 * number + at))
            if kind["is_late"] and draw(st.integers(0, 5)):
                claim["spec"].update(storageClassName=kind["class"], volumeName="")
                claim["metadata"] = {key: claim["metadata"][key] for key in ("name", "namespace", "uid")}
                claim["status"] = {"phase": "Pending"}
            elif draw(st.integers(0, 5)):
                claim["spec"]["volumeName"] = f"v{10 * number + at}"
                claim["metadata"]["annotations"] = {BIND_COMPLETED_ANNOTATION: "yes"}
                made.append(draw(_volumes(10 * number + at)))
            made.append(claim)
            volumes.append({"name": f"w{at}", "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}})
        elif source == "any":
            volumes.append({"name": f"w{at}", "persistentVolumeClaim": {"claimName": f"c{draw(_SMALL)}"}})
        elif source == "disk":
            volumes.append({"name": f"w{at}", "awsElasticBlockStore": {"volumeID": "vol-1"}})
        else:
            claim = draw(_claims(10 * number + at))
            owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True}
            owners = [owner] if draw(st.integers(0, 5)) else []
            claim["metadata"].update(name=f"{name}-w{at}", ownerReferences=owners)
            made.append(claim)
            volumes.append({"name": f"w{at}", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}})
    spec: Manifest = {"volumes": volumes, "priority": kind["priority"]}
    if kind["spread"] is not None:
        spec["topologySpreadConstraints"] = kind["spread"]
    status: Manifest = {}
    if kind["devices"] == "template":
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True}
        claim = named(
            DEVICE_API,
            "ResourceClaim",
            f"{name}-gpu",
            "default",
            metadata={"ownerReferences": [owner]},
            spec=device_requests(kind["wanted"]),
        )
        made.append(claim)
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
        status["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]
    elif kind["devices"] == "shared":
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": f"shared{draw(_SMALL)}"}]
    if draw(st.integers(0, 11)) == 0:
        spec["nodeName"] = draw(st.sampled_from(NODES))
    elif draw(st.integers(0, 9)) == 0:
        status["nominatedNodeName"] = draw(st.sampled_from(NODES))
    pod = make.pod(name, cpu=1, labels={"app": "web"}, spec=spec)
    pod["metadata"]["uid"] = f"uid-{name}"
    pod["status"] = {**pod.get("status", {}), **status}
    return [*draw(st.permutations(made)), pod] if draw(_SMALL) == 0 else [*made, pod]


# -- histories ---------------------------------------------------------------------------------------------------------


@st.composite
def _others(draw: st.DrawFn, focus: str) -> Manifest:
    """Anything but pods."""
    name, number = draw(st.sampled_from(NODES)), draw(_SMALL)
    kinds: dict[str, tuple[st.SearchStrategy[Manifest], ...]] = {
        "limits": (
            _csi_nodes(name, is_limited=True),
            _attachments(),
            _attachments(),
            _claims(10 * number),
            _volumes(10 * number),
            _nodes(name),
        ),
        "devices": (
            _slices(name),
            _slices(name),
            _slices(name),
            _slices("afar") if number == 0 else _slices(name),
            st.builds(device_class, st.sampled_from(_EXPRESSIONS)),
            _shared_device_claims(number),
            _nodes(name),
        ),
    }
    kinds["any"] = (
        *kinds["limits"],
        *kinds["devices"],
        _csi_nodes(name),
        _storage_classes(draw(st.sampled_from(CLASSES))),
        _volumes(number),
        _claims(number),
        _capacities(),
        st.builds(_csi_driver, st.booleans()),
    )
    return draw(draw(st.sampled_from(kinds[focus])))


@st.composite
def histories(draw: st.DrawFn, focus: str = "any") -> list[Step]:
    """Nodes and what there is on them, then pods of a few kinds in many copies, between which things change: anything,
    or with a focus what counts for the limits of attached volumes, or for devices."""
    names = NODES[: draw(st.integers(2, 3 if focus == "limits" else len(NODES)))]
    history: list[Step] = [("put", draw(_nodes(name))) for name in names]
    history += [("put", draw(_csi_nodes(name, is_limited=focus == "limits"))) for name in names]
    history += [("put", draw(_storage_classes(name))) for name in CLASSES]
    history += [("put", _csi_driver(True)), ("put", draw(_capacities()))]
    for number in range(4):
        claim = draw(_claims(number))
        claim["spec"]["volumeName"] = f"v{number}"
        claim["metadata"]["annotations"] = {BIND_COMPLETED_ANNOTATION: "yes"}
        history += [("put", claim), ("put", draw(_volumes(number)))]
        history.append(("put", draw(_shared_device_claims(number))))
    history += [("put", draw(_others(focus))) for _ in range(draw(st.integers(0, 5)))]
    history.append(("put", device_class(_EXPRESSIONS[0])))
    history += [("put", draw(_slices(name))) for name in names]
    kinds = [draw(_kinds(focus)) for _ in range(draw(st.integers(1, 2)))]
    for number in range(1, draw(st.integers(8, 18))):
        step = draw(st.integers(0, 11))
        if step <= 1:
            history.append((draw(st.sampled_from(("delete running", "free devices"))), {}))
        elif step <= 3:
            history.append((draw(st.sampled_from(("put", "put", "delete"))), draw(_others(focus))))
        elif step == 4:
            history.append(("bind volumes", {}))
        else:
            history += [("put", made) for made in draw(_copies(draw(st.sampled_from(kinds)), number))]
            history.append((draw(st.sampled_from(("run", "run", "decide"))), {}))
    return history


class HistoryWorld(World):
    def decide(self) -> None:
        """Decides for all pods that are ready, while nothing that it asks for is done yet."""
        while self.loop.schedule_one(self.now_s):
            pass

    def free_devices(self) -> None:
        """What the claim controller does for claims whose pods are gone."""
        for claim in list(self.objects.of(ResourceClaim).values()):
            users = tuple(user for user in claim.status.reserved_for or () if f"default/{user.name}" in self.pods)
            if claim.status.reserved_for and not users:
                if claim.metadata.owner_references:
                    self.objects.remove(claim)
                else:
                    self.objects.write(claim, status=ResourceClaimStatus())

    def bind_volumes(self) -> None:
        """What the volume controller and provisioners do for claims that the scheduler decided on."""
        for claim in list(self.objects.of(PersistentVolumeClaim).values()):
            if is_fully_bound(claim):
                continue
            volume = self._volume_for(claim)
            if volume is not None:
                self.objects.write(volume, status=replace(volume.status, phase="Bound"))
                annotations = {**(claim.metadata.annotations or {}), BIND_COMPLETED_ANNOTATION: "yes"}
                self.objects.write(
                    claim,
                    metadata=replace(claim.metadata, annotations=annotations),
                    spec=replace(claim.spec, volume_name=volume.name),
                    status=replace(claim.status, phase="Bound"),
                )

    def _volume_for(self, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        for volume in self.objects.of(PersistentVolume).values():
            reference = volume.spec.claim_ref
            if reference is not None and reference.uid and reference.uid == claim.metadata.uid:
                return volume
        storage_class = self.objects.find(StorageClass, claim.spec.storage_class_name or "")
        if storage_class is None or SELECTED_NODE_ANNOTATION not in (claim.metadata.annotations or {}):
            return None
        (made,) = manifests.from_dicts([named("v1", "PersistentVolume", f"made-{claim.name}", spec={})]).objects
        assert isinstance(made, PersistentVolume)
        spec = replace(
            made.spec,
            claim_ref=reference_to(claim),
            storage_class_name=storage_class.name,
            csi=CSIPersistentVolumeSource(driver=storage_class.provisioner, volume_handle=made.name),
        )
        return self.objects.write(made, spec=spec)


def outcome(history: list[Step], *, keeps_classes: bool) -> dict[str, Any]:
    world = HistoryWorld(build_loop(default(), Seeded(1), keeps_classes=keeps_classes))
    for verb, manifest in history:
        if verb == "delete running":
            running = sorted(key for key, pod in world.pods.items() if pod.spec.node_name)
            if running:
                world.delete(world.pods[running[0]])
        elif verb == "bind volumes":
            world.bind_volumes()
        elif verb == "free devices":
            world.free_devices()
        elif verb == "decide":
            world.decide()
        elif verb == "run":
            world.run(for_s=1)
        else:
            for item in manifests.from_dicts([manifest]).objects:
                world.add(item) if verb == "put" else world.delete(item)
    for _ in range(3):
        world.run(for_s=30)
        world.bind_volumes()
    world.run(for_s=700)
    kinds = (PersistentVolume, PersistentVolumeClaim, ResourceClaim)
    return {
        "bound": world.bound,
        "evicted": world.evicted,
        "notes": [(event.pod, event.reason, event.note) for event in world.events],
        "objects": [to_builtins(item) for kind in kinds for item in world.objects.of(kind).values()],
        "by class": sum(scheduler.n_decided_by_class for scheduler in world.loop.schedulers.values()),
    }
