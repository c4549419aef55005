"""`--keep` where a run is played or a change is checked; `n-1:zone`: what fits, or stays, if any one zone is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from resting_clusters import Manifest, node, workload

import kubesched
from kubesched.cli.main import main
from kubesched.planning.check_file import CheckError
from kubesched.planning.headroom import HeadroomError


def three_zones(per_zone: int = 2, busy: str = "1") -> list[Manifest]:
    names = [f"{zone}{n}" for zone in "abc" for n in range(per_zone)]
    return [*(node(name, name[0]) for name in names), *workload("Deployment", "web", busy, names)]


# -- upgrade -----------------------------------------------------------------------------------------------------------


def test_an_upgrade_moves_the_room_and_does_not_count_it() -> None:
    plain = kubesched.upgrade(three_zones())
    report = kubesched.upgrade(three_zones(), keep=["6x2/1Gi"])
    assert (report.finishes, report.outcome.moves, report.outcome.n_pods) == (True, plain.outcome.moves, 6)
    assert report.outcome.room is not None and report.outcome.room.before == report.outcome.room.after == 6
    assert "There is room to keep for 6 pods before, for 6 after" in str(report)
    assert report.to_dict()["room"]["before"] == 6 and "room" not in plain.to_dict()


def test_an_upgrade_to_smaller_machines_may_leave_no_room() -> None:
    small = {
        "apiVersion": "kubesched.dev/v1alpha1",
        "kind": "Catalogue",
        "shapes": [{"name": "s", "allocatable": {"cpu": 2, "memory": "8Gi", "pods": 110}, "offers": [{"price": 1}]}],
    }
    asked: dict[str, Any] = {"catalogue": small, "to_shape": "s"}
    assert kubesched.upgrade(three_zones(), **asked).finishes
    report = kubesched.upgrade(three_zones(), keep="6x2/1Gi", **asked)
    assert not report.finishes and report.outcome.lost_room == 3
    assert report.headline.endswith("ends without room for 3 of the 6 pods that it is to be kept for.")


# -- any one zone ------------------------------------------------------------------------------------------------------


def test_what_fits_fits_after_the_loss_of_any_zone() -> None:
    """Six nodes of 4 cpu with a pod of 1 each: without a zone there are 16 cpu, and the 6 pods take theirs first."""
    assert kubesched.capacity(three_zones(), shapes="1/1Gi").fits == 18
    report = kubesched.capacity(three_zones(), shapes="1/1Gi", keep="n-1:zone")
    assert report.fits == 10 and "after the loss of zone" in report.headline
    assert kubesched.capacity(three_zones(), shapes="1/1Gi", keep=["n-1:node"]).fits == 14
    full = three_zones(busy="3")
    report = kubesched.capacity(full, shapes="1/1Gi", keep="n-1:zone")
    assert report.fits == 0 and "2 pods would have no node even without it" in report.headline


def test_nodes_stay_that_are_needed_if_a_zone_is_lost() -> None:
    """What is left must hold the pods of any zone: two nodes in each of two zones of three, or one in each of three."""
    objects = three_zones()
    assert len(kubesched.consolidate(objects).removed) == 4
    report = kubesched.consolidate(objects, keep="n-1:zone")
    assert 0 < len(report.removed) < 4
    assert "NeededAfterLoss" in {one.reason.identifier for one in report.kept}
    world = kubesched.world(objects)
    with world.trial() as trial:
        for name in report.removed:
            trial.drain(name)
            assert not trial.settle().pending
            trial.delete_node(name)
        for zone in "abc":
            with trial.trial() as inner:
                for name in [one for one in world.nodes if one.startswith(zone)]:
                    inner.delete_node(name)
                assert not inner.settle().pending


def test_what_is_lost_already_is_not_held_against_a_step() -> None:
    """In one zone, everything is lost with it, now as then."""
    objects = [node(name) for name in ("a0", "a1", "a2")] + workload("Deployment", "web", "1", ["a0", "a1", "a2"])
    assert len(kubesched.consolidate(objects, keep="n-1:zone").removed) == 2


@pytest.mark.parametrize("ask", [kubesched.outage, kubesched.upgrade, kubesched.optimal])
def test_elsewhere_the_loss_of_a_zone_is_no_room(ask: Any) -> None:
    with pytest.raises(kubesched.KubeschedError, match=r"^keep .n-1:.* is not for "):
        ask(three_zones(), keep=["n-1:zone"])


def test_one_of_what_can_be_lost() -> None:
    with pytest.raises(HeadroomError, match="n-1:zone or n-1:node is expected"):
        kubesched.capacity(three_zones(), shapes="1/1Gi", keep="n-1:rack")
    with pytest.raises(HeadroomError, match="one of n-1:zone and n-1:node"):
        kubesched.consolidate(three_zones(), keep=["n-1:zone", "n-1:node"])
    with pytest.raises(kubesched.KubeschedError, match="is about all nodes together"):
        kubesched.capacity(three_zones(), shapes="1/1Gi", by="zone", keep="n-1:zone")


# -- compare -----------------------------------------------------------------------------------------------------------


def test_variants_are_compared_by_the_room_that_they_leave() -> None:
    variants = {"base": {}, "small": {"resize": "cpu*0.5"}}
    report = kubesched.compare(three_zones(), variants, seeds=2, keep="30x1/1Gi")
    (room,) = [one for one in report["small"].metrics if one.metric.name == "kept_room"]
    assert (room.baseline, room.variant, room.verdict) == (18.0, 18.0, "same")
    report = kubesched.compare(three_zones(busy="2"), variants, seeds=2, keep="30x1/1Gi")
    (room,) = [one for one in report["small"].metrics if one.metric.name == "kept_room"]
    assert (room.baseline, room.variant, room.verdict) == (12.0, 18.0, "better")
    with pytest.raises(kubesched.CompareError, match="kept_room needs room to keep"):
        kubesched.compare(three_zones(), variants, seeds=1, metrics=["kept_room"])
    with pytest.raises(HeadroomError, match="is not for this command"):
        kubesched.compare(three_zones(), variants, seeds=1, keep="n-1:zone")


# -- check -------------------------------------------------------------------------------------------------------------


def check(directory: Path, *rules: Manifest, **fields: Any) -> kubesched.CheckReport:
    items = fields.pop("items", three_zones())
    (directory / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    change = fields.pop("change", [])
    if change:
        (directory / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": change}))
        fields["change"] = [{"file": "all.json"}]
    whole = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Check", "cluster": {"file": "dump.json"}, "seeds": 1}
    asked = {**whole, "checks": [{"name": "c", **rule} for rule in rules], **fields}
    (directory / "check.json").write_text(json.dumps(asked))
    return kubesched.check(directory / "check.json")


def test_a_change_has_to_leave_the_room_to_keep(tmp_path: Path) -> None:
    change = workload("Deployment", "new", "1", [], replicas=12)
    assert check(tmp_path, {"fits": {}}, change=change).passed
    assert check(tmp_path, {"fits": {}}, change=change, keep=["6x1/1Gi"]).passed
    report = check(tmp_path, {"fits": {}}, change=change, keep=["8x1/1Gi"])
    assert not report.passed and "the room to keep would be gone" in report.headline
    assert report.results[0].findings[0].message == "no room for 2 of 8 pods that room is to be kept for"
    assert check(tmp_path, {"fits": {}}, keep=["40x1/1Gi"]).passed  # there is none for all of it before, either


def test_every_rule_keeps_the_room(tmp_path: Path) -> None:
    for rule in ({"capacity": {"shape": "1/1Gi", "atLeast": 10}}, {"outage": {"every": "zone"}}):
        assert check(tmp_path, rule).passed
        assert not check(tmp_path, rule, keep=["12x1/1Gi"]).passed
    assert check(tmp_path, {"upgrade": {}}, keep=["12x1/1Gi"]).passed


def test_a_check_file_supposes_what_commands_do(tmp_path: Path) -> None:
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 1, "maxReplicas": 24},
    }
    rule = {"capacity": {"shape": "1/1Gi", "atLeast": 1}}
    items = [*three_zones(), scaler]
    assert check(tmp_path, rule, items=items).passed
    assert not check(tmp_path, rule, items=items, replicas="max").passed
    assert check(tmp_path, rule, items=items, ignore=["daemons", "budgets"]).passed


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"keep": ["n-1:zone"]}, "keep: n-1:zone is asked by a check with outage"),
        ({"replicas": "most"}, "replicas: one of current, min, max is expected"),
        ({"ignore": ["pending"]}, "ignore: pending is none of daemons, static, budgets"),
    ],
)
def test_what_a_check_file_cannot_suppose(tmp_path: Path, fields: dict[str, Any], told: str) -> None:
    with pytest.raises(CheckError, match=told):
        check(tmp_path, {"fits": {}}, **fields)


# -- processes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        ("--shapes", "1/1Gi,500m/2Gi", "--by", "zone"),
        ("--shapes", "1/1Gi", "--by", "zone", "--seeds", "2", "--orders", "2"),
        ("--every", "workload"),
        ("--shapes", "1/1Gi", "--keep", "n-1:zone"),
        ("--app", "app.json"),
    ],
)
def test_capacity_of_several_processes_has_the_bytes_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    objects = [*three_zones(), *workload("Deployment", "waits", "1", [], replicas=3)]
    for name, items in (("cluster.json", objects), ("app.json", workload("Deployment", "x", "1", [], replicas=2))):
        Path(name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    def answer(jobs: str) -> Result:
        return CliRunner().invoke(main, ["capacity", "-f", "cluster.json", *asked, "-o", "json", "--jobs", jobs])

    alone, together = answer("1"), answer("3")
    assert alone.stdout and (alone.exit_code, alone.stdout) == (0, together.stdout), (alone.output, together.output)
