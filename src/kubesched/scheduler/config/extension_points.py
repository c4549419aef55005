"""The names of the extension points, as `plugins` in a profile spells them.

Next: `profile` for the sets of plugins at each, `resolve` for what they come to.
"""

from __future__ import annotations

from typing import Final

EXTENSION_POINTS: Final = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "placementGenerate",
    "placementScore",
)
"""Every point at which a plugin can run."""

MULTI_POINT: Final = "multiPoint"
"""Not a point of its own: a plugin enabled here runs at every point that it implements."""

WEIGHTED_POINTS: Final = frozenset({"score", "placementScore"})
"""The points where a plugin's weight counts."""


def interface_name(point: str) -> str:
    """What kube-scheduler's messages call a plugin of this point, such as `PreFilterPlugin`."""
    return f"{point[0].upper()}{point[1:]}Plugin"
