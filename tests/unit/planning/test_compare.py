"""`kubesched compare`: paired differences, verdicts, other requests."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import kubesched
from kubesched.cli.main import main
from kubesched.planning.resizing import ResizeError, read_resizing
from kubesched.planning.statistics import PairedDifference, holm

EXAMPLES = Path(__file__).parents[3] / "examples"
SCENARIO = str(EXAMPLES / "simulate")
PACKED = str(EXAMPLES / "replay" / "packed.yaml")


def test_a_variant_that_is_the_same_is_no_better_and_no_worse() -> None:
    found = kubesched.compare(SCENARIO, {"base": {}, "again": {}}, seeds=3)
    assert found["again"].headline == "again is no better and no worse"
    assert {one.verdict for one in found["again"].metrics} == {"same"}
    assert found["again"].parts is None
    assert "no chance is involved" in str(found)


def test_smaller_requests_wait_less() -> None:
    found = kubesched.compare(SCENARIO, {"base": {}, "small": {"resize": "cpu*0.5"}}, seeds=10)
    waited = found["small"].difference("waited")
    assert waited.verdict == "better" and waited.difference.mean < 0
    low, high = waited.difference.interval
    assert low <= waited.difference.mean <= high < 0
    assert found["small"].parts is not None
    with pytest.raises(kubesched.CompareError, match="is none of"):
        found["small"].difference("beauty")


def test_two_processes_give_the_same_bytes() -> None:
    asked = {"base": {}, "packed": {"config": PACKED}}
    one, two = (kubesched.compare(SCENARIO, asked, seeds=3, jobs=jobs).to_dict() for jobs in (1, 2))
    assert json.dumps(one) == json.dumps(two)


def test_the_command() -> None:
    arguments = ["compare", "-f", SCENARIO, "--variant", "base", "--variant", f"packed:config={PACKED}", "--seeds", "3"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Compared with base over 3 seeds: packed is ")
    rows = CliRunner().invoke(main, [*arguments, "-o", "csv"]).stdout.splitlines()
    assert rows[0].startswith("variant,metric,baseline") and len(rows) == 10


@pytest.mark.parametrize(
    ("variants", "problem"),
    [
        (["base"], "at least two variants"),
        (["base", "base"], "at least two variants"),
        (["base", "x:color=red"], '"color=red" is none of config=…, plugin=…, resize=…'),
        (["base", "x:config=nowhere.yaml"], "nowhere.yaml"),
        (["base", "x:resize=nowhere.csv"], "nowhere.csv"),
        (["base", "x:resize=disk*2"], "cpu*0.7"),
        (["base", ":config=x"], "a name is needed"),
    ],
)
def test_bad_variants_are_one_line(variants: list[str], problem: str) -> None:
    asked = [part for one in variants for part in ("--variant", one)]
    result = CliRunner().invoke(main, ["compare", "-f", SCENARIO, *asked])
    assert result.exit_code == 2 and problem in result.stderr and result.stderr.count("\n") == 1


def test_recommendations_of_others_are_read() -> None:
    csv = b"namespace,kind,name,container,resource,value\nshop,Deployment,web,app,cpu,200m\n"
    key = ("shop", "Deployment", "web", "app")
    assert read_resizing("a.csv", csv).wanted == {key: {"cpu": "200m"}}
    scan = {
        "object": {"namespace": "shop", "kind": "Deployment", "name": "web", "container": "app"},
        "recommended": {"requests": {"cpu": {"value": 0.2}, "memory": {"value": 1048576.0}}},
    }
    krr = json.dumps({"scans": [scan]}).encode()
    assert read_resizing("krr.json", krr).wanted == {key: {"cpu": "200m", "memory": "1048576"}}
    vpa = b"""
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web, namespace: shop}
spec: {targetRef: {kind: Deployment, name: web}}
status: {recommendation: {containerRecommendations: [{containerName: app, target: {cpu: 200m, memory: 1Mi}}]}}
"""
    assert read_resizing("vpa.yaml", vpa).wanted == {key: {"cpu": "200m", "memory": "1Mi"}}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"{", "krr"),
        (b"namespace,kind\nshop,Deployment\n", "line 2"),
        (b"namespace,kind,name,container,resource,value\na,b,c,d,cpu,lots\n", '"lots" is not an amount'),
        (b"kind: Pod\n", "neither CSV"),
    ],
)
def test_recommendations_that_cannot_be_read(data: bytes, problem: str) -> None:
    with pytest.raises(ResizeError) as caught:
        read_resizing("krr", data)
    assert problem in str(caught.value)


def test_the_interval_is_student_s() -> None:
    differences = PairedDifference((1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0))
    low, high = differences.interval
    assert (round(low, 3), round(high, 3)) == (3.334, 7.666)
    assert differences.sign_test == pytest.approx(2 / 1024)
    assert PairedDifference((0.0, 0.0)).sign_test == 1.0


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=40))
def test_the_mean_is_in_the_interval(values: list[float]) -> None:
    found = PairedDifference(tuple(values))
    low, high = found.interval
    assert low - 1e-9 <= mean(values) <= high + 1e-9
    assert 0.0 < found.sign_test <= 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_adjusting_never_makes_anything_more_certain(values: list[float]) -> None:
    adjusted = holm(values)
    assert all(p <= q <= 1.0 for p, q in zip(values, adjusted, strict=True))
    order = sorted(range(len(values)), key=values.__getitem__)
    assert [adjusted[i] for i in order] == sorted(adjusted[i] for i in order)
