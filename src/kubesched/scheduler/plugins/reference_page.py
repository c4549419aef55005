"""The reference page of the in-tree plugins, made from the registry and the default configuration.

python -m kubesched.scheduler.plugins.reference_page > docs/reference/plugins.md
"""

from __future__ import annotations

import sys

from kubesched.framework.extension_points import EXTENSION_POINTS
from kubesched.scheduler import config
from kubesched.scheduler.plugins.registry import REGISTRY, capabilities

_HEAD = """# In-tree plugins

This page is generated (`make docs`). Plugins stand in the order in which they run by default; the number behind a name
is the default weight of its score.

"""
_OFF_BY_DEFAULT = """
Off by default: a profile switches them on by name, under `plugins`.

"""
_COLUMNS = """| plugin | weight | extension points | what it does |
|---|---|---|---|
"""


def page() -> str:
    profile = config.resolve_profiles(config.default(), capabilities())[0]
    weights = {plugin.name: plugin.weight for plugin in profile.points["score"]}
    enabled = [ref.name for ref in config.default().profiles[0].plugins.multi_point.enabled]
    rows = [_row(name, weights.get(name)) for name in enabled]
    others = [_row(name, None) for name in REGISTRY if name not in enabled]
    return "".join([_HEAD, _COLUMNS, *rows, *([_OFF_BY_DEFAULT, _COLUMNS, *others] if others else [])])


def _row(name: str, weight: int | None) -> str:
    points = capabilities()[name]
    extension_points = ", ".join(point for point in EXTENSION_POINTS if point in points)
    return f"| {name} | {weight or ''} | {extension_points} | {_summary(name)} |\n"


def _summary(name: str) -> str:
    """The first sentence of the plugin's module, or of its package."""
    factory = REGISTRY[name]
    home = ".".join(factory.__module__.split(".")[:4])
    text = " ".join((sys.modules[home].__doc__ or "").split("\n\n")[0].split())
    return text.removeprefix(f"{name}: ").replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
