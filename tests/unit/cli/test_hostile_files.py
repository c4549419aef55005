"""Files that are made to break what reads them: one line with file, object and field, exit code 2, no traceback."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubesched.cli.main import main
from kubesched.k8s import loaded_cluster as files
from kubesched.simulator import loading
from kubesched.testing import make

NODE = b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"4","pods":"110"}}}'
BOMB = b"a: &a [1,1,1,1,1,1,1,1,1]\n" + b"".join(
    b"%c: &%c [%b]\n" % (sign + 1, sign + 1, b",".join([b"*%c" % sign] * 9)) for sign in range(ord("a"), ord("k"))
)
TEMPLATE = b"template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}"


def pod(rest: bytes) -> bytes:
    return b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"%b' % rest


def workload(kind: bytes, spec: bytes) -> bytes:
    group = b"batch/v1" if b"Job" in kind else b"apps/v1"
    return b"apiVersion: %b\nkind: %b\nmetadata: {name: w}\nspec: {%b}\n" % (group, kind, spec)


def refused(result: Result) -> str:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("error: ")
    return result.stderr.removeprefix("error: ")


FOR_BOTH = [
    pytest.param(b"[" * 200_000, "exceeded max depth of 500", id="200,000 nested lists"),
    pytest.param(b"- " * 200_000, "exceeded max depth of 500", id="200,000 nested blocks"),
    pytest.param(pod(b'},"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "nested too deeply", id="nested JSON"),
    pytest.param(BOMB, "document contains excessive aliasing", id="a bomb of aliases"),
    pytest.param(BOMB.replace(b"[*", b"{<<: [*").replace(b"]\n", b"]}\n"), "line", id="a bomb of merge keys"),
    pytest.param(b"a: &a [*a]", "anchor 'a' value contains itself", id="a list in itself"),
    pytest.param(pod(b'},"spec":{"priority":%b}}' % (b"9" * 6000)), "Pod p: spec.priority: ", id="6,000 digits"),
    pytest.param(pod(b'},"spec":{"priority":1e400}}'), "Pod p: spec.priority: number out of range", id="1e400"),
    pytest.param(b"a: " + b"9" * 6000, "a number has more than 4,300 digits", id="6,000 digits in YAML"),
    pytest.param(b'{"apiVersion":"v1","kind":"List","items":[null]}', "items[0]: expected object, got null", id="null"),
    pytest.param(b'{"apiVersion":"v1","kind":"List","items":["x"]}', "items[0]: expected object, got str", id="text"),
    pytest.param(
        b'{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"PodList","items":7}]}',
        "items[0]: items: expected array | null, got int",
        id="a list that is none in a list",
    ),
    pytest.param(b'{"apiVersion":"v1","kind":"Pod","metadata":[]}', "Pod: metadata: expected object", id="metadata"),
    pytest.param(pod(b',"labels":{"a":1}}}'), "Pod p: metadata.labels.a: expected str, got int", id="labels"),
    pytest.param(pod(b',"labels":{"a":"\xff"}}}'), "line 1: not UTF-8", id="no UTF-8"),
    pytest.param(b"\0" * 100_000, "not a text file: it contains NUL bytes", id="zeros"),
    pytest.param(b"!!python/object/apply:os.system [ls]", "could not determine a constructor", id="a tag that runs"),
    pytest.param(b"apiVersion: v1\nkind: Pod\nmetadata: {? [a] : b}", "found unhashable key", id="a list as a key"),
    pytest.param(
        b"apiVersion: v1\nkind: Pod\nmetadata: !!set {name}", "metadata.name: expected str, got null", id="a set"
    ),
    pytest.param(
        pod(b'},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":true}}}]}}'),
        "Pod p: spec.containers[0].resources.requests.cpu: expected int | float | str, got bool",
        id="a quantity that is true",
    ),
]


@pytest.mark.parametrize("command", ["explain", "simulate"])
@pytest.mark.parametrize(("content", "says"), FOR_BOTH)
def test_hostile_files_are_refused_in_one_line(command: str, content: bytes, says: str, tmp_path: Path) -> None:
    node, hostile = tmp_path / "node.json", tmp_path / "hostile"
    node.write_bytes(NODE)
    hostile.write_bytes(content)
    words = ["p"] if command == "explain" else []
    told = refused(CliRunner().invoke(main, [command, *words, "-f", str(node), "-f", str(hostile)]))
    assert told.startswith(f"{hostile}: ")
    assert says in told


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(
            workload(b"StatefulSet", b"replicas: 99999999999, selector: {matchLabels: {a: b}}, " + TEMPLATE),
            "StatefulSet w: spec.replicas: expected int <= 2147483647",
            id="more replicas than there can be",
        ),
        pytest.param(
            workload(b"CronJob", b"schedule: '%b * * * *', jobTemplate: {spec: {%b}}" % (b"9" * 5000, TEMPLATE)),
            "CronJob default/w: spec: schedule ",
            id="a cron field of 5,000 digits",
        ),
        pytest.param(
            workload(b"CronJob", b"schedule: '*/%b * * * *', jobTemplate: {spec: {%b}}" % (b"9" * 5000, TEMPLATE)),
            "CronJob default/w: spec: schedule ",
            id="a cron step of 5,000 digits",
        ),
        pytest.param(
            workload(
                b"Deployment",
                b"strategy: {rollingUpdate: {maxSurge: '%b%%'}}, selector: {matchLabels: {a: b}}, " % (b"9" * 5000)
                + TEMPLATE,
            ),
            "Deployment default/w: spec.strategy.rollingUpdate: invalid value",
            id="a share of 5,000 digits",
        ),
        pytest.param(
            pod(
                b',"annotations":{"kubesched.dev/duration":"%bs"}},"spec":{"containers":[{"name":"c"}]}}'
                % (b"9" * 5000)
            ),
            "Pod default/p: metadata.annotations: ",
            id="a duration of 5,000 digits",
        ),
    ],
)
def test_workloads_with_numbers_that_nobody_can_mean_are_refused(content: bytes, says: str, tmp_path: Path) -> None:
    hostile = tmp_path / "hostile.yaml"
    hostile.write_bytes(content)
    told = refused(CliRunner().invoke(main, ["simulate", "-f", str(hostile)]))
    assert told.startswith(f"{hostile}: {says}")
    assert len(told) < 1000


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(b"Deployment replicas: 1000000000, selector: {matchLabels: {a: b}}, ", id="a billion replicas"),
        pytest.param(b"Job parallelism: 2000000000, ", id="a job of billions"),
    ],
)
def test_workloads_that_no_memory_holds_are_told_by_their_number(hostile: bytes, tmp_path: Path) -> None:
    kind, _, spec = hostile.partition(b" ")
    node, file = tmp_path / "node.json", tmp_path / "hostile.yaml"
    node.write_bytes(NODE)
    file.write_bytes(workload(kind, spec + TEMPLATE))
    result = CliRunner().invoke(main, ["simulate", "-f", str(node), "-f", str(file), "-o", "json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["summary"]["pods"] == int(hostile.split()[2].strip(b","))
    assert len(told["pods"]) < 3_000


def test_more_pods_than_a_simulation_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "MOST_PODS", 2)
    pods = [make.pod(f"p{number}") for number in range(3)]
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    told = refused(CliRunner().invoke(main, ["simulate", "-f", str(file)]))
    assert told == f"{file}: Pod default/p2: a simulation has at most 2 pods\n"


def test_more_nodes_than_a_simulation_has(tmp_path: Path) -> None:
    batch = {"count": 10**9, "template": {"metadata": {"name": "n"}}}
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(scenario({"at": "1m", "addNodes": batch})))
    told = refused(CliRunner().invoke(main, ["simulate", "-f", str(file)]))
    assert told.startswith(f"{file}: Scenario hostile: events[0].addNodes.count: 1,000,000,000 nodes")


def scenario(event: object) -> dict[str, object]:
    return {
        "apiVersion": "kubesched.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "hostile"},
        "events": [event],
    }


@pytest.fixture
def endless_pipe(tmp_path: Path) -> Iterator[Path]:
    """Whoever reads it gets more, until they hang up."""
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write() -> None:
        try:
            with path.open("wb", buffering=0) as pipe:
                while True:
                    pipe.write(b"# more\n" * 10_000)
        except BrokenPipeError:
            pass

    writing = threading.Thread(target=write)
    writing.start()
    yield path
    writing.join()


@pytest.mark.parametrize("command", [["explain", "p", "-f"], ["simulate", "-f"]])
def test_an_endless_file_is_not_read_to_its_end(
    command: list[str], endless_pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)
    told = refused(CliRunner().invoke(main, [*command, str(endless_pipe)]))
    assert told == f"{endless_pipe}: larger than 1 MiB\n"


def test_a_device_of_zeros_is_not_read_to_its_end() -> None:
    told = refused(CliRunner().invoke(main, ["explain", "p", "-f", "/dev/zero"]))
    assert told == "/dev/zero: not a text file: it contains NUL bytes\n"


def test_a_configuration_that_is_hostile_is_one_line(tmp_path: Path) -> None:
    for content, says in (
        (b"- " * 200_000, "exceeded max depth"),
        (BOMB, "excessive aliasing"),
        (b"a: " + b"9" * 6000, "a number has more than 4,300 digits"),
        (b"\0" * 5000, "not a text"),
    ):
        path = tmp_path / "config.yaml"
        path.write_bytes(content)
        result = CliRunner().invoke(main, ["config", "validate", str(path)])
        assert (result.exit_code != 0, result.stderr.count("\n"), says in result.stderr) == (True, 1, True)
