"""Which outside plugins run where: switched on by default, decided by the configuration, or installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from outside_world import KIND

import kubesched
from kubesched.framework import OK, Status
from kubesched.scheduler.config import ConfigError, load, resolve_profiles
from kubesched.scheduler.plugin_loading import (
    NO_OUTSIDE_PLUGINS,
    OutsidePlugins,
    assemble,
    installed_plugins,
    plugins_from_classes,
)
from kubesched.scheduler.plugins.registry import REGISTRY, capabilities
from kubesched.testing import make


class Quiet:
    name = "Quiet"
    default_weight = 4

    def filter_node(self, cycle: Any, pod: Any, node: Any) -> Status:
        return Status.unschedulable("quiet") if node.name == "a" else OK

    def score_node(self, cycle: Any, pod: Any, node: Any) -> int:
        return 1


class Bound:
    name = "Bound"

    def bind(self, cycle: Any, pod: Any, node_name: str) -> Status:
        return OK


class Sorted:
    name = "Sorted"

    def sort_key(self, queued: Any) -> tuple[float, ...]:
        return (queued.queued_at_s,)


def points_of(config: Mapping[str, Any], *plugins: type, enable: bool = True) -> list[Mapping[str, list[str]]]:
    """By profile and extension point, `name` or `name*weight` of the plugins that run there."""
    found = assemble(load({**KIND, **config}, "c.yaml"), given=plugins_from_classes(plugins, enable=enable))
    return [
        {
            point: [f"{p.name}*{p.weight}" if p.weight > 1 else p.name for p in at]
            for point, at in profile.points.items()
        }
        for profile in resolve_profiles(found.config, capabilities(found.registry))
    ]


def test_a_plugin_runs_in_every_profile_at_all_its_stages_after_the_others() -> None:
    for points in points_of({"profiles": [{"schedulerName": "x"}, {"schedulerName": "y"}]}, Quiet):
        assert points["filter"][-1] == "Quiet"
        assert points["score"][-1] == "Quiet*4"
        assert "Quiet" not in points["permit"]


def test_a_plugin_that_only_is_known_does_not_run() -> None:
    (points,) = points_of({}, Quiet, enable=False)
    assert not any("Quiet" in names for names in points.values())


@pytest.mark.parametrize(
    ("plugins", "where"),
    [
        pytest.param({"score": {"enabled": [{"name": "Quiet", "weight": 9}]}}, {"score": "Quiet*9"}, id="enabled"),
        pytest.param({"filter": {"disabled": [{"name": "Quiet"}]}}, {}, id="disabled"),
        pytest.param({"multiPoint": {"disabled": [{"name": "Quiet"}]}}, {}, id="disabled everywhere"),
        pytest.param({"score": {"disabled": [{"name": "*"}]}}, {"filter": "Quiet"}, id="all disabled at one point"),
    ],
)
def test_the_configuration_decides_over_what_it_mentions(plugins: Any, where: dict[str, str]) -> None:
    (points,) = points_of({"profiles": [{"plugins": plugins}]}, Quiet)
    found = {point: name for point, names in points.items() for name in names if name.startswith("Quiet")}
    assert found == where


def test_one_profile_that_mentions_it_decides_for_all() -> None:
    mentions = {"schedulerName": "x", "plugins": {"multiPoint": {"enabled": [{"name": "Quiet"}]}}}
    first, second = points_of({"profiles": [mentions, {"schedulerName": "y"}]}, Quiet)
    assert ("Quiet" in first["filter"], "Quiet" in second["filter"]) == (True, False)


def test_arguments_alone_do_not_count_as_a_mention() -> None:
    (points,) = points_of({"profiles": [{"pluginConfig": [{"name": "Quiet", "args": {"a": 1}}]}]}, Quiet)
    assert "Quiet" in points["filter"]


def test_one_that_binds_goes_before_the_default_binder_and_one_that_sorts_takes_the_default_ones_place() -> None:
    (points,) = points_of({}, Bound, Sorted)
    assert points["bind"] == ["Bound", "DefaultBinder"]
    assert points["queueSort"] == ["Sorted"]


def test_paths_are_relative_to_the_file_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    plugin = tmp_path / "mine" / "p.py"
    plugin.write_text('class A:\n    name = "A"\n    def permit(self, cycle, pod, node_name): ...\n')
    config = load({**KIND, "pluginPaths": ["mine/p.py"]}, "c.yaml")
    found = assemble(config, str(tmp_path / "c.yaml"))
    assert (list(found.outside.classes), found.outside.enabled) == (["A"], frozenset())
    both = assemble(config, str(tmp_path / "c.yaml"), files=[str(plugin)])
    assert both.outside.enabled == {"A"}


def test_without_outside_plugins_nothing_changes() -> None:
    config = load(dict(KIND), "c.yaml")
    found = assemble(config)
    assert (found.config, found.registry, found.outside) == (config, REGISTRY, NO_OUTSIDE_PLUGINS)
    assert found.config is config


def test_a_plugin_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(ConfigError, match='PermitPlugin "Nobody" does not exist'):
        points_of({"profiles": [{"plugins": {"permit": {"enabled": [{"name": "Nobody"}]}}}]})


def test_sets_are_joined_and_a_name_twice_is_an_error_that_names_both_origins() -> None:
    joined = plugins_from_classes([Quiet]) | plugins_from_classes([Bound], enable=False)
    assert (sorted(joined.classes), joined.enabled) == (["Bound", "Quiet"], frozenset({"Quiet"}))
    with pytest.raises(ConfigError) as caught:
        joined | OutsidePlugins({"Quiet": Quiet}, frozenset(), {"Quiet": "quiet.py"})
    assert "quiet.py: the plugin Quiet is also in" in str(caught.value)
    assert "test_plugin_assembly.Quiet" in str(caught.value)


# -- installed packages ------------------------------------------------------------------------------------------------


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A distribution with a module and an entry point of the group."""

    def install(code: str, entry: str = "Inst = inst_module:Inst") -> None:
        info = tmp_path / "inst_dist-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: inst-dist\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[kubesched.plugins]\n{entry}\n")
        (tmp_path / "inst_module.py").write_text(code)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(__import__("sys").modules, "inst_module", raising=False)

    return install


INSTALLED = 'class Inst:\n    name = "Inst"\n    def permit(self, cycle, pod, node_name): ...\n'


def test_installed_plugins_are_known_and_run_where_they_are_enabled(install: Any) -> None:
    install(INSTALLED)
    found = installed_plugins()
    assert (list(found.classes), found.enabled) == (["Inst"], frozenset())
    assert found.origins == {"Inst": "inst-dist (kubesched.plugins: Inst)"}
    (points,) = points_of({"profiles": [{"plugins": {"permit": {"enabled": [{"name": "Inst"}]}}}]})
    assert points["permit"] == ["Inst"]


def test_installed_plugins_that_nobody_asks_for_are_not_imported(install: Any) -> None:
    install("1 / 0")
    (points,) = points_of({})
    assert points["permit"] == []


@pytest.mark.parametrize(
    ("code", "entry", "message"),
    [
        pytest.param("1 / 0", "Inst = inst_module:Inst", "inst_module:Inst: ZeroDivisionError: division", id="broken"),
        pytest.param("", "Inst = inst_module:Inst", "inst_module:Inst: AttributeError: ", id="nothing there"),
        pytest.param("Inst = 5", "Inst = inst_module:Inst", "inst_module:Inst: is not a class", id="no class"),
        pytest.param(
            INSTALLED.replace('"Inst"', '"Other"'),
            "Inst = inst_module:Inst",
            "inst_module:Inst: the plugin is called Other: entry point and plugin need the same name",
            id="another name",
        ),
    ],
)
def test_a_broken_entry_point_is_an_error_that_names_the_distribution(
    install: Any, code: str, entry: str, message: str
) -> None:
    install(code, entry)
    with pytest.raises(ConfigError) as caught:
        installed_plugins()
    assert str(caught.value).startswith(f"inst-dist (kubesched.plugins: Inst): {message}")


# -- the library -------------------------------------------------------------------------------------------------------


def test_the_library_takes_classes() -> None:
    objects = [make.node("a"), make.node("b"), make.pod("p")]
    assert kubesched.explain(objects, "p", plugins=[Quiet]).to_dict()["best"] == ["b"]
    placed = kubesched.simulate(objects, ["p"], plugins=[Quiet])
    assert [step.node for step in placed.steps] == ["b"]
    pods = kubesched.simulate(objects, plugins=[Quiet]).pods
    assert [dict(zip(pods.column_names, pod, strict=True))["node"] for pod in pods] == ["b"]


def test_an_emulated_version_takes_none() -> None:
    with pytest.raises(ConfigError, match="run in today's scheduler only"):
        kubesched.explain([make.node("a"), make.pod("p")], "p", emulate="1.18", plugins=[Quiet])
    with pytest.raises(ConfigError, match="run in today's scheduler only"):
        kubesched.simulate([make.node("a"), make.pod("p")], emulate="1.18", plugins=[Quiet])
