"""Beside the scheduler of a live cluster: every binding that it makes is decided again, and the two are compared.

Read only. Each binding is judged five seconds after it was seen, when what happened around it is known. What is found
is served as a page, as JSON and as metrics, if somebody wants that.

Next: `kubesched.simulator.replay.judge` for how decisions are compared.
"""

from __future__ import annotations

import html
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from queue import SimpleQueue

from aiohttp import web

from kubesched.k8s.model.times import print_instant
from kubesched.simulator.recording.reader import GapSeen, Recorded
from kubesched.simulator.replay.agreement import Agreement, reason_of
from kubesched.simulator.replay.judge import BindingJudge, BindingVerdict, Judgement

_PAGE_ROWS = 200


class Shadow:
    """Hand it what happens (`kubesched.live.recorder`). `told` hears of every judgement.

    Judging is done by a thread of its own: who reads the watches must not fall behind, or kinds that are watched on
    different connections are seen out of order.
    """

    def __init__(self, judge: BindingJudge, told: Callable[[Judgement], None] = lambda judgement: None) -> None:
        self._judge = judge
        self._told = told
        self._agreement = Agreement()
        self._lock = threading.Lock()
        self._waiting: SimpleQueue[Recorded | float | None] = SimpleQueue()
        """What happened; the time, if nothing else did; None at the end."""
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="shadow", daemon=True)
        self._thread.start()

    def take(self, event: Recorded) -> None:
        self._waiting.put(event)

    def pass_time(self) -> None:
        if self._problem is not None:
            raise self._problem
        self._waiting.put(time.time())

    def finish(self) -> Agreement:
        """Everything so far is judged before this returns."""
        self._waiting.put(None)
        self._thread.join()
        if self._problem is not None:
            raise self._problem
        return self._agreement

    @contextmanager
    def looking(self) -> Iterator[Agreement]:
        """What is found so far, which does not change meanwhile."""
        with self._lock:
            yield self._agreement

    def _work(self) -> None:
        try:
            while (happened := self._waiting.get()) is not None:
                if isinstance(happened, float):
                    self._add(self._judge.pass_time(happened))
                    continue
                if isinstance(happened, GapSeen):
                    with self._lock:
                        self._agreement.gaps.append(happened)
                self._add(self._judge.feed(happened))
            self._add(self._judge.finish())
        except BaseException as problem:  # noqa: BLE001  whoever waits for the answer gets it
            self._problem = problem

    def _add(self, found: Iterable[Judgement]) -> None:
        for judgement in found:
            with self._lock:
                self._agreement.add(judgement)
            self._told(judgement)
        self._agreement.n_unusable = self._judge.followed.n_unusable


def shadow_app(shadow: Shadow) -> web.Application:
    """`/` is a page, `/report` JSON, `/metrics` for Prometheus."""

    async def page(_: web.Request) -> web.Response:
        with shadow.looking() as found:
            return web.Response(text=shadow_page(found), content_type="text/html")

    async def report(_: web.Request) -> web.Response:
        with shadow.looking() as found:
            return web.json_response(found.to_dict())

    async def metrics(_: web.Request) -> web.Response:
        with shadow.looking() as found:
            return web.Response(text=shadow_metrics(found), content_type="text/plain")

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    app = web.Application()
    app.add_routes(
        [web.get("/", page), web.get("/report", report), web.get("/metrics", metrics), web.get("/healthz", healthz)]
    )
    return app


@asynccontextmanager
async def serving(shadow: Shadow, address: tuple[str, int] | None) -> AsyncIterator[str]:
    """Serves as long as it lasts, and gives the page's URL; empty without an address."""
    if address is None:
        yield ""
        return
    runner = web.AppRunner(shadow_app(shadow), access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, *address)
        await site.start()
        yield f"http://{address[0]}:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


def shadow_metrics(found: Agreement) -> str:
    lines = [
        "# HELP kubesched_shadow_decisions_total Bindings of the cluster's scheduler, by how our decision compares.",
        "# TYPE kubesched_shadow_decisions_total counter",
    ]
    lines += [
        f'kubesched_shadow_decisions_total{{verdict="{one.value}"}} {found.counts[one]}' for one in BindingVerdict
    ]
    lines += [
        "# HELP kubesched_shadow_differences_total Decisions that differ, by the plugin that makes the difference.",
        "# TYPE kubesched_shadow_differences_total counter",
    ]
    by_plugin: dict[tuple[str, str], int] = {}
    for (verdict, plugin, _), n in found.groups.items():
        by_plugin[verdict.value, plugin] = by_plugin.get((verdict.value, plugin), 0) + n
    lines += [
        f'kubesched_shadow_differences_total{{verdict="{verdict}",plugin="{plugin}"}} {n}'
        for (verdict, plugin), n in sorted(by_plugin.items())
    ]
    if found.share is not None:
        lines += [
            "# HELP kubesched_shadow_agreement_ratio Share of decisions that agree.",
            "# TYPE kubesched_shadow_agreement_ratio gauge",
            f"kubesched_shadow_agreement_ratio {found.share:.6f}",
        ]
    return "\n".join(lines) + "\n"


def shadow_page(found: Agreement) -> str:
    by_verdict = ((verdict.value, found.counts[verdict]) for verdict in BindingVerdict)
    counts = "".join(f"<tr><th scope=row>{verdict}</th><td>{n}</td></tr>" for verdict, n in by_verdict if n)
    latest = list(found.differences)[-_PAGE_ROWS:][::-1]
    rows = "".join(_row(one) for one in latest)
    differences = f"<table><caption>Differences, the latest first</caption>{_HEAD}{rows}</table>" if rows else ""
    suspects = "".join(f"<p>{html.escape(text)}.</p>" for text in found.suspects)
    return _PAGE.format(
        headline=html.escape(found.headline),
        counts=counts,
        differences=suspects + differences,
        now=print_instant(time.time()),
    )


def _row(one: Judgement) -> str:
    cells = (
        print_instant(one.at_s),
        one.pod,
        one.node,
        one.ours or "no node",
        one.verdict.value,
        one.plugin,
        reason_of(one),
    )
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"


_HEAD = (
    "<thead><tr><th>time</th><th>pod</th><th>went to</th><th>here</th><th>verdict</th><th>plugin</th>"
    "<th>why</th></tr></thead>"
)
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="5">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>kubesched shadow</title>
<style>
:root {{ color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }}
body {{ margin: 2rem auto; max-width: 75rem; padding: 0 1rem }}
table {{ border-collapse: collapse; margin: 1rem 0; width: 100% }} caption {{ text-align: left; font-weight: 600 }}
th, td {{ text-align: left; padding: .25rem .75rem; border-bottom: 1px solid #8884; vertical-align: top }}
.counts {{ width: auto }} .counts td {{ text-align: right }} footer {{ opacity: .7 }}
</style></head><body>
<h1>{headline}</h1>
<table class="counts"><caption>Bindings</caption>{counts}</table>
{differences}
<footer>{now}; renewed every 5 seconds. <a href="report">JSON</a>, <a href="metrics">metrics</a></footer>
</body></html>
"""
