"""An upgrade report as text: whether it finishes and what it costs, then what blocks it, then other ways."""

from __future__ import annotations

from kubesched.explanation.layout import Style, Tone, counted, listed, table, wrapped
from kubesched.planning.prices import money
from kubesched.planning.upgrade.report import UpgradeOutcome, UpgradeReport
from kubesched.simulator.report_text import readable_span

_SHOWN = 8


def headline(report: UpgradeReport) -> str:
    one = report.outcome
    of = f" of pool {report.pool}" if report.pool else ""
    nodes = f"{counted(one.n_nodes, 'node')}{of}"
    if one.stopped_s is not None:
        span = readable_span(one.stopped_s)
        done = f"{one.n_upgraded} of {nodes} are upgraded"
        return f"Not known whether the upgrade finishes: {_why_stopped(report)} after {span} of it, when {done}."
    if one.finishes:
        assert one.duration_s is not None
        span = readable_span(one.duration_s)
        return f"The upgrade of {nodes} finishes after {span}: {counted(one.moves, 'move')} of {one.n_pods} pods."
    if one.skipped:
        return f"The upgrade leaves {len(one.skipped)} of {nodes} as they are: {listed(one.skipped, 3)}."
    if one.duration_s is not None:
        return f"The upgrade of {nodes} ends, but {counted(len(one.waiting), 'pod')} find no node any more."
    names = [stuck.node for stuck in one.stuck]
    told = f" It is stuck at {listed(names, 3)}." if names else ""
    return f"The upgrade does not finish: {one.n_upgraded} of {nodes} are upgraded.{told}"


def _why_stopped(report: UpgradeReport) -> str:
    return "stopped: time" if report.stopped == "time" else "interrupted"


def render_upgrade(report: UpgradeReport, style: Style) -> str:
    """Without a newline at its end."""
    one = report.outcome
    sections = [
        [style.painted(Tone.GOOD if one.finishes else Tone.BAD, headline(report)), *_numbers(report, one)],
        _stuck_section(one, style),
        _other_ways(report, style),
        [style.heading("Strategy"), *_strategy(report)],
        [style.heading("Assumptions"), *(f"  {text}" for text in report.assumptions)],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _numbers(report: UpgradeReport, one: UpgradeOutcome) -> list[str]:
    moves = f"{one.moves_per_pod:.2f} moves a pod (1.00 if none is moved again)"
    forced = f", {one.forced} of them against their budgets" if one.forced else ""
    wait = f", the longest for {readable_span(one.longest_wait_s)}" if one.most_pending else ""
    extra = f"{one.extra_node_hours:.1f} hours of extra nodes"
    cost = "" if report.extra_cost is None else f", {money(report.extra_cost, report.currency).removesuffix('/h')}"
    why = "Stopped: time" if report.stopped == "time" else "It was interrupted"
    left = [f"{why}: not all other ways were played."] if report.stopped and one.finishes else []
    return [
        *left,
        f"{moves}{forced}; at most {counted(one.most_pending, 'pod')} pending at once{wait}.",
        f"At most {counted(one.peak_nodes, 'node')} at a time; {extra}{cost}.",
    ]


def _stuck_section(one: UpgradeOutcome, style: Style) -> list[str]:
    lines = [style.heading("What blocks it")] if one.stuck or one.waiting else []
    most = style.most(_SHOWN)
    for stuck in one.stuck[:most]:
        lines.append(f"  {stuck.node}, drained since {readable_span(stuck.since_s)} ({_OUTCOMES[stuck.outcome]}):")
        for pod in stuck.pods[:most]:
            kept = f"disruption budget {' and '.join(pod.budgets)}" if pod.budgets else "it takes its time to end"
            lines += wrapped(f"{pod.pod}: {kept}", indent=4, hanging=2, width=style.width)
    if one.waiting:
        lines += wrapped(f"Without a node: {listed(one.waiting, most)}", indent=2, hanging=2, width=style.width)
    return lines


_OUTCOMES = {
    "stop": "the upgrade stops",
    "force": "its pods are deleted",
    "skip": "it stays as it is",
    "waits": "it would wait forever",
}


def _other_ways(report: UpgradeReport, style: Style) -> list[str]:
    lines = []
    if report.surges:
        smallest = report.smallest_surge
        last = report.surges[-1].strategy.max_surge
        lines.append(
            f"  Smallest surge that finishes: {smallest}."
            if smallest is not None
            else f"  No surge up to {last} finishes."
        )
    if report.orders:
        rows = [
            [one.strategy.order, "yes" if one.finishes else "no", str(one.moves), f"{one.moves_per_pod:.2f}"]
            for one in (report.outcome, *report.orders)
        ]
        lines += table(["ORDER", "FINISHES", "MOVES", "A POD"], rows, indent=2)
    return [style.heading("Other ways"), *lines] if lines else []


def _strategy(report: UpgradeReport) -> list[str]:
    one = report.outcome.strategy
    timeout = "none" if one.drain_timeout_s is None else f"{readable_span(one.drain_timeout_s)}, then {one.on_timeout}"
    rows = [
        ["max surge", str(one.max_surge)],
        ["max unavailable", str(one.max_unavailable)],
        ["drain timeout", timeout],
        ["boot", readable_span(one.boot_s)],
        ["soak", readable_span(one.soak_s)],
        ["order", one.order],
        ["machines", "the same reboot" if one.reboots else "new ones come"],
    ]
    width = max(len(row[0]) for row in rows)
    preset = [f"  preset {report.preset}, where nothing else was asked for"] if report.preset else []
    return [*preset, *(f"  {name:<{width}}  {value}" for name, value in rows)]
