"""The order of a list after a strategic merge: as the patch says for what it names, the live order for the rest."""

from __future__ import annotations

from typing import Any


def in_order(merged: list[Any], wanted: list[Any], live: list[Any], merge_key: str) -> list[Any]:
    """Items that ``wanted`` names come in its order; the others are put in where the live list has them.

    An item of the live list goes before the first named item that follows it there, and to the end if none does.
    """

    def identity(item: Any) -> Any:
        return item.get(merge_key) if merge_key and isinstance(item, dict) else item

    wanted_order = [identity(item) for item in wanted]
    live_order = [identity(item) for item in live]
    named = [item for item in merged if identity(item) in wanted_order]
    named.sort(key=lambda item: wanted_order.index(identity(item)))
    others = [item for item in merged if identity(item) not in wanted_order]
    ordered: list[Any] = []
    while named and others:
        ordered.append((others if _precedes(identity(others[0]), identity(named[0]), live_order) else named).pop(0))
    return ordered + named + others


def _precedes(other: Any, named: Any, live_order: list[Any]) -> bool:
    return other in live_order and named in live_order and live_order.index(other) < live_order.index(named)
