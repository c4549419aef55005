"""`kubesched config view --emulate`: what an older scheduler runs, as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesched.older.config import Emulation

Row = tuple[str, ...]


def view_lines(emulation: Emulation) -> Iterator[str]:
    """The answer first; then each profile, and what counts besides."""
    from kubesched.older.config.running import how_many, running, summary

    record = running(emulation)
    yield summary(emulation)
    several = len(emulation.profiles) > 1
    for profile, shown in zip(emulation.profiles, record["profiles"], strict=True):
        yield ""
        if several:
            yield f"Profile {shown['schedulerName']}: {how_many(profile, emulation.generation)}"
        yield from _plugins(shown) if "plugins" in shown else _predicates(shown)
    yield ""
    yield from _table(list(_settings(record)), ())


def _predicates(profile: dict[str, Any]) -> Iterator[str]:
    rows = [(entry["name"], _args(entry)) for entry in profile["predicates"]]
    yield from _table(rows, ("PREDICATE", "ARGUMENTS"))
    yield ""
    rows_of_priorities = [(entry["name"], str(entry["weight"]), _args(entry)) for entry in profile["priorities"]]
    yield from _table(rows_of_priorities, ("PRIORITY", "WEIGHT", "ARGUMENTS"))


def _plugins(profile: dict[str, Any]) -> Iterator[str]:
    rows = []
    for point, entries in profile["plugins"].items():
        for entry in entries or [{"name": "-"}]:
            older = entry.get("predicate") or entry.get("priority") or ""
            rows.append((point, entry["name"], str(entry.get("weight", "")), older, _args(entry)))
    yield from _table(rows, ("POINT", "PLUGIN", "WEIGHT", "PREDICATE OR PRIORITY", "ARGUMENTS"))


def _settings(record: dict[str, Any]) -> Iterator[Row]:
    profiles = record["profiles"]
    yield "preemption", _by_profile(profiles, "preempts")
    if any(profile["checksAllPredicates"] for profile in profiles):
        yield "check all predicates of a node", _by_profile(profiles, "checksAllPredicates")
    share = record["percentageOfNodesToScore"]
    yield "nodes to score", f"{share} %" if share else "depends on cluster size"
    for name, value in sorted(record["featureGates"].items()):
        yield f"feature gate {name}", "on" if value else "off"
    for extender in record.get("extenders", ()):
        verbs = [verb for verb in ("filter", "prioritize", "preempt", "bind") if extender.get(f"{verb}Verb")]
        yield f"extender {extender['urlPrefix']}", ", ".join(verbs) or "no verbs"


def _by_profile(profiles: Sequence[dict[str, Any]], field: str) -> str:
    said = ["yes" if profile[field] else "no" for profile in profiles]
    return (
        said[0]
        if len(set(said)) == 1
        else ", ".join(f"{profile['schedulerName']}: {answer}" for profile, answer in zip(profiles, said, strict=True))
    )


def _args(entry: dict[str, Any]) -> str:
    return json.dumps(entry["args"], ensure_ascii=False) if entry.get("args") else ""


def _table(rows: Sequence[Row], heading: Row) -> Iterator[str]:
    """Columns under their headings; a column in which nothing stands is left out."""
    lines = [heading, *rows] if heading else list(rows)
    kept = [column for column in range(len(lines[0])) if not rows or any(row[column] for row in rows)] if lines else []
    widths = {column: max(len(line[column]) for line in lines) for column in kept}
    for line in lines:
        yield "  ".join(line[column].ljust(widths[column]) for column in kept).rstrip()
    if heading and not rows:
        yield "none"
