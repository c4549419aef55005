"""Plugins replaced in a loop that runs: the cluster and the queue stay, and the new plugin counts from then on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from outside_world import add

from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.scheduler.build import build_loop, reload_plugins
from kubesched.scheduler.config import ConfigError, default
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugin_loading import PluginSource, WatchedFiles
from kubesched.testing import make
from kubesched.testing.world import World

CLOSED = """
from kubesched.framework import OK, Status
class Door:
    name = "Door"
    def filter_node(self, cycle, pod, node):
        return Status.unschedulable("closed") if node.name == "{node}" else OK
    def events_to_register(self):
        return []
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "door.py"
    path.write_text(CLOSED.format(node="a"))
    return path


class Reloading(World):
    def __init__(self, file: Path) -> None:
        self.source = PluginSource(default(), files=[file])
        found = self.source.read()
        self.ticks = 0.0
        super().__init__(build_loop(found.config, ByName(), registry=found.registry, clock=self._clock))

    def _clock(self) -> float:
        self.ticks += 0.001
        return self.ticks

    def reload(self) -> None:
        found = self.source.read()
        reload_plugins(self.loop, found.config, found.registry, self.now_s)

    def place(self, *names: str) -> list[str | None]:
        add(self, *(make.pod(name, cpu=1) for name in names))
        self.run(for_s=5)
        return [next((node for key, node in self.bound.items() if key == f"default/{name}"), None) for name in names]


def test_pods_that_the_old_plugin_rejected_are_tried_again_by_the_new_one(file: Path) -> None:
    world = Reloading(file)
    add(world, make.node("a", cpu=9))
    assert world.place("p0", "p1", "p2") == [None, None, None]
    file.write_text(CLOSED.format(node="b"))
    world.reload()
    world.run(for_s=15)
    assert len(world.bound) == 3
    assert len(world.loop.cluster.placed) == 3


def test_what_was_kept_for_pods_alike_and_what_measures_plugins_does_not_outlive_the_old_one(file: Path) -> None:
    world = Reloading(file)
    add(world, make.node("a", cpu=50), make.node("b", cpu=50))
    assert set(world.place(*(f"p{i}" for i in range(25)))) == {"b"}
    file.write_text(CLOSED.format(node="b"))
    world.reload()
    assert set(world.place(*(f"q{i}" for i in range(25)))) == {"a"}


def test_in_tree_plugins_stay_the_objects_they_are(file: Path) -> None:
    world = Reloading(file)
    scheduler = world.loop.schedulers["default-scheduler"]
    before = dict(scheduler.profile.plugins)
    world.reload()
    after = scheduler.profile.plugins
    assert [name for name in before if before[name] is not after[name]] == ["Door"]


def test_dry_runs_of_preemption_ask_the_plugins_of_now(file: Path) -> None:
    world = Reloading(file)
    add(world, make.node("a", cpu=1))
    scheduler = world.loop.schedulers["default-scheduler"]
    world.reload()
    (pod,) = manifests.from_dicts([make.pod("p", cpu=2)]).objects
    assert isinstance(pod, Pod)
    decision = scheduler.decide(world.loop.cluster.signatures.info(pod))
    assert decision.post_filter is not None
    assert decision.cycle.get(Profile) is scheduler.profile


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("x = (", "SyntaxError", id="that cannot be read"),
        pytest.param(
            CLOSED.format(node="a").replace("return []", "return [1]"), "events_to_register gave 1", id="events"
        ),
        pytest.param(
            CLOSED.format(node="a").replace("events_to_register(self):", "__init__(self):\n        1 / 0"),
            'initializing plugin "Door": ZeroDivisionError',
            id="that cannot be made",
        ),
    ],
)
def test_with_a_file_that_is_broken_all_stays_as_it_was(file: Path, text: str, message: str) -> None:
    world = Reloading(file)
    add(world, make.node("a"), make.node("b"))
    profile = world.loop.schedulers["default-scheduler"].profile
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        world.reload()
    assert world.loop.schedulers["default-scheduler"].profile is profile
    assert world.place("p") == ["b"]


def test_another_name_and_other_stages_may_come_with_the_new_file(file: Path) -> None:
    world = Reloading(file)
    add(world, make.node("a"), make.node("b"))
    file.write_text(
        'class Window:\n    name = "Window"\n    def score_node(self, cycle, pod, node):\n'
        '        return 100 if node.name == "a" else 0\n'
        "    def sort_key(self, queued):\n        return (-queued.info.priority, 0)\n"
    )
    world.reload()
    assert "Door" not in world.loop.schedulers["default-scheduler"].profile.plugins
    assert world.place("p") == ["a"]


def test_pods_that_wait_are_sorted_by_the_new_plugin(file: Path) -> None:
    text = 'class Sorter:\n    name = "Sorter"\n    def sort_key(self, queued):\n        return ({},)\n'
    file.write_text(text.format("queued.info.name == 'p0'"))
    world = Reloading(file)
    add(world, make.pod("p0", cpu=1), make.pod("p1", cpu=1))
    assert [queued.key for queued in world.loop.queue.contents.active] == ["default/p1", "default/p0"]
    file.write_text(text.format("queued.info.name == 'p1'"))
    world.reload()
    assert [queued.key for queued in world.loop.queue.contents.active] == ["default/p0", "default/p1"]
    assert world.loop.queue.pop(0.0) is not None


def test_a_pod_held_back_by_a_gate_that_is_gone_comes_in(file: Path) -> None:
    file.write_text(
        "from kubesched.framework import OK, Status\n"
        'class Gate:\n    name = "Gate"\n    def pre_enqueue(self, pod):\n        return Status.unschedulable("shut")\n'
    )
    world = Reloading(file)
    add(world, make.node("a"))
    assert world.place("p") == [None]
    file.write_text(CLOSED.format(node="b"))
    world.reload()
    world.run(for_s=15)
    assert list(world.bound.values()) == ["a"]


def test_files_that_changed_are_seen_once(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("1")
    watched = WatchedFiles([first, second])
    assert watched.changed() == []
    second.write_text("2")
    assert watched.changed() == [second]
    assert watched.changed() == []
    first.unlink()
    assert watched.changed() == [first]


def test_a_source_names_all_its_files(tmp_path: Path) -> None:
    from msgspec.structs import replace

    config: Any = replace(default(), plugin_paths=("x.py", "/y.py"))
    source = PluginSource(config, str(tmp_path / "config.yaml"), ["z.py"])
    assert source.paths() == [Path("z.py"), tmp_path / "x.py", Path("/y.py")]
