"""`kubesched explain` on the example, compared with stored answers as a whole, and in all forms of output and input.

To store new answers after a change that is meant: `python tests/unit/cli/test_cli_explain.py`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

import kubesched
from kubesched.cli.main import main
from kubesched.explanation.changes import ChangeKind
from kubesched.testing import make

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "explain"
CLUSTER, PENDING = EXAMPLE / "cluster.yaml", EXAMPLE / "pending.yaml"
ANSWERS = Path(__file__).parent / "answers"

STORED = [
    (pod, output)
    for pod in ("shop/web-3", "shop/report", "lab/train-2", "shop/web-4", "lab/batch-1")
    for output in ("text", "wide")
]


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["explain", *map(str, arguments)], input=stdin)


def answer_file(pod: str, output: str) -> Path:
    return ANSWERS / f"{pod.replace('/', '-')}.{output}.txt"


@pytest.mark.parametrize(("pod", "output"), STORED)
def test_the_example_is_explained_as_stored(pod: str, output: str) -> None:
    result = run(pod, "-f", CLUSTER, "-f", PENDING, "-o", output)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == answer_file(pod, output).read_text()


def test_no_answer_is_stored_that_nobody_compares() -> None:
    assert {path.name for path in ANSWERS.iterdir()} == {answer_file(*stored).name for stored in STORED}


@pytest.mark.parametrize("pod", ["shop/report", "shop/web-3"])
def test_the_guide_shows_what_is_really_printed(pod: str) -> None:
    guide = (ROOT / "docs" / "guides" / "explain.md").read_text()
    assert f"```text\n{answer_file(pod, 'text').read_text()}```" in guide


def test_the_guide_names_every_kind_of_change() -> None:
    guide = (ROOT / "docs" / "guides" / "explain.md").read_text()
    section = guide.partition("## The smallest changes")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(.+?)` \|", section, re.MULTILINE) == [kind.value for kind in ChangeKind]


def test_json_and_yaml_are_the_report() -> None:
    objects = [*yaml.safe_load_all(CLUSTER.read_text()), *filter(None, yaml.safe_load_all(PENDING.read_text()))]
    report = kubesched.explain(objects, "shop/report").report()
    as_json = run("shop/report", "-f", CLUSTER, "-f", PENDING, "-o", "json")
    as_yaml = run("shop/report", "-f", CLUSTER, "-f", PENDING, "-o", "yaml")
    assert json.loads(as_json.stdout) == report
    assert yaml.safe_load(as_yaml.stdout) == report


def test_a_pod_without_a_namespace_is_in_the_default_one(tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: []}}")
    assert run("p", "-f", CLUSTER, "-f", pod).stdout.startswith("Pod default/p fits on 2 of 5 nodes")


def _as_list() -> dict[str, object]:
    documents = [*yaml.safe_load_all(CLUSTER.read_text()), *yaml.safe_load_all(PENDING.read_text())]
    items = [item for document in documents if document for item in document.get("items", [document])]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def test_every_way_to_hand_the_objects_in_gives_the_same_answer(tmp_path: Path) -> None:
    expected = answer_file("shop/report", "text").read_text()
    dump = json.dumps(_as_list()).encode()
    (tmp_path / "dump.json").write_bytes(dump)
    (tmp_path / "marked.json").write_bytes(b"\xef\xbb\xbf" + dump)
    (tmp_path / "wide.yaml").write_bytes(CLUSTER.read_text().encode("utf-16"))
    for name, text in {"app/cluster.yaml": CLUSTER.read_text(), "app/web/pending.yml": PENDING.read_text()}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "app" / ".git").mkdir()
    (tmp_path / "app" / ".git" / "broken.yaml").write_text("{")
    ways = {
        "a directory": run("shop/report", "-f", EXAMPLE),
        "directories in a directory": run("shop/report", "-f", tmp_path / "app"),
        "a JSON list": run("shop/report", "-f", tmp_path / "dump.json"),
        "a byte order mark": run("shop/report", "-f", tmp_path / "marked.json"),
        "UTF-16, as PowerShell writes": run("shop/report", "-f", tmp_path / "wide.yaml", "-f", PENDING),
        "standard input": run("shop/report", "-f", "-", stdin=dump),
        "standard input and a file": run("shop/report", "-f", "-", "-f", PENDING, stdin=CLUSTER.read_bytes()),
    }
    assert {way: result.stdout for way, result in ways.items()} == dict.fromkeys(ways, expected)


def test_a_configuration_is_followed(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {disabled: [{name: TaintToleration}, {name: NodeUnschedulable}]}}}]\n"
    )
    result = run("shop/web-3", "-f", CLUSTER, "-f", PENDING, "--config", config)
    assert result.stdout.startswith("Pod shop/web-3 fits on 5 of 5 nodes")
    from_stdin = run("shop/web-3", "-f", CLUSTER, "-f", PENDING, "--config", "-", stdin=config.read_bytes())
    assert from_stdin.stdout == result.stdout


if __name__ == "__main__":
    ANSWERS.mkdir(exist_ok=True)
    for stored in STORED:
        answer_file(*stored).write_text(run(stored[0], "-f", CLUSTER, "-f", PENDING, "-o", stored[1]).stdout)


def test_a_pod_that_no_server_has_seen_has_the_priority_of_its_class(tmp_path: Path) -> None:
    """Else preemption would be denied to it."""
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
    new = make.pod("new", cpu=3, spec={"priorityClassName": "high"})
    del new["spec"]["priority"]
    items = [high, make.node("a"), make.pod("busy", cpu=3, on="a"), new]
    given = tmp_path / "cluster.json"
    given.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    answer = run("new", "-f", given).stdout
    assert "default/busy" in answer
    assert "Preemption would not help" not in answer
