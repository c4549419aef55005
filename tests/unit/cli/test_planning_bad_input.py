"""Bad input to any command of planning: one line that names the file, exit code 2, nothing half-written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kubesched.cli.main import main

COMMANDS: dict[str, list[str]] = {
    "capacity": ["--shape", "1/1Gi"],
    "consolidate": [],
    "outage": [],
    "upgrade": [],
    "plan": ["--catalogue", "catalogue.json"],
    "optimal": [],
    "compare": ["--variant", "base", "--variant", "other:resize=cpu*0.9"],
    "check": [],
}
WITH_CATALOGUE = [name for name in COMMANDS if name not in ("capacity", "outage", "check")]
WITH_POOL = ["consolidate", "upgrade", "plan"]


def node(name: str = "n1", cpu: str = "4") -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "20"}
    about = {"name": name, "labels": {"topology.kubernetes.io/zone": "a", "pool": "p"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": about,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(cpu: str = "1", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    about = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {"containers": containers, **spec}}


def catalogue(*offers: dict[str, Any], **more: Any) -> dict[str, Any]:
    shape = {"name": "m", "capacity": {"cpu": 8, "memory": "16Gi", "pods": 110}, "offers": list(offers)}
    return {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "currency": "USD", "shapes": [shape], **more}


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("cluster.json", node(), pod())
    Path("catalogue.json").write_text(json.dumps(catalogue({"zone": "a", "price": 0.1})))
    return tmp_path


def write(name: str, *items: dict[str, Any]) -> None:
    Path(name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}))


def run(command: str, file: str, more: Sequence[str] = ()) -> Result:
    if command == "check":
        rule = {"name": "fits", "fits": {}}
        wanted = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Check", "cluster": {"file": file}, "checks": [rule]}
        Path("check.json").write_text(json.dumps(wanted))
        arguments = ["check", "check.json"]
    else:
        arguments = [command, "-f", file, *COMMANDS[command]]
    return CliRunner().invoke(main, [*arguments, "--report", "page.html", *more])


def the_one_line(result: Result) -> str:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert not Path("page.html").exists()
    lines = [line for line in result.stderr.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1 and lines[0].startswith("error: "), result.stderr
    return lines[0].removeprefix("error: ")


def _broken(kind: str) -> str:
    """Makes it, and gives its name."""
    match kind:
        case "missing":
            return "nowhere.json"
        case "empty":
            Path("empty.json").write_bytes(b"")
            return "empty.json"
        case "binary":
            Path("binary.json").write_bytes(bytes(range(256)) * 20)
            return "binary.json"
        case "directory without manifests":
            Path("nothing").mkdir()
            Path("nothing/README.txt").write_text("hello")
            return "nothing"
        case "chart":
            Path("chart/templates").mkdir(parents=True)
            Path("chart/Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 1.0.0\n")
            Path("chart/templates/web.yaml").write_text("kind: {{ .Values.kind }}\n")
            return "chart"
        case "half a file":
            Path("half.json").write_text(Path("cluster.json").read_text()[:-40])
            return "half.json"
        case "a quantity that is none":
            write("quantity.json", node(cpu="four"), pod())
            return "quantity.json"
        case "a pod without a name":
            write("nameless.json", node(), {**pod(), "metadata": {}})
            return "nameless.json"
        case "no nodes":
            write("no-nodes.json", pod())
            return "no-nodes.json"
    raise AssertionError(kind)


BROKEN = [
    "missing",
    "empty",
    "binary",
    "directory without manifests",
    "chart",
    "half a file",
    "a quantity that is none",
    "a pod without a name",
    "no nodes",
]


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_cluster_that_cannot_be_read(command: str, kind: str) -> None:
    name = _broken(kind)
    line = the_one_line(run(command, name))
    assert name in line or (kind == "no nodes" and command in ("plan", "compare")), line
    if kind == "chart":
        assert "helm template" in line


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "the file is empty", id="empty"),
        pytest.param("[1, 2", "neither JSON nor YAML", id="broken"),
        pytest.param(json.dumps(catalogue({"zone": "a", "price": -0.1})), "price", id="a negative price"),
        pytest.param(json.dumps(catalogue({"zone": "a", "price": "cheap"})), "price", id="a price that is none"),
        pytest.param(json.dumps({**catalogue(), "shapes": []}), "no shape", id="no shapes"),
        pytest.param(json.dumps({**catalogue(), "kind": "Catalog"}), "", id="another kind"),
        pytest.param(None, "", id="missing"),
    ],
)
@pytest.mark.parametrize("command", WITH_CATALOGUE)
def test_a_catalogue_that_cannot_be_read(command: str, text: str | None, told: str) -> None:
    if text is not None:
        Path("bad.json").write_text(text)
    line = the_one_line(run(command, "cluster.json", ["--catalogue", "bad.json"]))
    assert "bad.json" in line and told in line


def test_a_plan_of_the_least_cost_needs_prices() -> None:
    Path("catalogue.json").write_text(json.dumps(catalogue({"zone": "a"})))
    line = the_one_line(run("plan", "cluster.json"))
    assert "price" in line and "nodes" in line


@pytest.mark.parametrize("command", WITH_POOL)
def test_a_pool_that_nobody_knows(command: str) -> None:
    line = the_one_line(run(command, "cluster.json", ["--pool", "x"]))
    assert "pool" in line and "x" in line


@pytest.mark.parametrize(
    ("command", "more", "told"),
    [
        ("capacity", ["--max", "1000000"], "1,000,000 copies: from 1 to 100,000 can be tried"),
        ("capacity", ["--shape", "much"], "much"),
        ("capacity", ["--workload", "deployment/shop/none"], "deployment/shop/none"),
        ("capacity", ["--by", "planet"], "planet"),
        ("capacity", ["--nodes", "a in ("], 'nodes "a in ("'),
        ("capacity", ["--keep", "2000000x1/1Gi"], "2000000x1/1Gi"),
        ("plan", ["--shape", "none"], "none"),
        ("plan", ["--keep", "nowhere.yaml"], "nowhere.yaml"),
        ("plan", ["--write", "nowhere/nodes.yaml"], "nowhere"),
        ("plan", ["--time-limit", "soon"], "--time-limit"),
        ("upgrade", ["--to-shape", "none", "--catalogue", "catalogue.json"], "none"),
        ("consolidate", ["--policy", "mine"], "mine"),
        ("consolidate", ["--budget", "some", "--parallel", "2"], 'budget "some"'),
        ("consolidate", ["--node", "nowhere"], "nowhere"),
        ("outage", ["--fail", "zone=x"], 'zone "x"'),
        ("outage", ["--fail", "node/x"], "x"),
        ("outage", ["--every", "planet"], "planet"),
        ("compare", ["--variant", "third:config=nowhere.yaml"], "nowhere.yaml"),
        ("compare", ["--variant", "third:speed=1"], "speed=1"),
        ("compare", ["--metrics", "beauty"], "beauty"),
    ],
)
def test_a_question_that_cannot_be_asked(command: str, more: list[str], told: str) -> None:
    assert told in the_one_line(run(command, "cluster.json", more))
