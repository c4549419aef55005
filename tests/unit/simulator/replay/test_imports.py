"""Recordings from what other tools wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from kubesched.cli.main import main
from kubesched.k8s.model.core import Pod
from kubesched.simulator.recording.imports import ImportedTraceError, imported
from kubesched.simulator.recording.reader import BoundSeen, ObjectGone, ObjectSeen, Recorded


def _pod(name: str, node: str = "", at: str = "2026-01-01T00:00:00Z", **status: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    if node:
        spec["nodeName"] = node
        status["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}]
    metadata = {"name": name, "namespace": "shop", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _told(events: list[Recorded]) -> list[tuple[str, str, float]]:
    begin_s = events[0].at_s
    found = []
    for event in events:
        if isinstance(event, ObjectSeen | ObjectGone):
            found.append((type(event).__name__, event.item.name, event.at_s - begin_s))
        elif isinstance(event, BoundSeen):
            found.append(("BoundSeen", f"{event.pod} {event.seen.node}", event.at_s - begin_s))
    return found


WATCHED = [
    ("ADDED", _pod("a")),
    ("MODIFIED", _pod("a", "n1", "2026-01-01T00:00:05Z")),
    ("DELETED", _pod("a", "n1", "2026-01-01T00:00:05Z")),
]
EXPECTED = [
    ("ObjectSeen", "a", 0.0),
    ("BoundSeen", "shop/a n1", 5.0),
    ("ObjectSeen", "a", 5.0),
]


def test_what_kubectl_prints_of_a_watch() -> None:
    text = "\n".join(json.dumps({"type": kind, "object": body}, indent=4) for kind, body in WATCHED)
    assert _told(imported([("watch.json", text.encode())])) == [*EXPECTED, ("ObjectGone", "a", 5.0)]


def test_the_same_without_the_kind_of_event() -> None:
    text = "".join(json.dumps(body) for _, body in WATCHED[:2])
    assert _told(imported([("watch.json", text.encode())])) == EXPECTED


def test_the_record_of_kube_scheduler_simulator() -> None:
    names = {"ADDED": "Add", "MODIFIED": "Update", "DELETED": "Delete"}
    lines = [
        json.dumps({"time": f"2026-01-01T00:00:{second:02d}.5Z", "event": names[kind], "resource": body})
        for second, (kind, body) in zip((0, 5, 9), WATCHED, strict=True)
    ]
    assert _told(imported([("record.jsonl", "\n".join(lines).encode())])) == [*EXPECTED, ("ObjectGone", "a", 9.0)]


def test_kube_scheduler_simulator_tells_of_deletions_by_name_alone() -> None:
    gone = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}}
    lines = [
        json.dumps({"time": "2026-01-01T09:00:00.123456789+09:00", "event": "Add", "resource": _pod("a")}),
        json.dumps({"time": "2026-01-01T00:00:02.5Z", "event": "Delete", "resource": gone}),
        json.dumps({"time": "2026-01-01T00:00:03.5Z", "event": "Add", "resource": _pod("a")}),
        json.dumps({"time": "2026-01-01T00:00:04.5Z", "event": "Update", "resource": _pod("a", "n1")}),
    ]
    told = [(what, name) for what, name, _ in _told(imported([("record.jsonl", "\n".join(lines).encode())]))]
    assert told == [
        ("ObjectSeen", "a"),
        ("ObjectGone", "a"),
        ("ObjectSeen", "a"),
        ("BoundSeen", "shop/a n1"),
        ("ObjectSeen", "a"),
    ]


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
}


@pytest.mark.parametrize(
    "more",
    [
        {
            "version": 2,
            "index": {},
            "pod_lifecycles": {("apps/v1.Deployment", "shop/web"): {17: [{"start_ts": 110, "end_ts": 150}]}},
        },
        {
            "version": 3,
            "index": {"apps/v1.Deployment": {"shop/web": {100: [{"lifecycle": {"Finished": [110, 150]}}]}}},
        },
    ],
    ids=["v2", "v3"],
)
def test_a_trace_of_simkube(more: dict[str, Any]) -> None:
    events = [{"ts": 100, "applied_objs": [DEPLOYMENT], "deleted_objs": []}]
    data = msgspec.msgpack.encode({**more, "config": {}, "events": events})
    found = _told(imported([("trace", data)]))
    assert found == [("ObjectSeen", "web", 0.0), ("ObjectSeen", "web-1", 10.0), ("ObjectGone", "web-1", 50.0)]


def _trace(events: list[dict[str, Any]], **more: Any) -> bytes:
    found = [{"applied_objs": [], "deleted_objs": [], **event} for event in events]
    return msgspec.msgpack.encode({"version": 2, "config": {}, "index": {}, "events": found, **more})


def test_simkube_without_lifecycles_has_as_many_pods_as_were_asked_for() -> None:
    more, less = ({**DEPLOYMENT, "spec": {"template": TEMPLATE, "replicas": n}} for n in (3, 1))
    changes = [{"ts": at, "applied_objs": [body]} for at, body in ((100, DEPLOYMENT), (110, more), (130, less))]
    data = _trace([*changes, {"ts": 150, "deleted_objs": [less]}])
    pods = [one for one in _told(imported([("trace", data)])) if one[1] != "web"]
    assert sorted(pods, key=lambda one: one[2]) == [
        ("ObjectSeen", "web-2", 0.0),
        ("ObjectSeen", "web-3", 0.0),
        ("ObjectSeen", "web-1", 10.0),
        ("ObjectGone", "web-1", 30.0),
        ("ObjectGone", "web-2", 30.0),
        ("ObjectGone", "web-3", 50.0),
    ]


def test_simkube_tracks_pods_without_owners() -> None:
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b", "labels": {"c": "d"}}}
    data = _trace(
        [{"ts": 100, "applied_objs": [{**bare, "spec": {**TEMPLATE["spec"], "nodeName": "n9"}}]}],
        config={"trackedObjects": {"v1.Pod": {"podSpecTemplatePaths": [""], "trackLifecycle": True}}},
        pod_lifecycles={("v1.Pod", "b/a"): {7: [{"Finished": [101, 120]}]}},
    )
    events = imported([("trace", data)])
    assert _told(events) == [("ObjectSeen", "a", 0.0), ("ObjectGone", "a", 19.0)]
    (seen,) = [event.item for event in events if isinstance(event, ObjectSeen)]
    assert isinstance(seen, Pod) and seen.labels == {"c": "d"} and not seen.spec.node_name


@pytest.mark.parametrize("paths", [[], ["/spec/jobTemplate/spec/template"]])
def test_simkube_finds_the_template_of_a_cron_job(paths: list[str]) -> None:
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "shop"},
        "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}},
    }
    data = _trace(
        [{"ts": 100, "applied_objs": [owner]}],
        config={"trackedObjects": {"batch/v1.CronJob": {"podSpecTemplatePaths": paths}}},
        pod_lifecycles={("batch/v1.CronJob", "shop/nightly"): {7: [{"Finished": [101, 120]}, {"Running": 161}]}},
    )
    pods = [one for one in _told(imported([("trace", data)])) if one[1] != "nightly"]
    assert pods == [
        ("ObjectSeen", "nightly-1", 1.0),
        ("ObjectGone", "nightly-1", 20.0),
        ("ObjectSeen", "nightly-2", 61.0),
    ]


NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,32000,262144,2,V100M16\nn2,8000,1024,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p1,4000,1024,1,500,V100M16|V100M32,LS,Running,10,70,10\n"
    "p2,1000,512,0,0,,BE,Running,20,40,20\n"
)


def test_the_openb_traces_can_be_replayed(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    made = tmp_path / "trace.jsonl.gz"
    sources = ["--from", str(tmp_path / "nodes.csv"), "--from", str(tmp_path / "pods.csv")]
    assert CliRunner().invoke(main, ["record", "-o", str(made), *sources]).exit_code == 0
    result = CliRunner().invoke(main, ["replay", str(made), "--closed", "-o", "json"])
    assert json.loads(result.stdout)["replayed"]["bound"] == 2


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.json", b'{"kind": "Pod"', "a.json: document 1: "),
        ("a.json", b'{"type": "ADDED", "object": {"apiVersion": "v1", "kind": "Pod"}}', "a.json: document 1: "),
        ("a.bin", b"\x81\xa1a\x01", "a.bin: neither a trace of SimKube"),
        ("a.bin", _trace([{"ts": "soon"}]), "a.bin: not a trace of SimKube v2 or v3: could not convert"),
        ("a.bin", _trace([{}]), "a.bin: not a trace of SimKube v2 or v3: ts is missing"),
        ("a.bin", _trace([{"ts": 1, "applied_objs": ["x"]}]), "a.bin: not a trace of SimKube v2 or v3: "),
        ("a.csv", NODES.replace("8000", "many").encode(), "a.csv: line 3: "),
        ("a.csv", b"name,cpu_milli\np,1\n", "a.csv: line 2: memory_mib is missing"),
        ("a.jsonl", b'{"time": "noon", "event": "Add", "resource": {}}', "a.jsonl: document 1: not an RFC 3339 time"),
        ("a.jsonl", b'{"event": "Add", "resource": {}}', "a.jsonl: document 1: time is missing"),
        ("a.txt", b"# nothing\n", "a.txt: neither a trace that is known nor manifests"),
    ],
)
def test_what_is_none_of_these(name: str, data: bytes, problem: str) -> None:
    with pytest.raises(ImportedTraceError) as caught:
        imported([(name, data)])
    assert str(caught.value).startswith(problem)


def test_nothing_is_left_of_a_conversion_that_failed(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(PODS.replace("4000", "many"))
    made = tmp_path / "trace.jsonl.gz"
    result = CliRunner().invoke(main, ["record", "-o", str(made), "--from", str(tmp_path / "pods.csv")])
    assert result.exit_code == 2 and not made.exists()
