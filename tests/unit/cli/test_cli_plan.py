"""`kubesched plan`: what it prints and writes, exit codes, and one line for whatever is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli.main import main

ROOT = Path(__file__).parents[3]
SHOP = str(ROOT / "examples" / "plan" / "shop.yaml")
CATALOGUE = str(ROOT / "examples" / "plan" / "catalogue.yaml")
GUIDE = ROOT / "docs" / "guides" / "plan.md"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["plan", *arguments])


def test_the_guide_shows_what_is_printed() -> None:
    result = run("-f", SHOP, "--catalogue", CATALOGUE, "--from-scratch", "--time-limit", "1h")
    assert result.exit_code == 0, result.output
    assert f"```text\n{result.stdout}```" in GUIDE.read_text()


def test_the_readme_shows_what_is_printed() -> None:
    examples = ROOT / "examples" / "plan"
    arguments = ["-f", str(examples / "apps"), "--catalogue", str(examples / "aws.yaml"), "--from-scratch"]
    result = run(*arguments, "--time-limit", "1h")
    assert result.exit_code == 0, result.output
    assert f"```text\n{result.stdout}```" in (ROOT / "README.md").read_text()


def test_nodes_and_a_certificate_are_written(tmp_path: Path) -> None:
    nodes, certificate = tmp_path / "nodes.yaml", tmp_path / "certificate.json"
    arguments = ["-f", SHOP, "--catalogue", CATALOGUE, "--from-scratch", "--orders", "1"]
    result = run(*arguments, "--write", str(nodes), "--certificate", str(certificate), "-o", "json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    written = list(yaml.safe_load_all(nodes.read_text()))
    assert sorted(one["metadata"]["name"] for one in written) == sorted(one["name"] for one in report["nodes"])
    checked = run("--verify", str(certificate))
    assert (checked.exit_code, "holds" in checked.stdout) == (0, True)
    record = json.loads(certificate.read_text())
    certificate.write_text(json.dumps({**record, "cost": record["cost"] - 1}))
    assert run("--verify", str(certificate)).exit_code == 1
    assert run(*arguments, "-o", "nodes").stdout == nodes.read_text()


def test_no_plan_is_exit_code_1_and_writes_nothing(tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    resources = {"requests": {"cpu": "900"}}
    spec = {"containers": [{"name": "c", "image": "i", "resources": resources}]}
    pod.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "huge"}, "spec": spec}))
    nodes = tmp_path / "nodes.yaml"
    result = run("-f", str(pod), "--catalogue", CATALOGUE, "--from-scratch", "--write", str(nodes))
    assert result.exit_code == 1
    assert result.stdout.startswith("No plan: no machine of the catalogue can hold 1 pod of 1.")
    assert "Insufficient cpu: small/a/on-demand" in result.stdout
    assert not nodes.exists()


def catalogue_with(tmp_path: Path, offers: list[dict[str, object]]) -> str:
    shape = {"name": "m", "allocatable": {"cpu": 4, "memory": "16Gi"}, "offers": offers}
    path = tmp_path / "catalogue.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": [shape]}))
    return str(path)


def test_a_catalogue_without_prices_and_one_with_a_negative_one(tmp_path: Path) -> None:
    without = run("-f", SHOP, "--from-scratch", "--catalogue", catalogue_with(tmp_path, [{"zone": "a"}]))
    assert (without.exit_code, without.stderr.count("\n")) == (2, 1)
    assert "no offer has a price; give --prices, or --objective nodes" in without.stderr
    by_nodes = run(
        "-f", SHOP, "--from-scratch", "--objective", "nodes", "--catalogue", catalogue_with(tmp_path, [{"zone": "a"}])
    )
    assert (by_nodes.exit_code, by_nodes.stdout.split(":")[0]) == (0, "Buy 7 nodes")
    negative = run("-f", SHOP, "--from-scratch", "--catalogue", catalogue_with(tmp_path, [{"price": -1}]))
    assert (negative.exit_code, "offers[0].price: -1 is negative" in negative.stderr) == (2, True)
    free = run("-f", SHOP, "--from-scratch", "--catalogue", catalogue_with(tmp_path, [{"price": 0}]))
    assert (free.exit_code, "costs nothing" in free.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["-f", SHOP, "--catalogue", CATALOGUE], "there are no nodes; --from-scratch", id="no nodes"),
        pytest.param(
            ["-f", SHOP, "--catalogue", CATALOGUE, "--from-scratch", "--shape", "smal"],
            'no shape is called "smal" (did you mean "small"?)',
            id="unknown shape",
        ),
        pytest.param(
            ["-f", SHOP, "--catalogue", CATALOGUE, "--from-scratch", "--pool", "x"], 'no pool "x"', id="unknown pool"
        ),
        pytest.param(
            ["-f", SHOP, "--catalogue", CATALOGUE, "--from-scratch", "--spot-share", "lots"],
            '--spot-share: "lots" is not a share',
            id="share",
        ),
        pytest.param(
            ["-f", SHOP, "--catalogue", CATALOGUE, "--from-scratch", "--keep", "lots"], 'keep "lots"', id="keep"
        ),
        pytest.param(
            ["-f", SHOP, "--catalogue", CATALOGUE, "--from-scratch", "--time-limit", "soon"], "--time-limit", id="time"
        ),
        pytest.param(["-f", SHOP, "--catalogue", SHOP, "--from-scratch"], "not a catalogue", id="no catalogue"),
        pytest.param(["-f", "no-such.yaml", "--catalogue", CATALOGUE], "no-such.yaml", id="no file"),
        pytest.param(["-f", SHOP], "a catalogue is needed", id="catalogue missing"),
        pytest.param(["--catalogue", CATALOGUE], "a cluster is needed", id="cluster missing"),
        pytest.param(["--verify", SHOP], "not JSON", id="no certificate"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(arguments: list[str], problem: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert "Traceback" not in result.output


def test_a_chart_is_to_be_rendered_first(tmp_path: Path) -> None:
    (tmp_path / "Chart.yaml").write_text("name: shop\n")
    result = run("-f", str(tmp_path), "--catalogue", CATALOGUE, "--from-scratch")
    assert result.exit_code == 2
    assert f"a Helm chart; render it first: helm template {tmp_path} | kubesched" in result.stderr


def test_tables_and_markdown() -> None:
    arguments = ["-f", SHOP, "--catalogue", CATALOGUE, "--from-scratch", "--orders", "1"]
    machines = run(*arguments, "-o", "csv").stdout.splitlines()
    assert machines[0] == "shape,zone,capacity_type,pool,count,price,turn"
    nodes = run(*arguments, "-o", "csv", "--table", "nodes").stdout.splitlines()
    assert len(nodes) - 1 == sum(int(line.split(",")[4]) for line in machines[1:])
    shown = run(*arguments, "-o", "markdown").stdout
    assert shown.startswith("**Buy ") and "| shape | zone |" in shown and "nodes (" in shown


@pytest.mark.parametrize("option", ["--write", "--certificate"])
def test_a_place_that_cannot_be_written_is_told_before_the_search(option: str, tmp_path: Path) -> None:
    place = tmp_path / "none" / "file"
    result = run("-f", SHOP, "--catalogue", CATALOGUE, "--from-scratch", option, str(place))
    assert result.exit_code == 2
    assert result.stderr == f"error: {place}: directory {place.parent} does not exist\n"


def test_how_nodes_are_filled() -> None:
    report = json.loads(
        run("-f", SHOP, "--catalogue", CATALOGUE, "--from-scratch", "--fill", "in-turn", "-o", "json").stdout
    )
    assert report["answer"] == "yes"
    assert any("kubesched.dev/fill-after-1" in text for text in report["assumptions"])
    assert run("-f", SHOP, "--catalogue", CATALOGUE, "--fill", "randomly").exit_code == 2
