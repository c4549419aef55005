"""The report as text: what became of each workload, what waits and why, preemptions, and how full the nodes are.

Each section is a list of lines, empty where there is nothing to tell. The wide form has every pod. Notebooks get the
same as HTML (`report_html`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kubesched.explanation.html import block, html_table, paragraph
from kubesched.explanation.layout import Style, Tone, counted, listed, readable, table, wrapped
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.requests import CPU, MEMORY, PODS
from kubesched.k8s.workloads.pod_states import POD_PENDING, POD_RUNNING
from kubesched.scheduler.engine.enqueue import checked_pre_enqueue
from kubesched.simulator.autoscaling import LAUNCHED, REMOVED
from kubesched.simulator.virtual.cluster import VirtualCluster

if TYPE_CHECKING:
    from kubesched.simulator.report import SimulationReport
    from kubesched.simulator.sequence import PlacedSequence


_AN_HOUR_S = 3600
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def readable_span(seconds: float) -> str:
    """The two largest units; below a minute with what is left of a second."""
    if seconds < 60:
        return f"{round(seconds, 3):g}s"
    whole = round(seconds)
    parts: list[tuple[int, str]] = []
    for letter, size in _UNITS:
        amount, whole = divmod(whole, size)
        if amount or parts:
            parts.append((amount, letter))
    return "".join(f"{amount}{letter}" for amount, letter in parts[:2] if amount)


def exact_span(seconds: float) -> str:
    """With all units, to the second; below a minute with what is left of a second."""
    if seconds < 60:
        return readable_span(seconds)
    whole, parts = round(seconds), []
    for letter, size in _UNITS:
        amount, whole = divmod(whole, size)
        if amount:
            parts.append(f"{amount}{letter}")
    return "".join(parts)


NOT_TRIED = "not tried yet"


def pending_messages(cluster: VirtualCluster) -> dict[str, str]:
    """By the pod's uid: what the scheduler last said, or why it never looked at the pod."""
    found = {}
    for record in cluster.ledger.pods.values():
        if record.node or record.is_gone:
            continue
        pod = cluster.store.find(Pod, record.key)
        if pod is not None and pod.metadata.uid == record.uid and not pod.is_terminal:
            found[record.uid] = _unasked(cluster, pod) or record.message or NOT_TRIED
    return found


def _unasked(cluster: VirtualCluster, pod: Pod) -> str:
    """Why the scheduler does not even try; empty if it does."""
    scheduler = cluster.loop.schedulers.get(pod.spec.scheduler_name)
    if scheduler is None:
        return f'no scheduler is called "{pod.spec.scheduler_name}"'
    info = cluster.loop.cluster.pending.get(pod.pod_key)
    gate = None if info is None else checked_pre_enqueue(scheduler.profile, info)
    return "" if gate is None or gate.is_success else gate.message


_NODES_LISTED = 4
_NODES_WIDTH = 64
_QUIET_SHOWN = 10
"""Of so many workloads, also those are shown to which nothing happened."""
_ROWS_SHOWN = 40
_ENDED = ("Succeeded", "Failed", "Gone")


def workload_section(report: SimulationReport, style: Style) -> list[str]:
    """What became of the pods of each workload, and on which nodes they are."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for row in report.pods.named():
        owner = row.workload or f"Pod {row.name}"
        groups.setdefault((str(row.namespace), str(owner)), []).append(row)
    not_created: Counter[tuple[str, str]] = Counter()
    for row in report.not_created.named():
        not_created[str(row.namespace), str(row.workload)] += int(row.pods or 0)
    waiting = {key: _is_waiting(groups.get(key, []), not_created[key]) for key in {**groups, **not_created}}
    keys = sorted(waiting, key=lambda key: (not waiting[key], key))
    quiet = [] if style.wide or len(keys) <= _QUIET_SHOWN else [key for key in keys if _is_quiet(groups.get(key, []))]
    if len(quiet) == len(keys):
        quiet = []
    rows = [
        [*key, _states(groups.get(key, []), not_created[key]), _places(groups.get(key, []), style)]
        for key in keys
        if key not in quiet
    ]
    lines = _cut(
        "Workloads",
        table(["NAMESPACE", "WORKLOAD", "PODS", "NODES"], rows, indent=2, n_left=4),
        len(rows),
        style,
    )
    if quiet:
        n_pods = sum(len(groups[key]) for key in quiet)
        whose = f"{counted(len(quiet), 'workload')} whose {counted(n_pods, 'pod')} stay where they were"
        lines.append(f"  and {whose} (-o wide)")
    return lines


def _is_waiting(pods: list[Any], n_not_created: int) -> bool:
    return n_not_created > 0 or any(pod.state == POD_PENDING for pod in pods)


def _is_quiet(pods: list[Any]) -> bool:
    """Whether nothing happened to them: they have the nodes that they had."""
    return bool(pods) and all(pod.state == POD_RUNNING and pod.node and pod.scheduled_s is None for pod in pods)


def pod_section(report: SimulationReport, style: Style) -> list[str]:
    rows = [
        [
            f"{row.namespace}/{row.name}",
            str(row.workload or "-"),
            str(row.state),
            str(row.node or "-"),
            _span(row.created_s),
            _span(row.scheduled_s),
            _span(row.ended_s),
            str(row.attempts),
        ]
        for row in report.pods.named()
    ]
    header = ["POD", "WORKLOAD", "STATE", "NODE", "CREATED", "SCHEDULED", "ENDED", "ATTEMPTS"]
    return [style.heading("Pods"), *table(header, rows, indent=2, n_left=4)] if rows else []


def pod_group_section(report: SimulationReport, style: Style) -> list[str]:
    """Which groups are scheduled, and what is said of the others."""
    if not report.pod_groups:
        return []
    rows = []
    for row in report.pod_groups:
        needs = f"at least {row['min_count']}" if row["min_count"] else "-"
        state = {True: "scheduled", False: row["message"], None: "not tried"}[row["scheduled"]]
        after_s = row["complete_after_s"]
        complete = "-" if after_s is None else f"after {_span(after_s)}"
        rows.append([row["namespace"], row["name"], needs, f"{row['placed']} of {row['pods']}", complete, state])
    header = ["NAMESPACE", "POD GROUP", "NEEDS", "PODS WITH A NODE", "COMPLETE", "STATE"]
    return [style.heading("Pod groups"), *table(header, rows, indent=2, n_left=6)]


def pending_section(report: SimulationReport, style: Style) -> list[str]:
    """Pods without a node, those with the same reason together."""
    by_message: dict[str, list[str]] = {}
    for row in report.pending:
        by_message.setdefault(row["message"], []).append(f"{row['namespace']}/{row['name']}")
    not_created: dict[str, list[tuple[str, int]]] = {}
    for more in report.not_created.named():
        name = f"{more.workload} in {more.namespace}"
        not_created.setdefault(str(more.message or NOT_TRIED), []).append((name, int(more.pods or 0)))
    waiting = [
        (message, by_message.get(message, []), not_created.get(message, [])) for message in by_message | not_created
    ]
    waiting.sort(key=lambda entry: (-len(entry[1]) - sum(n for _, n in entry[2]), entry[1]))
    lines = [style.heading("Pending")] if waiting else []
    for message, pods, more_of in waiting:
        n_more = sum(n for _, n in more_of)
        names = listed(pods, style.most(3), n_more)
        lines.extend(wrapped(f"{counted(len(pods) + n_more, 'pod')}: {names}", indent=2, hanging=2, width=style.width))
        lines.extend(wrapped(message, indent=4, hanging=0, width=style.width))
        for name, n in more_of:
            told = f"{n} of {name} were not created: they wait behind those that were, and ask for the same."
            lines.extend(wrapped(told, indent=4, hanging=0, width=style.width))
    return lines


def preemption_section(report: SimulationReport, style: Style) -> list[str]:
    rows = [[_span(row.at_s), str(row.preemptor), str(row.victim), str(row.node)] for row in report.preemptions.named()]
    lines = table(["AT", "PREEMPTOR", "VICTIM", "NODE"], rows, indent=2, n_left=4)
    return _cut("Preemptions", lines, len(rows), style)


def blocked_drains(report: SimulationReport) -> list[str]:
    return [
        f"Node {node} is not drained: disruption budgets keep {listed(pods, _NODES_LISTED)} there."
        for node, pods in report.blocked_drains.items()
    ]


def warning_section(report: SimulationReport, style: Style) -> list[str]:
    """What could not be done: objects that were refused, steps of the scenario that failed."""
    shown = ("FailedCreate", "ScenarioFailed")
    rows = [row for row in report.events.named() if row.reason in shown]
    most = style.most(_ROWS_SHOWN)
    n_more = 0 if most is None else max(0, len(rows) - most)
    lines = [f"{_span(row.at_s)} {row.object}: {row.note}" for row in rows[: len(rows) - n_more]]
    return [
        *([style.heading("Warnings")] if lines else []),
        *(part for line in lines for part in wrapped(line, indent=2, hanging=2, width=style.width)),
        *([f"  and {n_more} more (-o wide shows all)"] if n_more else []),
    ]


def autoscaling_lines(report: SimulationReport) -> list[str]:
    """What came of the autoscaler, in numbers: nodes, money, and how long pods waited."""
    record = report.autoscaling
    if record is None:
        return []
    did = f"{counted(record.count(LAUNCHED), 'node')} launched, {record.count(REMOVED)} removed"
    there = f"{record.fewest_nodes} to {record.most_nodes} at a time, {record.nodes_at_end} at the end"
    lines = [f"Autoscaler {record.policy}: {did}; {there}."]
    if record.cost is not None:
        hours = report.ended_s / _AN_HOUR_S
        average = f", {record.cost / hours:.4g} an hour on average" if hours else ""
        lines.append(f"The nodes cost {record.cost:.4g} {record.currency} in {readable_span(report.ended_s)}{average}.")
    rows = [row for row in report.pods.named() if row.scheduled_s is not None]
    waits = sorted(w for row in rows if (w := float(row.scheduled_s) - float(row.created_s)) > 0)
    if waits:
        half, longest = readable_span(waits[(len(waits) - 1) // 2]), readable_span(waits[-1])
        lines.append(f"{counted(len(waits), 'pod')} waited for a node: half of them up to {half}, all up to {longest}.")
    return lines


def autoscaling_section(report: SimulationReport, style: Style) -> list[str]:
    """Which nodes came and went, and why."""
    record = report.autoscaling
    if record is None:
        return []
    rows = [
        [_span(one.at_s), one.change, one.node, one.machine, one.why]
        for one in record.changes
        if style.wide or one.change in (LAUNCHED, REMOVED)
    ]
    lines = table(["AT", "CHANGE", "NODE", "MACHINE", "WHY"], rows, indent=2, n_left=5)
    notes = [part for told in record.assumptions for part in wrapped(told, indent=2, hanging=0, width=style.width)]
    nothing = [style.heading("Autoscaler"), "  It had nothing to do."]
    return [*(_cut("Autoscaler", lines, len(rows), style) or nothing), *notes]


def node_section(report: SimulationReport, style: Style) -> list[str]:
    """Requests at the end as a share of what the node has, and the mean over its time."""
    shares = {(row.node, row.resource): row for row in report.utilisation.named()}
    others = sorted({str(name) for name in report.utilisation["resource"]} - {CPU, MEMORY, PODS})
    resources = [CPU, MEMORY, PODS, *(name for name in others if _is_asked_for(report, name))]
    rows = [
        [str(row.name), str(row.state), *(_usage(shares.get((row.name, name)), name) for name in resources)]
        for row in report.nodes.named()
    ]
    header = ["NODE", "STATE", *(name.upper() for name in resources)]
    lines = table(header, rows, indent=2, n_left=len(header))
    return _cut("Nodes: requested of allocatable at the end (mean over the run)", lines, len(rows), style)


def total_section(report: SimulationReport) -> list[str]:
    """The nodes that are there at the end, taken together."""
    gone = {row.name for row in report.nodes.named() if row.state == "Gone"}
    allocatable: Counter[str] = Counter()
    requested: Counter[str] = Counter()
    for row in report.utilisation.named():
        if row.node not in gone:
            allocatable[str(row.resource)] += int(row.allocatable or 0)
            requested[str(row.resource)] += int(row.requested or 0)
    parts = [
        f"{name} {_percent(requested[name] / whole)} ({readable(name, requested[name])} of {readable(name, whole)})"
        for name, whole in allocatable.items()
        if whole and (name in (CPU, MEMORY, PODS) or requested[name])
    ]
    return [f"Cluster: {', '.join(parts)}."] if parts else []


def _cut(title: str, lines: list[str], n_rows: int, style: Style) -> list[str]:
    """The table under its title; only its first rows, unless all are asked for."""
    most = style.most(_ROWS_SHOWN)
    if not n_rows:
        return []
    if most is None or n_rows <= most:
        return [style.heading(title), *lines]
    return [style.heading(title), *lines[: most + 1], f"  and {n_rows - most} more (-o wide shows all)"]


def _states(pods: list[Any], n_not_created: int) -> str:
    counts = Counter(str(pod.state) for pod in pods)
    counts[POD_PENDING] += n_not_created
    return ", ".join(f"{n} {state}" for state, n in sorted(counts.items()) if n)


def _places(pods: list[Any], style: Style) -> str:
    """As many nodes as a column holds, at least one."""
    counts = Counter(str(pod.node) for pod in pods if pod.node and pod.state not in _ENDED)
    names = [name if n == 1 else f"{name} x{n}" for name, n in sorted(counts.items())]
    shown = (listed(names, n) for n in range(_NODES_LISTED, 0, -1))
    return next((text for text in shown if style.wide or len(text) <= _NODES_WIDTH), listed(names, 1)) or "-"


def _is_asked_for(report: SimulationReport, resource: str) -> bool:
    return any(row.resource == resource and row.peak for row in report.utilisation.named())


def _usage(row: Any, resource: str) -> str:
    if row is None:
        return "-"
    if not row.allocatable:
        return f"{readable(resource, row.requested)} of 0"
    amounts = f"{readable(resource, row.requested)}/{readable(resource, row.allocatable)}"
    mean = "" if row.mean_share is None else f" ({_percent(row.mean_share)})"
    return f"{amounts} {_percent(row.share)}{mean}"


def _percent(value: float) -> str:
    return f"{value * 100:.0f}%"


def _span(seconds: Any) -> str:
    return "-" if seconds is None else readable_span(seconds)


def render_report(report: SimulationReport, style: Style | None = None) -> str:
    """Without a newline at its end."""
    chosen = style or Style()
    first, *rest = headline(report)
    sections = [
        [chosen.painted(_tone(report), first), *rest],
        pod_section(report, chosen) if chosen.wide else workload_section(report, chosen),
        pod_group_section(report, chosen),
        pending_section(report, chosen),
        preemption_section(report, chosen),
        autoscaling_section(report, chosen),
        blocked_drains(report),
        warning_section(report, chosen),
        node_section(report, chosen),
        total_section(report),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def headline(report: SimulationReport) -> list[str]:
    """The run in numbers, and how it ended."""
    summary = report.summary
    states = ", ".join(f"{n} {state}" for state, n in summary["states"].items()) or "none"
    how_long = readable_span(report.ended_s)
    why = f"it had {len(report.pods):,} pods, the most that are kept" if report.is_full else "more was to come"
    end = f"cut short at {how_long}: {why}" if report.is_cut_short else f"over after {how_long}"
    return [
        f"{counted(summary['pods'], 'pod')} on {counted(summary['nodes'], 'node')}: {states}.",
        f"The run was {end}. Seed {summary['seed']}, ties by {_tie(summary['tie_break'])}.",
        *autoscaling_lines(report),
    ]


def _tone(report: SimulationReport) -> Tone:
    return Tone.BAD if POD_PENDING in report.summary["states"] else Tone.GOOD


def _tie(tie_break: str) -> str:
    return "name" if tie_break == "name" else "chance"


_HTML_ROWS_SHOWN = 12
_NAMES_SHOWN = 3


def report_html(report: SimulationReport) -> str:
    first, *rest = headline(report)
    is_waiting = bool(report.summary["states"].get("Pending"))
    return block(
        paragraph(first, "head bad" if is_waiting else "head good"),
        *(paragraph(line, "dim") for line in rest),
        _workloads(report),
        _pending(report),
        _nodes(report),
        *(paragraph(line, "dim") for line in total_section(report)),
    )


def _workloads(report: SimulationReport) -> str:
    states: dict[tuple[str, str], Counter[str]] = {}
    for row in report.pods.to_rows():
        owner = (str(row["namespace"]), str(row["workload"] or f"Pod {row['name']}"))
        states.setdefault(owner, Counter())[str(row["state"])] += 1
    for row in report.not_created.to_rows():
        states.setdefault((str(row["namespace"]), str(row["workload"])), Counter())["Pending"] += int(row["pods"] or 0)
    rows = [
        (*owner, ", ".join(f"{n} {state}" for state, n in sorted(counts.items())))
        for owner, counts in sorted(states.items(), key=lambda entry: (-entry[1]["Pending"], entry[0]))
    ]
    return _cut_rows(["namespace", "workload", "pods"], rows)


def _pending(report: SimulationReport) -> str:
    by_message: dict[str, list[str]] = {}
    for row in report.pending:
        by_message.setdefault(row["message"], []).append(f"{row['namespace']}/{row['name']}")
    rows = [
        (len(pods), listed(pods, _NAMES_SHOWN), message)
        for message, pods in sorted(by_message.items(), key=lambda entry: -len(entry[1]))
    ]
    return _cut_rows(["pending", "pods", "why"], rows)


def _nodes(report: SimulationReport) -> str:
    used = {(row["node"], row["resource"]): row for row in report.utilisation.to_rows()}
    rows = []
    for row in report.nodes.to_rows():
        shares = []
        for resource in (CPU, MEMORY):
            found = used.get((row["name"], resource))
            whole = 0 if found is None else int(found["allocatable"] or 0)
            asked = 0 if found is None else int(found["requested"] or 0)
            shares.append(f"{asked / whole:.0%} of {readable(resource, whole)}" if whole else "-")
        rows.append((str(row["name"]), str(row["state"]), row["pods"], *shares))
    return _cut_rows(["node", "state", "pods", "cpu requested", "memory requested"], rows)


def _cut_rows(header: list[str], rows: Sequence[Sequence[object]]) -> str:
    more = len(rows) - _HTML_ROWS_SHOWN
    told = paragraph(f"and {counted(more, 'more row')}", "dim") if more > 0 else ""
    return html_table(header, rows[:_HTML_ROWS_SHOWN]) + told


def sequence_html(placed: PlacedSequence) -> str:
    rows = [(step.pod, step.node or "-", step.feasible, step.message if not step.node else "") for step in placed.steps]
    return block(paragraph(placed.headline, "head"), _cut_rows(["pod", "node", "feasible nodes", "why not"], rows))
