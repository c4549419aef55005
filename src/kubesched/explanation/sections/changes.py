"""The smallest changes that would make the pod fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubesched.explanation.changes import ChangeKind
from kubesched.explanation.layout import Style, wrapped

if TYPE_CHECKING:
    from kubesched.explanation.explain import Explanation


def smallest_changes(explanation: Explanation, style: Style) -> list[str]:
    decision = explanation.decision
    if explanation.fits or decision is None or decision.error or decision.prefilter is None:
        return []
    changes = explanation.changes
    if not changes:
        return ["No single small change that would make it fit was found"]
    lines = ["Smallest changes that would make it fit, each tried out"]
    for number, change in enumerate(changes, 1):
        together = "together: " if change.kind is ChangeKind.COMBINED else ""
        where = "" if change.kind is ChangeKind.ADD_NODE or _names(change.description, change.node) else change.node
        told = f"{number}. {together}{change.description}" + (f" (then it fits on {where})" if where else "")
        lines.extend(wrapped(told, indent=2, hanging=3, width=style.width))
    return lines


def _names(description: str, node: str) -> bool:
    """Whether the sentence already says on which node."""
    return node in description.replace(",", " ").split()
