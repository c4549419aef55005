"""`kubesched catalogue`."""

from __future__ import annotations

from pathlib import Path

import yaml
from click.testing import CliRunner

from kubesched.cli.main import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "plan" / "catalogue.yaml"
NODES = "apiVersion: v1\nkind: Node\nmetadata: {name: a-1}\nstatus: {allocatable: {cpu: 4, memory: 8Gi}}\n"


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["catalogue", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_show_begins_with_what_there_is() -> None:
    code, out, _ = run("show", str(EXAMPLE))
    assert code == 0
    assert out.startswith("5 shapes, 8 offers, 0.1 to 1.2 USD an hour\n")
    assert out.splitlines()[3].startswith("small")


def test_validate(tmp_path: Path) -> None:
    code, out, _ = run("validate", str(EXAMPLE))
    assert (code, out) == (0, f"{EXAMPLE}: valid: 5 shapes, 8 offers\n")
    wrong = tmp_path / "c.yaml"
    wrong.write_text(EXAMPLE.read_text().replace("price: 1.20", "price: -1.20"))
    assert run("validate", str(wrong)) == (2, "", f"error: {wrong}: shape gpu: offers[0].price: -1.2 is negative\n")
    assert run("validate", "missing.yaml")[0] == 2


def test_what_convert_prints_is_a_catalogue(tmp_path: Path) -> None:
    code, out, _ = run("convert", str(EXAMPLE))
    again = tmp_path / "again.yaml"
    again.write_text(out)
    assert code == 0
    assert run("convert", str(again))[1] == out


def test_derive(tmp_path: Path) -> None:
    nodes, prices = tmp_path / "nodes.yaml", tmp_path / "prices.csv"
    nodes.write_text(NODES)
    prices.write_text("instanceType,hourly\na,0.25\n")
    code, out, err = run("derive", "-f", str(nodes))
    assert (code, err) == (0, "warning: prices are not known; give them with --prices\n")
    assert yaml.safe_load(out)["shapes"][0]["name"] == "a"
    assert yaml.safe_load(run("derive", "-f", str(nodes), "--prices", str(prices))[1])["shapes"][0]["offers"] == [
        {"price": "0.25"}
    ]


def test_derive_without_nodes(tmp_path: Path) -> None:
    pods = tmp_path / "pods.yaml"
    pods.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n")
    assert run("derive", "-f", str(pods)) == (2, "", f"error: {pods}: no nodes in it\n")
