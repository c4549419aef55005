"""Bad input to any command of planning: one line that names the file, exit code 2, nothing half-written."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kubesched.cli.main import main
from kubesched.cli.why import why

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
        pytest.param("[1, 2", "line 2, column 1: not YAML or JSON: did not find", id="broken"),
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


CHECK = {
    "apiVersion": "kubesched.dev/v1alpha1",
    "kind": "Check",
    "metadata": {"name": "gate"},
    "cluster": {"file": "cluster.json"},
    "change": [{"file": "change.json"}],
}


NO_CSV = b'instanceType,hourly\n"' + b"x" * 200_000 + b"\r\r"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(b"\x9b\xff,\n", "not a text file", id="binary"),
        pytest.param(NO_CSV, "not CSV: field larger than field limit", id="a field without an end"),
        pytest.param(b"a;b\n1;2\n", "line 1: no column instanceType", id="other columns"),
        pytest.param(b"instanceType,hourly\rsmall,cheap\r", 'hourly: "cheap"', id="lines of old Macs"),
    ],
)
def test_prices_that_cannot_be_read(content: bytes, told: str) -> None:
    Path("prices.csv").write_bytes(content)
    line = the_one_line(run("plan", "cluster.json", ["--prices", "prices.csv"]))
    assert line.startswith("prices.csv: ")
    assert told in line or "no price of any shape" in line


@pytest.mark.parametrize("content", [NO_CSV.replace(b"instanceType", b"namespace"), b"\x9b"])
def test_tables_of_requests_and_usage_that_cannot_be_read(content: bytes) -> None:
    Path("table.csv").write_bytes(content)
    for more in (["--variant", "third:resize=table.csv"], ["--usage", "table.csv"]):
        assert the_one_line(run("compare", "cluster.json", more)).startswith("table.csv: ")


def test_a_check_file_of_another_kind() -> None:
    write("other.json", pod())
    result = CliRunner().invoke(main, ["check", "other.json"])
    assert result.exit_code == 2
    assert result.stderr == "error: other.json: apiVersion: kubesched.dev/v1alpha1 and kind: Check are expected\n"


def test_a_certificate_that_is_not_there_is_named_once() -> None:
    result = CliRunner().invoke(main, ["plan", "--verify", "nowhere.json"])
    assert result.exit_code == 2
    assert result.stderr.count("nowhere.json") == 1


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("consolidate --budget 101%", 'budget "101%" is neither a number of nodes nor a percentage up to 100%'),
        ("consolidate -o csv --table pods", "--table pods is not in this report, which has steps, moves, kept, nodes"),
        ("consolidate --node n1 -o csv --table steps", "--table steps is not in this report, which has pods, blockers"),
        ("upgrade --preset reboot --find-surge", "no surge can be looked for: with preset reboot"),
        ("compare --variant a --variant b --metrics cost", "metric cost needs prices: a catalogue, or the annotation"),
        ("compare --variant a --variant b --seeds 3 --until-ci 1%", "--until-ci says how many seeds there are"),
        ("capacity --shapes 500m/1Gi,2/x", 'shape "2/x" is not of the form'),
        ("capacity --shapes 500m/1Gi,", 'shape "" is not of the form'),
        ("capacity --shape 1/1Gi --by zone,rack", 'no node has the label "rack"'),
    ],
)
def test_contradictory_and_impossible_questions(command: str, told: str) -> None:
    name, *rest = command.split()
    result = CliRunner().invoke(main, [name, "-f", "cluster.json", *rest])
    assert result.exit_code == 2, result.output
    assert result.stderr.count("\n") == 1
    assert told in result.stderr
    assert not result.stdout


@pytest.mark.parametrize(
    ("checks", "told"),
    [
        ([{"outage": {"every": "rack"}}], 'check.json: checks[0].outage: no node has the label "rack"'),
        ([{"fits": {}}, {"upgrade": {"preset": "azure"}}], 'check.json: checks[1].upgrade: there is no preset "azure"'),
        ([{"cost": {"atMost": "a lot"}}], 'check.json: checks[0].cost: atMost: "a lot" is neither +5% nor an amount'),
        ([{"name": "a", "fits": {}}, {"name": "a", "fits": {}}], 'checks[1].name: there is a check "a" already'),
    ],
)
def test_a_check_that_cannot_be_asked_is_named(checks: list[dict[str, Any]], told: str) -> None:
    write("change.json", pod())
    named = [{"name": f"check {n}", **one} for n, one in enumerate(checks)]
    Path("check.json").write_text(json.dumps({**CHECK, "checks": named}))
    result = CliRunner().invoke(main, ["check", "check.json"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


def test_no_first_check_is_written_for_a_cluster_without_nodes() -> None:
    write("pods.json", pod())
    result = CliRunner().invoke(main, ["check", "init", "-f", "pods.json"])
    assert (result.exit_code, result.stderr) == (2, "error: pods.json: there are no nodes\n")
    assert not Path("check.yaml").exists()


def test_the_field_of_a_catalogue_is_the_one_that_is_written() -> None:
    broken = catalogue()
    broken["shapes"][0] = {"name": "m", "allocatable": {"cpu": "many", "memory": "1Gi"}, "price": 1}
    Path("broken.json").write_text(json.dumps(broken))
    result = CliRunner().invoke(main, ["catalogue", "show", "broken.json"])
    assert result.exit_code == 2
    assert "broken.json: shape m: allocatable.cpu: " in result.stderr


def test_shapes_and_groups_may_be_lists() -> None:
    several = CliRunner().invoke(
        main, ["capacity", "-f", "cluster.json", "--shapes", "500m/1Gi,1/2Gi", "--by", "zone,pool", "-o", "csv"]
    )
    assert several.exit_code == 0, several.output
    rows = [line.split(",")[:2] for line in several.stdout.splitlines()[1:]]
    assert rows == [[pod, group] for pod in ("500m-1Gi", "1-2Gi") for group in ("all", "zone=a", "pool=p")]


@pytest.fixture
def nobody_there(monkeypatch: pytest.MonkeyPatch) -> str:
    """A kubeconfig of a server at a port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "users": [{"name": "x", "user": {}}],
    }
    Path("kubeconfig").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", "kubeconfig")
    return "kubeconfig"


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("compare", "check")])
def test_a_cluster_that_does_not_answer(command: str, nobody_there: str) -> None:
    result = CliRunner().invoke(main, [command, "--live", "--kubeconfig", nobody_there, *COMMANDS[command]])
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (4, "", 1)
    assert "cannot reach the API server" in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["explain", "shop/web"],
        ["explain"],
        ["snapshot", "-o", "dump.json"],
        ["simulate", "--live", "-f", "cluster.json"],
        ["record", "-o", "day.jsonl.gz"],
        ["shadow", "--for", "1s"],
        ["nodes", "--count", "1"],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("nobody_there")
def test_no_other_command_gets_an_answer_either(command: list[str]) -> None:
    result = CliRunner().invoke(main, command)
    assert (result.exit_code, result.stdout) == (4, "")
    assert "cannot reach the API server" in result.stderr
    assert not Path("dump.json").exists()
    with_kubectl = CliRunner().invoke(why, [])
    assert with_kubectl.exit_code == 4


def test_a_check_of_a_cluster_that_does_not_answer(nobody_there: str) -> None:
    write("change.json", pod())
    asked = {**CHECK, "cluster": {"live": "x"}, "checks": [{"name": "fits", "fits": {}}]}
    Path("check.json").write_text(json.dumps(asked))
    result = CliRunner().invoke(main, ["check", "check.json", "--kubeconfig", nobody_there])
    assert (result.exit_code, result.stdout) == (4, "")
