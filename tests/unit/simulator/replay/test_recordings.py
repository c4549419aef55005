"""Recordings as files: what goes in comes out, also from files that were cut off, rotated or continued."""

from __future__ import annotations

import errno
import gzip
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect
from recorded_runs import manifests, recorded_run, write

from kubesched.k8s.dumped_kinds import READ_RESOURCES
from kubesched.k8s.model.core import Node, NodeStatus, Pod
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.storage import SELECTED_NODE_ANNOTATION
from kubesched.live.engine_recorder import recorded_form
from kubesched.live.recorder import InformerStream, write_to
from kubesched.live.saved_form import API_VERSIONS, saved_form
from kubesched.simulator.recording.anonymous import Anonymiser
from kubesched.simulator.recording.lines import STRUCTS, RecordingError, RecordingWriter, next_number, write_whole
from kubesched.simulator.recording.reader import (
    BoundSeen,
    GapSeen,
    ObjectGone,
    ObjectSeen,
    Recorded,
    RecordingReader,
    Synced,
)


@pytest.fixture(scope="module")
def events() -> list[Recorded]:
    return recorded_run(manifests(6), until_s=120.0)


def _state(events: list[Recorded]) -> dict[tuple[str, str], KubeObject]:
    found: dict[tuple[str, str], KubeObject] = {}
    for event in events:
        if isinstance(event, ObjectSeen):
            found[type(event.item).__name__, event.item.key] = event.item
        elif isinstance(event, ObjectGone):
            found.pop((type(event.item).__name__, event.item.key), None)
    return found


def _without_versions(state: dict[tuple[str, str], KubeObject]) -> set[tuple[str, str, str]]:
    return {(*key, str(getattr(item, "spec", None))) for key, item in state.items()}


def test_what_is_written_is_read(events: list[Recorded], tmp_path: Path) -> None:
    read = list(RecordingReader(write(tmp_path / "run.jsonl.gz", events)))
    assert _without_versions(_state(read)) == _without_versions(_state(events))
    bound = [(event.pod, event.seen) for event in events if isinstance(event, BoundSeen)]
    assert [(event.pod, event.seen) for event in read if isinstance(event, BoundSeen)] == bound
    assert sum(isinstance(event, Synced) for event in read) == 1


def test_the_same_events_give_the_same_bytes(events: list[Recorded], tmp_path: Path) -> None:
    first, second = (write(tmp_path / name, events).read_bytes() for name in ("a.jsonl.gz", "b.jsonl.gz"))
    assert first == second


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_off_still_opens(events: list[Recorded], tmp_path: Path, share: float) -> None:
    data = write(tmp_path / "whole.jsonl.gz", events).read_bytes()
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(data[: int(len(data) * share)])
    whole = list(RecordingReader(tmp_path / "whole.jsonl.gz"))
    read = list(RecordingReader(cut))
    assert read == whole[: len(read)]


def test_what_was_flushed_is_there_though_the_process_was_killed(events: list[Recorded], tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    writer = RecordingWriter(path, ["Pod", "Node"], events[0].at_s)
    hand_on = write_to(writer)
    half = len(events) // 2
    for event in events[:half]:
        hand_on(event)
    writer.flush(events[half].at_s)
    for event in events[half:]:
        hand_on(event)  # and never flushed
    assert _without_versions(_state(list(RecordingReader(path)))) == _without_versions(_state(events[:half]))
    writer.close()


def test_rotated_files_are_one_recording_and_each_opens_by_itself(events: list[Recorded], tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    writer = RecordingWriter(path, ["Pod", "Node"], events[0].at_s, rotate_s=30.0)
    hand_on = write_to(writer)
    for event in events:
        hand_on(event)
        writer.flush(event.at_s)
    writer.close()
    assert sorted(file.name for file in tmp_path.iterdir())[:2] == ["run-0002.jsonl.gz", "run-0003.jsonl.gz"]
    read = list(RecordingReader(path))
    assert _without_versions(_state(read)) == _without_versions(_state(events))
    assert sum(isinstance(event, BoundSeen) for event in read) == sum(isinstance(event, BoundSeen) for event in events)
    last = list(RecordingReader(tmp_path / "run-0002.jsonl.gz"))
    assert _without_versions(_state(last)) == _without_versions(_state(events))


def test_a_recorder_that_was_away_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    first = RecordingWriter(path, ["Node"], 100.0)
    hand_on = write_to(first)
    for name in ("a", "b"):
        hand_on(ObjectSeen(100.0, Node(ObjectMeta(name=name))))
    hand_on(Synced(100.0))
    first.close()
    again = RecordingWriter(path, ["Node"], 200.0, first_number=next_number(path), gap_from_s=110.0)
    hand_on = write_to(again)
    hand_on(ObjectSeen(200.0, Node(ObjectMeta(name="b"))))
    hand_on(ObjectSeen(200.0, Node(ObjectMeta(name="c"))))
    hand_on(Synced(200.0))
    again.close()
    read = list(RecordingReader(path))
    assert [event for event in read if isinstance(event, GapSeen)] == [
        GapSeen(200.0, 110.0, "", "nothing was recorded")
    ]
    assert [event.item.name for event in read if isinstance(event, ObjectGone)] == ["a"]
    assert [event.item.name for event in read if isinstance(event, ObjectSeen)] == ["a", "b", "c"]


def _planted(kind: str, spec: dict[str, Any], status: dict[str, Any] | None = None, **more: Any) -> KubeObject:
    """With secrets where no kind should have them."""
    metadata = {
        "name": "it",
        "namespace": "n",
        "uid": "u",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "planted", "planted": "x"},
        "managedFields": [{"manager": "planted", "fieldsV1": {"f:planted": {}}}],
    }
    condition = {"type": "Ready", "status": "True", "reason": "Because", "message": "planted"}
    body = {"metadata": metadata, "spec": spec, "status": {**(status or {}), "conditions": [condition]}, **more}
    return msgspec.convert(body, STRUCTS[kind])


_ENV = [
    {"name": "PLANTED", "value": "planted"},
    {"name": "PLANTED_TOO", "valueFrom": {"secretKeyRef": {"name": "planted", "key": "planted"}}},
    {"name": "PLANTED_AS_WELL", "valueFrom": {"configMapKeyRef": {"name": "planted", "key": "planted"}}},
]
_CONTAINER = {
    "name": "c",
    "image": "i",
    "command": ["planted"],
    "args": ["planted"],
    "workingDir": "/planted",
    "env": _ENV,
    "envFrom": [{"secretRef": {"name": "planted"}}],
    "lifecycle": {"preStop": {"exec": {"command": ["planted"]}}},
    "livenessProbe": {"httpGet": {"path": "/planted", "httpHeaders": [{"name": "A", "value": "planted"}]}},
    "volumeMounts": [{"name": "v", "mountPath": "/planted", "subPath": "planted"}],
}
_SECRET = {"name": "planted"}
_POD_SPEC: dict[str, Any] = {
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "ephemeralContainers": [_CONTAINER],
    "imagePullSecrets": [_SECRET],
    "serviceAccountName": "planted",
    "hostAliases": [{"ip": "1.1.1.1", "hostnames": ["planted"]}],
    "securityContext": {"sysctls": [{"name": "a", "value": "planted"}]},
    "volumes": [
        {"name": "secret", "secret": {"secretName": "planted", "items": [{"key": "planted", "path": "planted"}]}},
        {"name": "config", "configMap": {"name": "planted"}},
        {"name": "projected", "projected": {"sources": [{"secret": _SECRET}]}},
        {"name": "host", "hostPath": {"path": "/planted"}},
        {"name": "nfs", "nfs": {"server": "planted", "path": "/planted"}},
        {"name": "csi", "csi": {"driver": "d", "volumeAttributes": {"a": "planted"}, "nodePublishSecretRef": _SECRET}},
        {"name": "flex", "flexVolume": {"driver": "d", "secretRef": _SECRET, "options": {"a": "planted"}}},
        {"name": "rbd", "rbd": {"monitors": ["m"], "image": "i", "keyring": "/planted", "secretRef": _SECRET}},
        {"name": "iscsi", "iscsi": {"targetPortal": "planted", "iqn": "q", "lun": 0, "secretRef": _SECRET}},
        {"name": "azure", "azureFile": {"secretName": "planted", "shareName": "planted"}},
        {
            "name": "made",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "metadata": {"annotations": {"a": "planted"}},
                    "spec": {"dataSource": {"kind": "VolumeSnapshot", "name": "planted"}},
                }
            },
        },
    ],
}
_TEMPLATE = {"metadata": {"annotations": {"a": "planted"}}, "spec": _POD_SPEC}
_SELECTOR = {"matchLabels": {"a": "b"}}
_CSI = {
    "driver": "d",
    "volumeHandle": "h",
    "volumeAttributes": {"a": "planted"},
    "nodePublishSecretRef": _SECRET,
    "controllerExpandSecretRef": _SECRET,
}
_OPAQUE = [{"opaque": {"driver": "d", "parameters": {"a": "planted"}}}]
PLANTED = [
    _planted(
        "Pod",
        _POD_SPEC,
        {
            "message": "planted",
            "podIP": "planted",
            "hostIP": "planted",
            "containerStatuses": [{"name": "c", "image": "i", "state": {"waiting": {"message": "planted"}}}],
        },
    ),
    _planted(
        "Node",
        {"providerID": "planted", "podCIDR": "planted"},
        {
            "addresses": [{"type": "InternalIP", "address": "planted"}],
            "nodeInfo": {"machineID": "planted", "systemUUID": "planted"},
        },
    ),
    _planted("PersistentVolume", {"csi": _CSI, "mountOptions": ["planted"]}, {"message": "planted"}),
    _planted("PersistentVolumeClaim", {"dataSource": {"kind": "VolumeSnapshot", "name": "planted"}}),
    _planted("StorageClass", {}, provisioner="d", parameters={"a": "planted"}, mountOptions=["planted"]),
    _planted("Service", {"selector": {"a": "b"}, "externalName": "planted", "clusterIP": "planted"}),
    *(
        _planted(kind, {"selector": _SELECTOR, "template": _TEMPLATE})
        for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job")
    ),
    _planted("ReplicationController", {"selector": {"a": "b"}, "template": _TEMPLATE}),
    _planted("CronJob", {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": _TEMPLATE}}}),
    _planted("PodGroup", {"schedulingPolicy": {"gang": {"minCount": 1}}}),
]
_CLAIM = _planted(
    "ResourceClaim",
    {"devices": {"config": _OPAQUE}},
    {
        "allocation": {"devices": {"config": [{"source": "FromClaim", **_OPAQUE[0]}]}},
        "devices": [{"driver": "d", "pool": "p", "device": "x", "data": {"a": "planted"}}],
    },
)


@pytest.mark.parametrize("item", [*PLANTED, _CLAIM], ids=lambda item: type(item).__name__)
def test_nothing_that_scheduling_does_not_read_is_recorded(item: KubeObject, tmp_path: Path) -> None:
    events: list[Recorded] = []
    follower = InformerStream(events.append, now_s=lambda: 1.0)
    follower.put(item)
    follower.synced()
    text = gzip.decompress(write(tmp_path / "run.jsonl.gz", events).read_bytes()).decode()
    assert "planted" not in text.lower()
    assert msgspec.convert(saved_form(item), type(item)).key == item.key


@pytest.mark.parametrize("item", PLANTED, ids=lambda item: type(item).__name__)
def test_nor_is_it_in_a_journal(item: KubeObject) -> None:
    """But for the messages of pods' conditions, which the loop compares with what it would write."""
    text = msgspec.json.encode(recorded_form(item)).decode().lower()
    assert text.count("planted") == (1 if isinstance(item, Pod) else 0)


def test_secrets_and_config_maps_are_not_even_read() -> None:
    read = {resource.type.__name__ for resource in READ_RESOURCES}
    assert not {"Secret", "ConfigMap"} & {*STRUCTS, *read}


def _filled(kind: Any, path: str) -> Any:
    """A value of this type in which every text says where it is."""
    match kind:
        case inspect.StructType(fields=fields):
            return {field.encode_name: _filled(field.type, f"{path}.{field.encode_name}") for field in fields}
        case inspect.UnionType(types=types):
            texts = [one for one in types if isinstance(one, inspect.StrType)]
            others = [one for one in types if not isinstance(one, inspect.NoneType)]
            return _filled((texts or others)[0], path)
        case inspect.StrType():
            return f"planted:{path}"
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return [_filled(item, path)]
        case inspect.DictType(value_type=value):
            return {"akey": _filled(value, f"{path}{{}}")}
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return 7
        case inspect.FloatType():
            return 7.0
    return None


_NOBODYS = """
accessModes action allocatable{} allocatedResources{} allocationMode allocationTimestamp apiGroup apiVersion
attacher bindingConditions bindingFailureConditions capacity capacity{} completedIndexes completionMode
completionTime concurrencyPolicy consumedCapacity{} creationTimestamp declaredFeatures default defaultRequest{}
default{} deletionTimestamp disruptedPods{} disruptionMode distinctAttribute driver effect expression
extendedResourceName failed failedIndexes fieldPath finalizers fsType hard{} key kind lastScheduleTime
lastTransitionTime limits{} managedBy matchAttribute matchLabelKeys max maxLimitRequestRatio{} maxSurge
maxUnavailable maximumVolumeSize max{} medium min minAvailable min{} mismatchLabelKeys nodeAffinityPolicy
nodeTaintsPolicy operator overhead{} phase podFixed{} podManagementPolicy podReplacementPolicy preemptionPolicy protocol
provisioner reason requests{} resource resourceName resourceVersion restartPolicy schedule schedulerName scopeName
scopes shareID source startTime status step string succeeded succeededIndexes timeAdded timeZone topologyKey
topologyKeys type uid unhealthyPodEvictionPolicy used{} validValues value version volumeBindingMode volumeMode
whenDeleted whenScaled whenUnsatisfiable
"""
"""Fields whose texts say nothing of whose cluster it is: amounts, times, Kubernetes' own words, keys, drivers."""


@pytest.mark.parametrize("kind", sorted(STRUCTS))
def test_a_text_is_hidden_unless_it_says_nothing(kind: str) -> None:
    """Of every field of the model, those that are added some day included."""
    struct = STRUCTS[kind]
    if struct not in API_VERSIONS:
        pytest.skip("is not recorded")
    item = msgspec.convert(_filled(inspect.type_info(struct), kind), struct)
    left = re.findall(r'planted:([^"]*)"', json.dumps(Anonymiser(b"key").body(saved_form(item))))
    told = [path for path in left if path.rpartition(".")[2] not in _NOBODYS.split()]
    assert [
        path for path in told if path.split(".")[-2] not in ("drivers", "ports", "schedulingGates", "resources")
    ] == []


def test_names_that_belong_together_stay_together() -> None:
    anonymiser = Anonymiser(b"key")
    template = {"spec": {"containers": [{"name": "c", "image": "web"}], "schedulingGroup": {"podGroupName": "ring"}}}
    pod = anonymiser.body(
        {
            "metadata": {"name": "p", "namespace": "n"},
            "spec": {
                **template["spec"],
                "priorityClassName": "system-node-critical",
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "taken"}],
            },
        }
    )
    claim = anonymiser.body(
        {
            "metadata": {"name": "taken", "namespace": "n", "annotations": {SELECTED_NODE_ANNOTATION: "node-1"}},
            "spec": {
                "devices": {
                    "requests": [{"name": "gpu", "exactly": {"deviceClassName": "large"}}],
                    "constraints": [{"requests": ["gpu", "gpu/half"], "matchAttribute": "example.com/numa"}],
                }
            },
        }
    )
    node = anonymiser.body({"metadata": {"name": "node-1"}, "status": {"images": [{"names": ["web:latest"]}]}})
    devices = claim["spec"]["devices"]
    assert pod["spec"]["schedulingGroup"]["podGroupName"] == anonymiser.text("ring")
    assert pod["spec"]["priorityClassName"] == "system-node-critical"
    assert pod["spec"]["resourceClaims"][0]["resourceClaimName"] == claim["metadata"]["name"]
    assert devices["requests"][0]["exactly"]["deviceClassName"] == anonymiser.text("large")
    assert devices["constraints"][0]["requests"][0] == devices["requests"][0]["name"]
    assert devices["constraints"][0]["requests"][1] == f"{devices['requests'][0]['name']}/{anonymiser.text('half')}"
    assert claim["metadata"]["annotations"][SELECTED_NODE_ANNOTATION] == node["metadata"]["name"]
    assert pod["spec"]["containers"][0]["image"] == node["status"]["images"][0]["names"][0]


def test_a_heartbeat_is_not_recorded(tmp_path: Path) -> None:
    node = Node(ObjectMeta(name="a", resource_version="1"), status=NodeStatus(allocatable={"cpu": "1"}))
    later = Node(ObjectMeta(name="a", resource_version="2"), status=NodeStatus(allocatable={"cpu": "1"}))
    path = write(tmp_path / "run.jsonl.gz", [ObjectSeen(0.0, node), Synced(0.0), ObjectSeen(9.0, later)])
    assert len(gzip.decompress(path.read_bytes()).splitlines()) == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not a recording: it has no header"),
        ("{}\n", "not a recording"),
        ("hello\n", "not a recording"),
        ('{"apiVersion":"kubesched.dev/v1alpha1","kind":"Recording"}\n{"t":1}\n', "line 2: "),
        (
            '{"apiVersion":"kubesched.dev/v1alpha1","kind":"Recording"}\n{"t":1,"e":"M","k":"Pod","n":"a/b","o":{}}\n',
            "line 2: a change of Pod a/b, which is not there",
        ),
        (
            '{"apiVersion":"kubesched.dev/v1alpha1","kind":"Recording"}\n'
            '{"t":1,"e":"A","k":"Pod","n":"a/b","o":{"spec":{"priority":"high"}}}\n',
            "line 2: Expected `int | null`, got `str` - at `$.spec.priority`",
        ),
    ],
)
def test_what_is_no_recording_is_told_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "run.jsonl.gz"
    path.write_text(text)
    with pytest.raises(RecordingError, match=r"run\.jsonl\.gz: ") as caught:
        list(RecordingReader(path))
    assert problem in str(caught.value)


_LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=2)
_CHANGES = st.lists(st.tuples(st.sampled_from(["n1", "n2", "n3"]), st.none() | _LABELS), max_size=30)


@given(_CHANGES, st.integers(min_value=1, max_value=7))
def test_any_history_comes_back(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, dict[str, str] | None]], every: int
) -> None:
    path = tmp_path_factory.mktemp("recording") / "run.jsonl.gz"
    writer = RecordingWriter(path, ["Node"], 0.0, rotate_s=float(every))
    writer.synced(0.0)
    hand_on = write_to(writer)
    expected: dict[str, dict[str, str]] = {}
    for at, (name, labels) in enumerate(changes):
        if labels is None:
            expected.pop(name, None)
            hand_on(ObjectGone(float(at), Node(ObjectMeta(name=name))))
        else:
            expected[name] = labels
            hand_on(ObjectSeen(float(at), Node(ObjectMeta(name=name, labels=labels or None))))
        writer.flush(float(at))
    writer.close()
    state = _state(list(RecordingReader(path)))
    assert {item.name: dict(item.metadata.labels or {}) for item in state.values()} == expected


def test_lines_are_json_that_others_can_read(events: list[Recorded], tmp_path: Path) -> None:
    lines = gzip.decompress(write(tmp_path / "run.jsonl.gz", events).read_bytes()).splitlines()
    header, *rest = [json.loads(line) for line in lines]
    assert header["kind"] == "Recording" and header["segment"] == 1
    assert {line["e"] for line in rest} >= {"A", "B", "M", "S"}


class _SmallDisk:
    """Takes at most seven bytes at a time, and no more than it has room for."""

    def __init__(self, room: int) -> None:
        self.taken = b""
        self._room = room

    def write(self, data: bytes) -> int:
        part = bytes(data)[: min(7, self._room - len(self.taken))]
        if not part:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.taken += part
        return len(part)


def test_a_file_that_takes_a_part_is_given_the_rest() -> None:
    disk = _SmallDisk(100)
    write_whole(disk, bytes(range(50)))  # type: ignore[arg-type]
    assert disk.taken == bytes(range(50))
    with pytest.raises(OSError, match="No space left"):
        write_whole(disk, bytes(51))  # type: ignore[arg-type]


@pytest.mark.parametrize(("room", "is_kept"), [(0, False), (5000, True)])
def test_a_recording_ends_with_an_error_that_names_the_file_when_the_disk_is_full(
    tmp_path: Path, room: int, is_kept: bool
) -> None:
    path = tmp_path / "day.jsonl.gz"
    writer = RecordingWriter(path, ["Node"], 0.0)
    writer._file.close()
    writer._file = _SmallDisk(room)  # type: ignore[assignment]
    with pytest.raises(RecordingError, match=f"{re.escape(str(path))}: No space left on device"):
        for second in range(1000):
            writer.put("Node", f"n{second}", {"metadata": {"name": f"n{second}"}}, float(second))
            writer.flush(float(second))
    assert path.exists() == is_kept
