"""A file's plugins are merged with the default ones as kube-scheduler merges them."""

from __future__ import annotations

import pytest

from kubesched.scheduler.config import PluginRef, Plugins, PluginSet
from kubesched.scheduler.config.configuration import merge_plugin_set, merge_plugins


def plugin_set(enabled: str = "", disabled: str = "") -> PluginSet:
    """`"A B:5"` is plugin A, then plugin B with weight 5."""
    return PluginSet(_refs(enabled), _refs(disabled))


def _refs(text: str) -> tuple[PluginRef, ...]:
    pairs = (word.partition(":") for word in text.split())
    return tuple(PluginRef(name, int(weight or 0)) for name, _, weight in pairs)


@pytest.mark.parametrize(
    ("defaults", "custom", "merged"),
    [
        pytest.param(plugin_set("A B"), plugin_set(), plugin_set("A B"), id="nothing said, nothing changed"),
        pytest.param(plugin_set("A B"), plugin_set("X"), plugin_set("A B X"), id="a new plugin goes to the end"),
        pytest.param(
            plugin_set("A B"), plugin_set(disabled="A"), plugin_set("B", "A"), id="a disabled plugin stays on record"
        ),
        pytest.param(plugin_set("A B"), plugin_set(disabled="*"), plugin_set("", "*"), id="an asterisk disables all"),
        pytest.param(
            plugin_set("A B"), plugin_set("B X A", "*"), plugin_set("B X A", "*"), id="disable all to set the order"
        ),
        pytest.param(
            plugin_set("A B C"), plugin_set("X B", "B"), plugin_set("A C X B", "B"), id="disable one to move it"
        ),
        pytest.param(
            plugin_set("A:1 B:1 C:1"),
            plugin_set("C:7 A:5 X"),
            plugin_set("A:5 B:1 C:7 X"),
            id="plugins named again are replaced in place",
        ),
        pytest.param(
            plugin_set("A B C"),
            plugin_set("B:2 B:4"),
            plugin_set("A B:4 C B:2"),
            id="of a plugin named twice the later entry takes the place",
        ),
        pytest.param(
            plugin_set("A:3"), plugin_set("A"), plugin_set("A"), id="a plugin named again without weight loses its own"
        ),
        pytest.param(
            plugin_set("A", "B"), plugin_set("X", "C:3"), plugin_set("A X", "C B"), id="what both disable is disabled"
        ),
        pytest.param(
            plugin_set("A"), plugin_set(disabled="Unheard"), plugin_set("A", "Unheard"), id="an unknown plugin disabled"
        ),
    ],
)
def test_sets_are_merged_by_the_rules(defaults: PluginSet, custom: PluginSet, merged: PluginSet) -> None:
    assert merge_plugin_set(defaults, custom) == merged


def test_each_point_is_merged_by_itself() -> None:
    defaults = Plugins(multi_point=plugin_set("A B"), score=plugin_set("S", "T"))
    custom = Plugins(multi_point=plugin_set("X", "B"), score=plugin_set(disabled="S"), bind=plugin_set("Y"))
    assert merge_plugins(defaults, custom) == Plugins(
        multi_point=plugin_set("A X", "B"), score=plugin_set("", "S T"), bind=plugin_set("Y")
    )
