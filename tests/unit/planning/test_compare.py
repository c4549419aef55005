"""`kubesched compare`: paired differences, verdicts, other requests."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import kubesched
from kubesched.cli.main import main
from kubesched.k8s.errors import KubeschedError
from kubesched.planning.compare import merged
from kubesched.planning.resizing import ResizeError, read_resizing
from kubesched.planning.statistics import LOOKS, PairedDifference, allowed_error, holm
from kubesched.testing import make
from kubesched.testing.make import Manifest

EXAMPLES = Path(__file__).parents[3] / "examples"
SCENARIO = str(EXAMPLES / "simulate")
CATALOGUE = str(EXAMPLES / "plan" / "aws.yaml")
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
    assert rows[0].startswith("variant,metric,baseline") and len(rows) == 17
    few = CliRunner().invoke(main, [*arguments, "-o", "csv", "--metrics", "pending, waited"]).stdout.splitlines()
    assert [row.split(",")[1] for row in few] == ["metric", "pending", "waited"]


@pytest.mark.parametrize(
    ("variants", "problem"),
    [
        (["base"], "at least two variants"),
        (["base", "base"], "at least two variants"),
        (["base", "x:color=red"], '"color=red" is none of config=…, plugin=…, feature-gates=…'),
        (["base", "x:config=nowhere.yaml"], "nowhere.yaml"),
        (["base", "x:resize=nowhere.csv"], "nowhere.csv"),
        (["base", "x:resize=disk*2"], "cpu*0.7"),
        (["base", ":config=x"], "a name is needed"),
        (["base", "x:feature-gates=A"], '"A" is not of the form NAME=true'),
        (["base", "x:nodes=3xm7i.large"], "needs a catalogue=FILE"),
        (["base", f"x:nodes=m7i.large,catalogue={CATALOGUE}"], "not of the form 6xSHAPE"),
        (["base", f"x:nodes=3xm0.large,catalogue={CATALOGUE}"], 'no shape is called "m0.large"'),
        (["base", "x:patch=nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_bad_variants_are_one_line(variants: list[str], problem: str) -> None:
    asked = [part for one in variants for part in ("--variant", one)]
    result = CliRunner().invoke(main, ["compare", "-f", SCENARIO, *asked])
    assert result.exit_code == 2 and problem in result.stderr and result.stderr.count("\n") == 1


NODES = [make.node(f"n{i}", cpu="4", labels={make.ZONE: "ab"[i % 2]}) for i in range(4)]


def deployment(name: str, replicas: int, cpu: str | None) -> Manifest:
    labels = {"app": name}
    pod: Manifest = make.pod(name, requests={"cpu": cpu} if cpu else {}, labels=labels)
    pod["spec"]["containers"][0]["name"] = "c"
    template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    }


def running(cluster: list[Manifest]) -> list[Manifest]:
    """The cluster with everything in place, as a dump has it."""
    world = kubesched.world(cluster, tie_break="name")
    with world.trial() as trial:
        trial.settle()
        trial.commit()
    objects = (*world.workloads, *(info.pod for info in world.cluster.placed.values()))
    return [*NODES, *(_manifest(item) for item in objects)]


def _manifest(item: Any) -> Manifest:
    group = "" if type(item).__name__ == "Pod" else "apps/"
    return {"apiVersion": f"{group}v1", "kind": type(item).__name__, **msgspec.to_builtins(item)}


def test_where_no_chance_is_involved_three_seeds_are_enough() -> None:
    found = kubesched.compare([NODES[0], deployment("web", 4, "1")], {"base": {}, "small": {"resize": "cpu*0.5"}})
    assert found.n_seeds == 3
    assert "3 seeds agree in everything, so the other 7 were not run." in found.assumptions


def test_other_requests_roll_out_what_runs_and_save_nodes_and_money() -> None:
    dump = running([*NODES, deployment("web", 12, "1")])
    for node in dump[:4]:
        node["metadata"]["annotations"] = {"kubesched.dev/price": "0.5"}
    found = kubesched.compare(dump, {"base": {}, "small": {"resize": "cpu*0.5"}}, seeds=3)
    small = found["small"]
    assert (small.difference("nodes_needed").baseline, small.difference("nodes_needed").variant) == (3, 2)
    assert (small.difference("cost_needed").baseline, small.difference("cost_needed").variant) == (1.5, 1.0)
    assert "nodes_needed (3 to 2)" in found.headline
    assert "cost_needed (USD an hour)" in str(found)


def test_a_recommendation_for_nobody_is_told(tmp_path: Path) -> None:
    wanted = tmp_path / "wanted.csv"
    head = "namespace,kind,name,container,resource,value\n"
    wanted.write_text(f"{head}shop,Deployment,web,c,cpu,2\nshop,Deployment,wbe,c,cpu,2\n")
    plain = [*NODES, deployment("web", 4, None)]
    found = kubesched.compare(plain, {"base": {}, "sized": {"resize": str(wanted)}}, seeds=3)
    assert "sized: 1 of 2 recommendations are for workloads that are there" in found.assumptions
    assert found["sized"].difference("cpu").variant == 50.0


def test_a_variant_patches_objects(tmp_path: Path) -> None:
    patch = tmp_path / "patch.yaml"
    patch.write_text(
        "kind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}\n---\n"
        "kind: Deployment\nspec: {template: {spec: {containers: [{name: c, resources: {requests: {cpu: 2}}}]}}}\n"
    )
    web = deployment("web", 4, "1")
    found = kubesched.compare([*NODES, web], {"base": {}, "few": {"patch": [str(patch)]}}, seeds=3)
    assert (found["few"].difference("cpu").baseline, found["few"].difference("cpu").variant) == (25.0, 25.0)
    assert found["few"].difference("nodes_used").variant == 2
    patch.write_text("kind: Deployment\nmetadata: {name: wbe}\nspec: {replicas: 2}\n")
    with pytest.raises(kubesched.CompareError, match=r"patch.yaml: Deployment wbe is not there"):
        kubesched.compare([*NODES, web], {"base": {}, "few": {"patch": [str(patch)]}}, seeds=3)
    patch.write_text("kind: Deployment\nspec: {replicas: many}\n")
    with pytest.raises(kubesched.CompareError, match=r"patch.yaml: Deployment shop/web: "):
        kubesched.compare([*NODES, web], {"base": {}, "few": {"patch": [str(patch)]}}, seeds=3)


def test_a_patch_takes_away_and_merges_by_name() -> None:
    written = {"a": 1, "b": {"c": 2, "d": 3}, "list": [{"name": "x", "v": 1}, {"name": "y", "v": 2}], "plain": [1, 2]}
    patch = {"a": None, "b": {"c": 5}, "list": [{"name": "y", "v": 3}, {"name": "z"}], "plain": [7]}
    assert merged(written, patch) == {
        "b": {"c": 5, "d": 3},
        "list": [{"name": "x", "v": 1}, {"name": "y", "v": 3}, {"name": "z"}],
        "plain": [7],
    }


def test_other_nodes_and_what_they_cost() -> None:
    catalogue = {"catalogue": CATALOGUE}
    web = [*NODES, deployment("web", 6, "1")]
    shapes = {"two": {"nodes": "2xm7i.xlarge", **catalogue}, "one": {"nodes": "1xm7i.2xlarge", **catalogue}}
    found = kubesched.compare(web, shapes, seeds=3)
    cost = found["one"].difference("cost")
    assert found["one"].difference("nodes_used").difference.mean == -1
    assert cost.baseline > 0 and cost.variant > 0
    with pytest.raises(kubesched.CompareError, match="there are no nodes"):
        kubesched.compare([deployment("web", 1, "1")], {"base": {}, "again": {}})


def test_where_they_part_the_plugins_that_decide_are_told() -> None:
    found = kubesched.compare(SCENARIO, {"base": {}, "packed": {"config": PACKED}}, seeds=3)
    parts = found["packed"].parts
    assert parts is not None and parts.baseline is not None and parts.variant is not None
    assert parts.deciding == ["NodeResourcesFit"]
    ours, theirs = parts.baseline.scores["NodeResourcesFit"], parts.variant.scores["NodeResourcesFit"]
    assert ours[0] > ours[1] and theirs[0] < theirs[1]
    totals = [
        [sum(pair[i] for pair in seen.scores.values()) for i in (0, 1)] for seen in (parts.baseline, parts.variant)
    ]
    assert totals[0][0] >= totals[0][1] and totals[1][1] >= totals[1][0]


def test_nodes_that_would_be_overfull_if_all_used_what_they_use_at_times(tmp_path: Path) -> None:
    usage = tmp_path / "usage.csv"
    head = "namespace,kind,name,container,resource,p50,p95,max\n"
    usage.write_text(f"{head}shop,Deployment,web,c,cpu,500m,3,4\n")
    web = [*NODES, deployment("web", 8, "2")]
    found = kubesched.compare(web, {"base": {}, "small": {"resize": "cpu*0.5"}}, seeds=3, usage=str(usage))
    assert found["small"].difference("nodes_at_risk").baseline == 4
    usage.write_text(f"{head}shop,Deployment,web,c,cpu,500m,lots,4\n")
    with pytest.raises(KubeschedError, match=r'usage.csv: line 2: p95: "lots" is not an amount'):
        kubesched.compare(web, {"base": {}, "small": {}}, usage=str(usage))


def test_seeds_are_added_until_the_intervals_are_narrow() -> None:
    asked = {"base": {}, "small": {"resize": "cpu*0.5"}}
    found = kubesched.compare(SCENARIO, asked, until_ci=0.5, metrics=["waited"])
    assert found.n_seeds in (10, 20) and found.widest[0] <= 0.5
    assert sum(allowed_error(n) for n in LOOKS) == pytest.approx(0.05)
    assert [allowed_error(n) for n in LOOKS] == sorted(allowed_error(n) for n in LOOKS)
    arguments = ["compare", "-f", SCENARIO, "--variant", "base", "--variant", "again", "--until-ci", "x"]
    assert CliRunner().invoke(main, arguments).exit_code == 2


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
    lower = vpa.replace(b"target: {cpu", b"lowerBound: {cpu")
    assert read_resizing("vpa.yaml@lowerBound", lower).wanted == {key: {"cpu": "200m", "memory": "1Mi"}}
    with pytest.raises(ResizeError, match="middle"):
        read_resizing("vpa.yaml@middle", vpa)


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
