"""What the records of reports have (`-o json`, `to_dict()`): a line for each field, and JSON Schemas made of these.

Writes the page about them: python -m kubesched.planning.report_schemas > docs/reference/reports.md
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kubesched.planning.catalogue import CATALOGUE_VERSION

Fields = Mapping[str, str]
"""By path: the type, and after a colon what it means. `[]` stands for each of a list, `{}` for each value of a mapping;
`?` after a type: or null; `-` before the path: it may be left out."""

_BEGINNING = {
    "apiVersion": f"string: `{CATALOGUE_VERSION}`",
    "kind": "string: which report it is",
    "-kubesched": "string: the version that wrote it",
    "inputs": "string: a hash of the objects, the configuration and the question",
    "-seed": "integer: the seed, or the first of several",
    "-seeds[]": "integer: with which it was asked",
    "-orders": "integer: in how many orders of arrival",
    "-runs.yes": "integer: of several runs (seeds, each in all orders), in how many the answer is a yes",
    "-runs.of": "integer: how many runs there are",
    "-runs.each[]": "boolean: of each run",
    "assumptions[]": "string: what was supposed, and what had to be guessed",
}
_HEADLINE = {"headline": "string: the answer in a line"}
_TRY = {
    "strategy.maxSurge": "any: a number, or a percentage as a text",
    "strategy.maxUnavailable": "any: the same",
    "strategy.drainTimeoutSeconds": "number?: null is for ever",
    "strategy.onTimeout": "string: `stop`, `force` or `skip`",
    "strategy.bootSeconds": "number: until a new machine is there",
    "strategy.soakSeconds": "number: until the next node is drained",
    "strategy.order": "string: `name`, `zone`, `age` or `least-pods`",
    "strategy.reboots": "boolean: whether the same node comes back",
    "nodes": "integer: to be upgraded",
    "upgraded": "integer: of them",
    "skipped[]": "string: nodes that stayed as they were",
    "stuck[].node": "string: a node whose drain took too long",
    "stuck[].sinceSeconds": "number: when its drain began",
    "stuck[].pods[].pod": "string: a pod that stayed",
    "stuck[].pods[].budgets[]": "string: disruption budgets that kept it",
    "stuck[].outcome": "string: what became of the node",
    "durationSeconds": "number?: of the whole; null if it does not finish",
    "pods": "integer: that had to move at least once",
    "moves": "integer: of all pods",
    "forced": "integer: pods deleted in spite of their budgets",
    "mostPending": "integer: pods that waited at a time",
    "longestWaitSeconds": "number: of a pod",
    "waiting[]": "string: pods that wait in the end",
    "peakNodes": "integer: at a time",
    "extraNodeHours": "number: of machines beyond those that were there",
    "-room.before": "integer: pods of the room to keep that had a node before",
    "-room.lowest": "integer: at the worst moment",
    "-room.after": "integer: in the end",
    "-byRun[].finishes": "boolean: of each run, if there are several; all else is of the worst",
    "-byRun[].durationSeconds": "number?: of it",
    "-byRun[].moves": "integer: of it",
}
_MONEY = "string: an amount of the currency an hour"
KINDS: Mapping[str, tuple[str, Fields]] = {
    "CapacityReport": (
        "`kubesched capacity`",
        {
            **_HEADLINE,
            "capacity[].pod": "string: what was copied",
            "capacity[].nodes": "string: `all`, or a group such as `zone=a`",
            "capacity[].fits": "integer: how many more",
            "capacity[].limit": "string: `unschedulable`, `quota`, `victims`, or `max` if no more were asked for",
            "capacity[].perNode[].node": "string: where they would be",
            "capacity[].perNode[].fits": "integer: how many there",
            "capacity[].stoppedBy": "object?: what the next one is told",
            "capacity[].stoppedBy.message": "string: kube-scheduler's, or the API server's",
            "capacity[].stoppedBy.plugins[]": "string: whose plugins reject it",
            "capacity[].stoppedBy.nodesByReason{}": "integer: nodes by the reason against them",
            "-capacity[].stoppedBy.pod": "string: of an application, the pod that finds no node",
            "capacity[].victims[].workload": "string: who is preempted",
            "capacity[].victims[].pods": "integer: how many of its pods",
            "capacity[].remedies[].remedy": "string: a change",
            "capacity[].remedies[].more": "integer: copies that it brings",
            "capacity[].remedies[].atLeast": "boolean: no more were tried",
            "-capacity[].runs[]": "integer: with several seeds or orders, what fits in each run",
        },
    ),
    "GrowthReport": (
        "`kubesched capacity --inflate`",
        {
            **_HEADLINE,
            "growth.of": "string: `replicas` or `requests`",
            "growth.percent": "number: the last step at which everything has a node",
            "growth.moreReplicas": "integer: that it adds",
            "-growth.workloads[].workload": "string: which grows",
            "-growth.workloads[].now": "integer: replicas",
            "-growth.workloads[].grown": "integer: replicas at that step",
            "-growth.resources[].resource": "string: of which more is requested",
            "-growth.resources[].now": "integer: in the resource's base unit",
            "-growth.resources[].grown": "integer: at that step",
            "growth.stoppedBy": "object?: the next step",
            "growth.stoppedBy.percent": "number: of it",
            "growth.stoppedBy.pod": "string: who waits then",
            "growth.stoppedBy.message": "string: why",
        },
    ),
    "PlanReport": (
        "`kubesched plan`",
        {
            "answer": "string: `yes`, `no`, or `undecided`",
            "verified": "string: `scheduler`, or `packing`",
            "arrival": "string: `together`, `later` or `rest-later`: when the nodes join",
            "nodesBeforePods": "integer?: how many of `nodes` exist before the pods, if the others join later",
            "objective": "string: `cost` or `nodes`",
            "currency": "string: of all amounts",
            "cost": f"{_MONEY}, or a number of nodes",
            "costAMonth": "string?: 730 hours of it",
            "bound": "string: no plan is cheaper",
            "boundKind": "string: how it was found",
            "certificate": "string: `proven`, `exhausted`, or `within`",
            "gapPercent": "number: cost above the bound",
            "idealCost": "string?: what packing alone would cost",
            "mix[].shape": "string: to buy",
            "mix[].zone": "string: where",
            "mix[].capacityType": "string: such as `spot`",
            "mix[].pool": "string: of the catalogue",
            "mix[].count": "integer: how many",
            "mix[].price": "string: of one, an hour",
            "mix[].turn": "integer: with `--fill in-turn`, when it is filled",
            "nodes[].name": "string: a new node",
            "nodes[].offer": "string: what it is bought as",
            "nodes[].pods[]": "string: that come to it",
            "nodes[].requested{}": "any: by its pods",
            "nodes[].allocatable{}": "any: of it",
            "pods": "integer: planned for",
            "pending[].pod": "string: that stays without a node",
            "pending[].message": "string: why",
            "unplaceable[].pods[]": "string: that no machine of the catalogue holds",
            "unplaceable[].reasons{}": "array: machines by reason",
            "singleType": "object?: the cheapest plan of one machine",
            "singleType.shape": "string: of it",
            "singleType.count": "integer: how many",
            "singleType.cost": "string: of all",
            "alternatives[].cost": "string: of another plan",
            "alternatives[].nodes": "integer: that it buys",
            "alternatives[].types": "integer: kinds of machines",
            "alternatives[].mix": "any: what it buys",
            "neverWorthBuying{}": "string: by offer, why",
            "notes[]": "string: what else is worth knowing",
            "stopped": "string?: why the search ended early",
            "trials": "integer: mixes that the scheduler was asked about",
            "seeds[]": "integer: with which",
        },
    ),
    "ConsolidationReport": (
        "`kubesched consolidate`",
        {
            "policy": "string: whose search",
            "rules": "string: who says which pods keep their node",
            "nodes.before": "integer: nodes now",
            "nodes.after": "integer: and after all steps",
            "cost.currency": "string: or `nodes`, where no prices are known",
            "cost.before": "number: an hour",
            "cost.after": "number: an hour",
            "cost.saving": "number: an hour",
            "cost.savingAMonth": "number?: 730 hours of it",
            "cost.bound": "number: nothing costs less",
            "-savingByRun[]": "number: an hour, of the steps that each run finds; those reported hold in all",
            "evictions": "integer: of all steps",
            "stopped": "string: `fixed point`, `limit`, `time` or `interrupted`",
            "steps[].round": "integer: steps of one round go together",
            "steps[].cordon[]": "string: nodes to cordon before",
            "steps[].launch[].name": "string: a machine that comes first",
            "steps[].launch[].offer": "string: what it is bought as",
            "steps[].launch[].price": "number: an hour",
            "steps[].delete[]": "string: nodes to drain and delete",
            "steps[].evictions": "integer: pods that leave",
            "steps[].waves": "integer: turns in which budgets let them",
            "steps[].saving": "number: an hour",
            "steps[].disruption": "number: as Karpenter counts it",
            "steps[].balancedScore": "number: of Karpenter's policy Balanced",
            "steps[].moves[].pod": "string: that moves",
            "steps[].moves[].workload": "string: whose it is",
            "steps[].moves[].from": "string: its node",
            "steps[].moves[].to": "string: the node that it finds",
            "steps[].waited[]": "string: pods that wait until the node is gone (`--allow-wait`)",
            "steps[].lost[]": "string: pods that nobody makes again (`--force`)",
            "curve[].evictions": "integer: so far",
            "curve[].saving": "number: so far",
            "kept[].node": "string: that stays",
            "kept[].reason": "string: in the words of the rules",
            "kept[].pod": "string?: because of which",
            "kept[].text": "string: what it says",
            "otherPolicies{}": "number: what they would save",
            "timeline": "object?: the steps in virtual time (`--timeline`)",
            "timeline.finishes": "boolean: whether all pods run again after the last step",
            "timeline.durationSeconds": "number?: until then",
            "timeline.bootSeconds": "number: from the launch of a machine until it is ready",
            "timeline.evictions": "integer: pods that were evicted",
            "timeline.mostPending": "integer: pods without a node at a time",
            "timeline.longestWaitSeconds": "number: that a pod waited for a node",
            "timeline.waits[].pod": "string: that waited, the longest first",
            "timeline.waits[].seconds": "number: how long",
            "timeline.pending[]": "string: pods without a node in the end",
            "timeline.blocked[].node": "string: that is never empty",
            "timeline.blocked[].pods[]": "string: that cannot be evicted",
        },
    ),
    "DryRunReport": (
        "`kubesched consolidate --node`",
        {
            "rules": "string: who says which pods keep their node",
            "nodes[].node": "string: that was asked about",
            "nodes[].canGo": "boolean: whether it could",
            "nodes[].blockers[].reason": "string: in the words of the rules",
            "nodes[].blockers[].pod": "string?: because of which",
            "nodes[].blockers[].text": "string: what it says",
            "nodes[].moves[].pod": "string: that finds a node",
            "nodes[].moves[].workload": "string: whose it is",
            "nodes[].moves[].to": "string: that node",
            "nodes[].stuck[].pod": "string: that finds none",
            "nodes[].stuck[].message": "string: why",
            "nodes[].waves": "integer: turns in which budgets let them leave",
            "-nodes[].canGoByRun[]": "boolean: of each of several runs; all else is of one in which it cannot",
        },
    ),
    "OutageReport": (
        "`kubesched outage`",
        {
            "survives": "boolean: whether no case leaves pods without a node",
            "priorityAtLeast": "integer?: only these pods count",
            "forceDeleteAfterSeconds": "number?: pods on lost nodes are then deleted",
            "casesNotPlayed": "integer: because it was stopped",
            "stopped": "string?: why",
            "-random.nodes": "integer: that fail at a time",
            "-random.trials": "integer: how often",
            "-random.lossy": "integer: trials that leave pods without a node",
            "-random.interval[]": "number: of their share, at 95 %",
            "missing.pods": "integer: in the worst case",
            "missing.requests{}": "any: what they ask for together",
            "cases[].case": "string: what fails",
            "cases[].nodes[]": "string: these nodes",
            "cases[].hit": "integer: pods on them",
            "cases[].missing": "integer: that are not replaced",
            "cases[].preempted": "integer: others that had to leave",
            "cases[].lastReplacementSeconds": "number?: after the failure",
            "cases[].placedIfGone": "integer?: of the missing, with `--gone`",
            "-cases[].missingByRun[]": "integer: of each run, if there are several; all else is of the worst",
            "cases[].workloads[].namespace": "string: of a workload that was hit",
            "cases[].workloads[].workload": "string: its kind and name",
            "cases[].workloads[].priority": "integer: of its pods",
            "cases[].workloads[].had": "integer: pods before",
            "cases[].workloads[].hit": "integer: of them on the failed nodes",
            "cases[].workloads[].left": "integer: pods in the end",
            "cases[].workloads[].lowest": "integer: pods at the worst moment",
            "cases[].workloads[].missing": "integer: fewer than before",
            "cases[].workloads[].reason": "string?: what the scheduler says to those that wait",
            "cases[].workloads[].requests{}": "any: of what is missing",
        },
    ),
    "UpgradeReport": (
        "`kubesched upgrade`",
        {
            "finishes": "boolean?: null if it was stopped before that was known",
            "stopped": "string?: why",
            "pool": "string?: null is all nodes",
            "preset": "string?: whose defaults",
            **_TRY,
            "extraCost": "number?: of the extra node hours",
            "currency": "string?: of it",
            "smallestSurge": "integer?: that finishes (`--find-surge`)",
            "bestOrder": "string?: with the fewest moves (`--find-order`)",
            **{f"{'-' * path.startswith('-')}tries[].{path.removeprefix('-')}": told for path, told in _TRY.items()},
        },
    ),
    "OptimalityReport": (
        "`kubesched optimal`",
        {
            "nodes.now": "integer: nodes",
            "nodes.atLeast": "integer: that any placement needs",
            "nodes.packed": "integer?: on which a packing was found",
            "cost.currency": "string: of all amounts",
            "cost.now": "string?: an hour",
            "cost.atLeast": "string?: on machines of the catalogue",
            "cost.packed": "string?: of a packing on them",
            "-pendingByRun[]": "integer: of each run, pods without a node; the one with the most is measured",
            "resources[].resource": "string: such as cpu",
            "resources[].allocatable": "integer: in its base unit",
            "resources[].requested": "integer: of it",
            "resources[].fragmentedPercent": "number: of what is free",
            "resources[].unusablePercent": "number: of what is free",
            "resources[].stranded": "integer: beyond the ratio that pods ask for",
            "resources[].imbalancePercent": "number: between nodes",
            "priorities[].priority": "integer: and higher ones",
            "priorities[].pods": "integer: there are",
            "priorities[].placed": "integer: have a node",
            "priorities[].most": "integer: could have one",
            "moves[].step": "integer: in this order",
            "moves[].pod": "string: that moves",
            "moves[].priority": "integer: of it",
            "moves[].fromNode": "string?: null for one that waits",
            "moves[].toNode": "string?: null for one that has to wait",
            "moves[].kind": "string: what the step is for",
        },
    ),
    "ComparisonReport": (
        "`kubesched compare`",
        {
            **_HEADLINE,
            "baseline": "string: the variant that others are compared with",
            "seeds": "integer: that were run",
            "variants[].name": "string: of the variant",
            "variants[].metrics[].metric": "string: its name",
            "variants[].metrics[].unit": "string: of all its numbers",
            "variants[].metrics[].baseline": "number: mean",
            "variants[].metrics[].variant": "number: mean",
            "variants[].metrics[].difference": "number: of the means",
            "variants[].metrics[].interval[]": "number: of the difference, 95 %; with fewer than ten seeds the range",
            "variants[].metrics[].p": "number: of a sign test, after Holm",
            "variants[].metrics[].verdict": "string: `better`, `worse`, `same`, or why none is given",
            "variants[].parts": "object?: the first pod that goes elsewhere",
            "variants[].parts.pod": "string: that pod",
            "variants[].parts.baseline": "string: its node with the baseline",
            "variants[].parts.variant": "string: its node with the variant",
            "variants[].parts.deciding[]": "string: plugins that decide",
            "variants[].parts.tie": "boolean: one of them leaves it to chance",
            "-variants[].parts.scoresOfBaseline.rejected{}": "string: a node that it does not let the pod to",
            "-variants[].parts.scoresOfBaseline.plugins{}": "array: weighted scores of both nodes",
            "-variants[].parts.scoresOfVariant.rejected{}": "string: the same",
            "-variants[].parts.scoresOfVariant.plugins{}": "array: the same",
        },
    ),
    "CheckReport": (
        "`kubesched check`",
        {
            "name": "string: of the check file",
            "passed": "boolean: all checks do",
            "undecided": "boolean: none fails, and one depends on the seed",
            "seeds": "integer: of each check",
            "checks[].name": "string: of the check",
            "checks[].rule": "string: such as `fits`",
            "checks[].result": "string: `yes`, `no` or `undecided`",
            "checks[].headline": "string: in a line",
            "checks[].findings[].message": "string: what was found",
            "-checks[].findings[].about": "string: about which object",
            "-checks[].findings[].file": "string: where it is written",
            "-checks[].findings[].line": "integer: where in it",
        },
    ),
}


def fields_of(kind: str) -> dict[str, str]:
    about, rest = KINDS[kind]
    return {**_BEGINNING, **rest} if about else {}


def schema_of(kind: str) -> dict[str, Any]:
    """A JSON Schema (2020-12)."""
    root: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{CATALOGUE_VERSION}/{kind}",
        "type": "object",
        "properties": {},
        "required": [],
    }
    for path, told in fields_of(kind).items():
        _add(root, path.removeprefix("-").split("."), told, is_optional=path.startswith("-"))
    root["properties"]["kind"] = {"const": kind}
    root["properties"]["apiVersion"] = {"const": CATALOGUE_VERSION}
    return root


def _add(parent: dict[str, Any], path: list[str], told: str, *, is_optional: bool) -> None:
    name, rest = path[0], path[1:]
    plain = name.removesuffix("[]").removesuffix("{}")
    child = parent["properties"].setdefault(plain, {})
    if not is_optional and plain not in parent["required"]:
        parent["required"].append(plain)
    if name.endswith("[]"):
        child.setdefault("type", "array")
        child = child.setdefault("items", {})
    elif name.endswith("{}"):
        child.setdefault("type", "object")
        child = child.setdefault("additionalProperties", {})
    if rest:
        child.setdefault("type", "object")
        child.setdefault("properties", {})
        child.setdefault("required", [])
        _add(child, rest, told, is_optional=is_optional)
        return
    kind, _, meaning = told.partition(": ")
    if kind != "any":
        child["type"] = [kind.removesuffix("?"), "null"] if kind.endswith("?") else kind
    child["description"] = meaning


PAGE = "docs/reference/reports.md"
_INTRODUCTION = f"""\
# Records of reports

What `-o json` and `-o yaml` print, and `report.to_dict()` gives in Python. Each record says its `apiVersion`
(`{CATALOGUE_VERSION}`: fields may still change between minor versions) and `kind`. Reports with the same `inputs`
answered the same question about the same objects. Prices as texts are exact; times are in seconds. Fields are spelled
as in Kubernetes (`maxSurge`); the columns of tables (`-o csv`, `report.tables`) as in Python (`max_surge`).

In paths, `[]` stands for each of a list and `{{}}` for each value of a mapping. Fields in brackets may be left out. The
JSON Schemas of all kinds are in [report-schemas.json](report-schemas.json). Text for people (`-o text`, `markdown`,
`html`) has no such promise.

This page is generated from the code (`kubesched.planning.report_schemas`).
"""


def page() -> str:
    parts = [_INTRODUCTION, "## In all of them\n", _table(_BEGINNING)]
    for kind, (command, fields) in KINDS.items():
        parts += [f"## {kind}\n", f"Of {command}.\n", _table(fields)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _table(fields: Fields) -> str:
    rows = ["| field | type | |", "|---|---|---|"]
    for path, told in fields.items():
        kind, _, meaning = told.partition(": ")
        shown = f"[`{path[1:]}`]" if path.startswith("-") else f"`{path}`"
        rows.append(f"| {shown} | {kind.replace('?', ' or null')} | {meaning} |")
    return "\n".join(rows) + "\n"


def schemas() -> str:
    return json.dumps({kind: schema_of(kind) for kind in KINDS}, indent=1) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(schemas() if "schemas" in sys.argv[1:] else page())
