"""The last decisions, kept with the scores of then: bounded, the newest first, and without a trace in later ones."""

from __future__ import annotations

import pytest

from kubesched.k8s.model import manifests
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.live import decisions
from kubesched.live.decisions import BEST_KEPT, DecisionLog, Record
from kubesched.live.serving.debug_pages import decisions_text
from kubesched.scheduler import config
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.engine.score import ByName, Seeded
from kubesched.testing import make
from kubesched.testing.world import World


def _objects(*items: make.Manifest) -> list[KubeObject]:
    return list(manifests.from_dicts(items).objects)


def _world(n_nodes: int = 8, *, keeps_classes: bool = True) -> World:
    world = World(build_loop(config.default(), ByName(), keeps_classes=keeps_classes))
    world.add(*_objects(*(make.node(f"node-{i}", cpu=str(4 + i)) for i in range(n_nodes))))
    return world


def _schedule(world: World, *names: str, cpu: str = "1", **options: object) -> None:
    world.add(*_objects(*(make.pod(name, cpu=cpu, **options) for name in names)))  # type: ignore[arg-type]
    world.run()


def _recorded(world: World, most_kept: int = 1000) -> DecisionLog:
    log = DecisionLog(lambda: 5.0, most_kept)
    log.listen_to(world.loop)
    return log


def test_a_decision_is_kept_with_the_scores_of_the_best_nodes() -> None:
    world = _world()
    log = _recorded(world)
    _schedule(world, "web")
    (kept,) = log.report()["decisions"]
    assert {name: kept[name] for name in ("number", "at", "pod", "evaluated", "feasible")} == {
        "number": 1,
        "at": 5.0,
        "pod": "default/web",
        "evaluated": 8,
        "feasible": 8,
    }
    assert kept["node"] == world.bound[PodKey("default/web")] == kept["scores"][0]["node"]
    totals = [node["total"] for node in kept["scores"]]
    assert len(totals) == BEST_KEPT
    assert totals == sorted(totals, reverse=True)
    assert all(sum(node["plugins"].values()) == node["total"] for node in kept["scores"])


def test_a_class_keeps_the_same_totals_as_a_whole_cycle() -> None:
    by_class, whole = _world(), _world(keeps_classes=False)
    logs = [_recorded(by_class), _recorded(whole)]
    for world in (by_class, whole):
        _schedule(world, *(f"web-{i}" for i in range(6)))
    assert by_class.loop.schedulers["default-scheduler"].n_decided_by_class > 0
    first, second = (
        [[(node["node"], node["total"]) for node in one["scores"]] for one in log.report()["decisions"]] for log in logs
    )
    assert first == second


def test_on_few_nodes_every_plugin_is_kept_as_long_as_they_are_few() -> None:
    world = _world(4)
    log = _recorded(world)
    log.want_details(4)
    _schedule(world, "web-1", "web-2", "web-3")
    assert all("plugins" in node for one in log.report()["decisions"] for node in one["scores"])
    world.add(*_objects(make.node("node-9")))
    _schedule(world, "web-4")
    assert not world.loop.observers.wants_scores


def test_what_fits_nowhere_is_kept_with_its_message() -> None:
    world = _world(2)
    log = _recorded(world)
    _schedule(world, "big", cpu="99")
    (kept,) = log.report(pod="default/big")["decisions"]
    assert kept["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert "node" not in kept
    assert log.report(pod="default/other")["decisions"] == []


def test_a_preemption_is_kept_with_its_victims() -> None:
    world = _world(1)
    log = _recorded(world)
    _schedule(world, "low", cpu="4")
    _schedule(world, "high", cpu="4", priority=10)
    kept = [one for one in log.report(pod="default/high")["decisions"] if "preemption" in one]
    assert kept[0]["preemption"] == {"node": "node-0", "victims": ["default/low"]}
    assert "preempts on node-0: default/low" in decisions_text(log.report())


def test_only_the_last_ones_are_kept() -> None:
    world = _world()
    log = _recorded(world, most_kept=3)
    _schedule(world, *(f"web-{i}" for i in range(5)))
    report = log.report()
    assert ([one["number"] for one in report["decisions"]], report["made"], report["kept"]) == ([5, 4, 3], 5, 3)
    assert [one["number"] for one in log.report(after=4)["decisions"]] == [5]


def test_to_be_kept_changes_no_decision() -> None:
    watched, unwatched = _world(), _world()
    _recorded(watched)
    for world in (watched, unwatched):
        _schedule(world, *(f"web-{i}" for i in range(20)))
    assert watched.bound == unwatched.bound
    by_class = [world.loop.schedulers["default-scheduler"].n_decided_by_class for world in (watched, unwatched)]
    assert by_class[0] == by_class[1] > 0


def test_the_chosen_node_comes_first_among_many_that_are_as_good() -> None:
    world = World(build_loop(config.default(), Seeded(7)))
    world.add(*_objects(*(make.node(f"node-{i:02}") for i in range(40))))
    log = _recorded(world)
    _schedule(world, *(f"web-{i}" for i in range(12)))
    for kept in log.report()["decisions"]:
        names = [node["node"] for node in kept["scores"]]
        assert names[0] == kept["node"] == world.bound[PodKey(kept["pod"])]
        assert len(set(names)) == len(names) == BEST_KEPT
        assert kept["scores"][0]["total"] == max(node["total"] for node in kept["scores"])


def _remove_node(world: World, name: str) -> None:
    world.loop.remove(next(node for node in world.loop.cluster.table.nodes if node.name == name), 6.0)


def _names_change(world: World, turn: int) -> None:
    """Rows become other nodes': the first one's goes to the last, and a new one takes the last row."""
    _remove_node(world, world.loop.cluster.table.names[0])
    world.add(*_objects(make.node(f"late-{turn}", cpu="20")))


def test_names_are_those_of_then_when_rows_became_other_nodes() -> None:
    """Whether somebody asks before that, after that, or after more decisions."""
    asked, unasked = _world(), _world()
    early, late = _recorded(asked), _recorded(unasked)
    told: list[Record] = []
    for turn in range(4):
        for world in (asked, unasked):
            _schedule(world, *(f"web-{turn}-{i}" for i in range(3)))
        told = early.report(after=3 * turn)["decisions"] + told
        for world in (asked, unasked):
            _names_change(world, turn)
        assert early.report()["decisions"] == told
    assert unasked.loop.schedulers["default-scheduler"].n_decided_by_class > 0
    assert late.report()["decisions"] == told


def test_large_comparisons_are_not_kept_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    small, whole = _world(), _world()
    logs = []
    for world, most in ((small, 7), (whole, 8)):
        monkeypatch.setattr(decisions, "MOST_UNPICKED", most)
        logs.append(_recorded(world))
        _schedule(world, *(f"web-{i}" for i in range(6)))
    assert [sum(kept.is_unpicked for kept in log.kept) for log in logs] == [0, 5]
    assert logs[0].report() == logs[1].report()
    assert not any(kept.is_unpicked for kept in logs[1].kept)
