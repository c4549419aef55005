"""How the records of reports begin, what they have, and that the page about them tells all of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kubesched
from kubesched.cli.main import main
from kubesched.planning.growth import growth
from kubesched.planning.report_schemas import KINDS, PAGE, page, schema_of, schemas

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
MACHINES = EXAMPLES / "plan" / "catalogue.yaml"
WORLD, OUTAGE = EXAMPLES / "consolidate", EXAMPLES / "outage"

REPORTS: dict[str, Callable[[], Any]] = {
    "capacity": lambda: kubesched.capacity(OUTAGE, shapes=["500m/1Gi"], by=["zone"], seeds=2),
    "capacity of a workload": lambda: kubesched.capacity(OUTAGE, every=True),
    "capacity of an application": lambda: kubesched.capacity(WORLD, app=[OUTAGE / "workload.yaml"]),
    "growth": lambda: growth(kubesched.world(OUTAGE)),
    "plan": lambda: kubesched.plan(OUTAGE, MACHINES, time_limit_s=5),
    "consolidation": lambda: kubesched.consolidate(
        WORLD, MACHINES, policy=["best", "karpenter"], delete_emptydir_data=True
    ),
    "outage": lambda: kubesched.outage(OUTAGE),
    "outages at random": lambda: kubesched.outage(OUTAGE, random=2, trials=3),
    "upgrade": lambda: kubesched.upgrade([WORLD, EXAMPLES / "upgrade"], preset="aks", find_surge=True),
    "optimality": lambda: kubesched.optimal(OUTAGE, MACHINES, time_limit_s=5),
    "comparison": lambda: kubesched.compare(OUTAGE, {"base": {}, "small": {"resize": "cpu*0.5"}}, seeds=2),
    "check": lambda: kubesched.check(EXAMPLES / "check" / "check.yaml"),
}


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}


def misfits(value: Any, schema: dict[str, Any], path: str = "") -> list[str]:
    """A validator for what these schemas use; besides, no field may be one that they do not name."""
    if "const" in schema:
        return [] if value == schema["const"] else [f"{path}: {value!r}"]
    kinds = schema.get("type")
    allowed = [kinds] if isinstance(kinds, str) else kinds or list(_TYPES)
    if not any(isinstance(value, _TYPES[one]) and (one == "boolean" or not isinstance(value, bool)) for one in allowed):
        return [f"{path}: {type(value).__name__} is not {allowed}"]
    found: list[str] = []
    if isinstance(value, list | tuple) and "items" in schema:
        found += [text for item in value for text in misfits(item, schema["items"], f"{path}[]")]
    if isinstance(value, dict) and "properties" in schema:
        found += [f"{path}.{name} lacks" for name in schema["required"] if name not in value]
        for name, item in value.items():
            known = schema["properties"].get(name)
            found += [f"{path}.{name}: not told"] if known is None else misfits(item, known, f"{path}.{name}")
    elif isinstance(value, dict) and "additionalProperties" in schema:
        found += [
            text for item in value.values() for text in misfits(item, schema["additionalProperties"], f"{path}{{}}")
        ]
    return sorted(set(found))


@pytest.mark.parametrize("name", REPORTS)
def test_records_are_as_the_schemas_say(name: str) -> None:
    report = REPORTS[name]()
    record = json.loads(json.dumps(report.to_dict()))
    assert record["kind"] == type(report).__name__
    assert misfits(record, schema_of(record["kind"])) == []
    assert len(report.inputs_hash) == 16
    assert record["inputs"] == report.inputs_hash
    assert record["assumptions"] == list(report.assumptions)
    assert str(report).startswith(report.headline[:20])
    assert "<html" in report.to_html()
    assert all(len(found) >= 0 for found in report.tables.values())


def test_a_dry_run_has_one_too() -> None:
    result = CliRunner().invoke(main, ["consolidate", "-f", str(WORLD), "--node", "large-a", "-o", "json"])
    assert misfits(json.loads(result.stdout), schema_of("DryRunReport")) == []


@pytest.mark.parametrize("name", ["capacity", "growth", "consolidation", "outage", "comparison", "check", "upgrade"])
def test_the_same_question_has_the_same_hash_and_another_question_another(name: str) -> None:
    assert REPORTS[name]().inputs_hash == REPORTS[name]().inputs_hash
    assert len({REPORTS[one]().inputs_hash for one in (name, "outages at random")}) == 2


def test_other_objects_seeds_and_configurations_have_other_hashes() -> None:
    packed = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 50,
    }
    asked: list[dict[str, Any]] = [{}, {"seed": 1}, {"config": packed}, {"every": "node"}, {"keep": ["1x1/1Gi"]}]
    hashes = [kubesched.outage(OUTAGE, **options).inputs_hash for options in asked]
    assert len({*hashes, kubesched.outage(WORLD).inputs_hash}) == len(asked) + 1


def test_the_page_tells_all_of_it() -> None:
    assert (ROOT / PAGE).read_text() == page()
    assert (ROOT / "docs/reference/report-schemas.json").read_text() == schemas()
    assert all(kind in page() for kind in KINDS)


def _fields_of(schema: dict[str, Any]) -> list[str]:
    inner = [
        *schema.get("properties", {}).values(),
        *(schema[key] for key in ("items", "additionalProperties") if key in schema),
    ]
    return [*schema.get("properties", {}), *(name for one in inner for name in _fields_of(one))]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_fields_are_spelled_as_in_kubernetes(kind: str) -> None:
    assert [name for name in _fields_of(schema_of(kind)) if "_" in name or name[0].isupper()] == []
