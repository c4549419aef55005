"""What of a played scenario is compared: numbers of pods by kind, racks, conditions and events, in words that do not
name what is left to chance or belongs to other scenarios.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from harness.group_comparison.playing import Played
from harness.group_comparison.scenarios import SCENARIO, rack_key

_WORDS = (
    (re.compile(r"\d+/\d+ nodes"), "N nodes"),
    (re.compile(r"\d+ node\(s\) didn't match Pod's node affinity/selector"), ""),
    (re.compile(r"\d+ Preemption is not helpful for scheduling"), ""),
    (re.compile(r": , "), ": "),
    (re.compile(r", ,"), ","),
    (re.compile(r", \."), "."),
    (re.compile(r"podgroup [0-9a-f-]{36}"), "podgroup"),
    (re.compile(r"pod [0-9a-f-]{36} on node \S+"), "pod on node"),
)
"""Counts are of the whole cluster, in which other scenarios are played."""

Outcome = tuple[tuple[str, str], ...]
"""Lines, each with what it is about; equal if nothing but chance differs."""


def outcome_of(played: Played) -> Outcome:
    bound = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in played.pods if pod["spec"].get("nodeName")}
    racks = {node["metadata"]["name"]: _rack(node["metadata"]["labels"]) for node in played.nodes}
    members = [pod for pod in played.pods if pod["spec"].get("schedulingGroup") and pod["metadata"]["name"] in bound]
    lines: Counter[tuple[str, str]] = Counter()
    for name in bound:
        lines["bound", _kind(name)] += 1
    for name in played.made - {pod["metadata"]["name"] for pod in played.pods}:
        lines["gone", _kind(name)] += 1
    lines["racks", str(len({racks[bound[pod["metadata"]["name"]]] for pod in members}))] += 1
    for pod in played.pods:
        if pod["metadata"]["name"] not in bound:
            lines["pending", f"{_kind(pod['metadata']['name'])}: {_condition(pod, 'PodScheduled')}"] += 1
    for group in played.groups:
        for one in group.get("status", {}).get("conditions", []):
            lines["group", f"{group['metadata']['name']}: {_said(one)}"] += 1
    for (kind, told), count in _events(played).items():
        lines["events", f"{kind}: {', '.join(told)}"] += count
    return tuple(sorted((about, f"{count} x {text}") for (about, text), count in lines.items()))


def _rack(labels: dict[str, str]) -> str:
    return labels.get(rack_key(labels[SCENARIO]), "")


def _events(played: Played) -> Counter[tuple[str, tuple[str, ...]]]:
    """How many pods of a kind had these."""
    of_pods: dict[str, set[str]] = {}
    for event in played.events:
        note = f" ({_worded(event['message'])})" if event["reason"] == "Preempted" else ""
        of_pods.setdefault(event["involvedObject"]["name"], set()).add(event["reason"] + note)
    return Counter((_kind(name), tuple(sorted(told))) for name, told in of_pods.items())


def _condition(pod: Any, wanted: str) -> str:
    return next((_said(one) for one in pod.get("status", {}).get("conditions", []) if one["type"] == wanted), "-")


def _said(condition: Any) -> str:
    words = (condition["type"], condition["status"], condition.get("reason", ""), _worded(condition.get("message", "")))
    return " ".join(words).rstrip()


def _worded(message: str) -> str:
    for pattern, text in _WORDS:
        message = pattern.sub(text, message)
    return message


def _kind(name: str) -> str:
    return name.rpartition("-")[0]
