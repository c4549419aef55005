"""An explanation as the page shows it: the cause, groups of nodes with a few rows of numbers each, what would help, and
for every node its group or its score. Pure: made from the report that `kubesched explain -o json` prints.

A report names every node several times over; this names each once, so that five thousand of them still make a short
answer.
"""

from __future__ import annotations

from typing import Any

from kubesched.playground.web.sources import JsonObject

MOST_ROWS = 6
"""Nodes of a group that are shown with their numbers."""
MOST_SCORED = 8
MOST_VICTIMS = 10
_AMOUNTS = ("requested", "free", "used", "allocatable", "missing")


def why(report: JsonObject) -> JsonObject:
    """What `/api/explain` and `/api/whatif` answer."""
    decision = report.get("withoutGates", report)["explanation"]
    groups = report["groups"]
    totals = {name: node["total"] for name, node in decision["nodes"].items() if node.get("fit")}
    answer: JsonObject = {
        "pod": report["pod"],
        "scheduler": report["scheduler"],
        "headline": report["headline"],
        "cause": report["cause"],
        "message": decision["message"],
        "nodes": len(decision["nodes"]),
        "fit": len(totals),
        "best": decision["best"],
        "groups": [_group(group, report["numbers"]) for group in groups],
        "changes": report["changes"],
        "scores": _scores(decision["nodes"]),
        "totals": totals,
        "groupOf": {name: index for index, group in enumerate(groups) for name in group["nodes"]},
    }
    preemption = decision.get("preemption")
    if preemption and preemption.get("node"):
        answer["preemption"] = {"node": preemption["node"], "victims": preemption["victims"][:MOST_VICTIMS]}
    return answer


def _group(group: JsonObject, numbers: dict[str, list[JsonObject]]) -> JsonObject:
    nodes = group["nodes"]
    rows = [
        {"node": name, "resource": finding["resource"]} | {one: finding[one] for one in _AMOUNTS}
        for name in nodes[:MOST_ROWS]
        for finding in numbers.get(name, ())
        if "resource" in finding
    ]
    said = list(dict.fromkeys(reason for status in group["rejections"] for reason in status["reasons"]))
    return {
        "summary": group["summary"],
        "nearness": group["nearness"],
        "count": group["count"],
        "reasons": said,
        "plugins": [status["plugin"] for status in group["rejections"]],
        "names": nodes[:MOST_ROWS],
        "rows": rows,
    }


def _scores(nodes: dict[str, JsonObject]) -> list[JsonObject]:
    """The best nodes with every plugin's part of their total."""
    fitting = [(name, node) for name, node in nodes.items() if node.get("fit")]
    fitting.sort(key=lambda pair: (-pair[1]["total"], pair[0]))
    return [_score(name, node) for name, node in fitting[:MOST_SCORED]]


def _score(name: str, node: JsonObject) -> dict[str, Any]:
    return {"node": name, "total": node["total"], "plugins": node.get("scores") or {}}
