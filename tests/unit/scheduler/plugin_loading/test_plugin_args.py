"""Arguments of outside plugins: from the configuration into the plugin's dataclass, every validation error with its
path."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

import pytest
from outside_world import add, world_with

from kubesched.framework import OK, Handle, Status
from kubesched.scheduler.config import ConfigError
from kubesched.testing import make


class Mood(Enum):
    CALM = "Calm"
    LOUD = "Loud"


@dataclass(frozen=True)
class Rule:
    key: str
    weight: int = 1


@dataclass(frozen=True)
class QuietArgs:
    label: str = "quiet"
    weight_per_pod: int = 1
    share: float = 0.5
    is_strict: bool = False
    names: tuple[str, ...] = ()
    limits: dict[str, int] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    mood: Mood = Mood.CALM
    side: Literal["left", "right"] = "left"
    port: int | None = None
    anything: Any = None

    def __post_init__(self) -> None:
        if self.weight_per_pod < 0:
            raise ValueError("weightPerPod must not be negative")


class Quiet:
    name = "Quiet"
    args_type = QuietArgs
    made: list[Any]

    def __init__(self, args: QuietArgs, handle: Handle) -> None:
        self.made.append((args, handle))

    def filter_node(self, cycle: Any, pod: Any, node: Any) -> Status:
        return OK


def made_with(args: Any, plugin: type = Quiet) -> Any:
    plugin.made = []  # type: ignore[attr-defined]
    world_with(plugin, config={"profiles": [{"pluginConfig": [{"name": plugin.name, "args": args}]}]})  # type: ignore[attr-defined]
    return plugin.made[0][0]  # type: ignore[attr-defined]


def test_fields_are_spelled_as_kubernetes_spells_them() -> None:
    assert made_with(
        {
            "label": "q",
            "weightPerPod": 3,
            "share": 2,
            "isStrict": True,
            "names": ["a", "b"],
            "limits": {"x": 1},
            "rules": [{"key": "k"}, {"key": "l", "weight": 2}],
            "mood": "Loud",
            "side": "right",
            "port": 80,
            "anything": [{"goes": 1}],
        }
    ) == QuietArgs(
        "q", 3, 2.0, True, ("a", "b"), {"x": 1}, [Rule("k"), Rule("l", 2)], Mood.LOUD, "right", 80, [{"goes": 1}]
    )


@pytest.mark.parametrize("args", [None, {}, {"label": None}], ids=["none", "empty", "null"])
def test_what_is_not_given_has_its_default(args: Any) -> None:
    assert made_with(args) == QuietArgs()


MISTAKES = [
    pytest.param({"weightPerPod": "x"}, '.weightPerPod: Invalid value: "x": must be an integer', id="a text"),
    pytest.param({"weightPerPod": True}, ".weightPerPod: Invalid value: true: must be an integer", id="truth value"),
    pytest.param({"share": "1"}, '.share: Invalid value: "1": must be a number', id="text for a fraction"),
    pytest.param({"isStrict": 1}, ".isStrict: Invalid value: 1: must be true or false", id="number for a truth value"),
    pytest.param({"label": 1}, ".label: Invalid value: 1: must be a string", id="number for a text"),
    pytest.param({"names": "ab"}, '.names: Invalid value: "ab": must be a list', id="text for a list"),
    pytest.param({"names": ["a", 1]}, ".names[1]: Invalid value: 1: must be a string", id="in a list"),
    pytest.param({"limits": {"x": "y"}}, '.limits[x]: Invalid value: "y": must be an integer', id="in a mapping"),
    pytest.param({"rules": [{}]}, ".rules[0].key: Required value", id="a field that must be given"),
    pytest.param({"rules": [3]}, ".rules[0]: Invalid value: 3: must be a mapping", id="number for an object"),
    pytest.param(
        {"mood": "Bad"}, '.mood: Unsupported value: "Bad": supported values: "Calm", "Loud"', id="not in the enum"
    ),
    pytest.param(
        {"side": "top"}, '.side: Unsupported value: "top": supported values: "left", "right"', id="not a literal"
    ),
    pytest.param({"port": "http"}, '.port: Invalid value: "http": must be an integer', id="in an optional field"),
    pytest.param({"labl": "x"}, '.labl: unknown field "labl" (did you mean "label"?)', id="an unknown field"),
    pytest.param({"weight_per_pod": 1}, '.weight_per_pod: unknown field "weight_per_pod"', id="Python's spelling"),
    pytest.param(
        {"weightPerPod": -1},
        ': Invalid value: {"weightPerPod":-1}: weightPerPod must not be negative',
        id="a rule of the author",
    ),
]


@pytest.mark.parametrize(("args", "message"), MISTAKES)
def test_a_mistake_names_its_field(args: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made_with(args)
    text = str(caught.value).partition(' (did you mean "weightPerPod"?)')[0]
    assert text == f"config.yaml: profiles[0].pluginConfig[0].args{message}"


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        made_with({"weightPerPod": "x", "share": "y", "labl": 1})
    assert len(str(caught.value).splitlines()) == 3


@dataclass
class NeededArgs:
    url: str


class Needy(Quiet):
    name = "Needy"
    args_type = NeededArgs  # type: ignore[assignment]


def test_arguments_that_must_be_given_are_missed_where_the_plugin_runs() -> None:
    Needy.made = []
    with pytest.raises(ConfigError) as caught:
        world_with(Needy)
    assert str(caught.value) == (
        'config.yaml: profiles[0].pluginConfig: plugin "Needy" has no entry here, and args.url: Required value'
    )


class Plain(Quiet):
    name = "Plain"
    args_type = None  # type: ignore[assignment]


def test_without_a_dataclass_the_mapping_itself_is_given() -> None:
    assert made_with({"any": ["thing"]}, Plain) == {"any": ["thing"]}


class Made:
    """For what constructors are given; subclasses have one each."""

    name = "Made"

    def filter_node(self, cycle: Any, pod: Any, node: Any) -> Status:
        return OK


class Two(Made):
    def __init__(self, args: Any, handle: Any) -> None:
        assert (args, hasattr(handle, "waiting_pods")) == ({"a": 1}, True)


class Swapped(Two):
    def __init__(self, handle: Any, args: Any) -> None:
        super().__init__(args, handle)


class One(Made):
    def __init__(self, settings: Any) -> None:
        assert settings == {"a": 1}


class OnlyHandle(Made):
    def __init__(self, handle: Any) -> None:
        assert hasattr(handle, "waiting_pods")


class ByKeyword(Two):
    def __init__(self, *, args: Any, handle: Any) -> None:
        super().__init__(args, handle)


class OwnDefault(Made):
    def __init__(self, limit: int = 3) -> None:
        assert limit == 3


class Failing(Made):
    def __init__(self) -> None:
        raise OSError("no such database")


@pytest.mark.parametrize("plugin", [Made, Two, Swapped, One, OnlyHandle, ByKeyword, OwnDefault])
def test_a_constructor_is_given_what_it_asks_for(plugin: type) -> None:
    world = world_with(plugin, config={"profiles": [{"pluginConfig": [{"name": "Made", "args": {"a": 1}}]}]})
    add(world, make.node("a"), make.pod("p"))
    world.run()
    assert world.bound == {"default/p": "a"}


def test_a_constructor_that_raises_is_told_as_kube_scheduler_tells_it() -> None:
    with pytest.raises(ConfigError, match='initializing plugin "Made": OSError: no such database'):
        world_with(Failing)
