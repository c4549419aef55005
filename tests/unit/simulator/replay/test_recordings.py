"""Recordings as files: what goes in comes out, also from files that were cut off, rotated or continued."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_runs import manifests, recorded_run, write

from kubesched.k8s.model.core import Node, NodeStatus, Pod
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.live.recorder import InformerStream, write_to
from kubesched.simulator.recording.lines import RecordingError
from kubesched.simulator.recording.reader import (
    BoundSeen,
    GapSeen,
    ObjectGone,
    ObjectSeen,
    Recorded,
    RecordingReader,
    Synced,
)
from kubesched.simulator.recording.writer import RecordingWriter, next_number


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


def test_nothing_that_scheduling_does_not_read_is_recorded(tmp_path: Path) -> None:
    pod = msgspec.json.decode(
        b"""{"metadata": {"name": "p", "namespace": "n", "uid": "u", "annotations": {"planted": "planted"}},
        "spec": {"containers": [{"name": "c", "image": "i", "command": ["planted"], "args": ["planted"],
        "env": [{"name": "PLANTED", "value": "planted"}]}]}, "status": {"podIP": "planted", "message": "planted"}}""",
        type=Pod,
    )
    events: list[Recorded] = []
    follower = InformerStream(events.append, now_s=lambda: 1.0)
    follower.put(pod)
    follower.synced()
    text = gzip.decompress(write(tmp_path / "run.jsonl.gz", events).read_bytes()).decode()
    assert "planted" not in text.lower()


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
