"""The playground's web page, with what the parts beside it know."""

from __future__ import annotations

from kubesched.app.live_scheduler import LiveScheduler
from kubesched.app.options import RunOptions
from kubesched.app.serving.live_explanation import LiveExplainer
from kubesched.app.serving.pages.queue_report import queue_report
from kubesched.client.rest import RestClient
from kubesched.controllers.runner import ControllerRunner
from kubesched.model.core import Node, Pod
from kubesched.web.page import WebPage, WebSettings
from kubesched.web.pod_history import PodHistory
from kubesched.web.sources import WebSources


def make_page(
    controllers: ControllerRunner, scheduler: LiveScheduler, options: RunOptions, client: RestClient
) -> WebPage:
    """On any free port of loopback."""
    view = controllers.view
    sources = WebSources(
        nodes=lambda: view.of(Node).values(),
        pods=lambda: view.of(Pod).values(),
        queue=lambda: queue_report(scheduler.loop.queue, scheduler.shell.now_s()),
        explain=LiveExplainer(
            scheduler.loop.cluster, lambda: scheduler.assembled, options.emulation, is_for_placed_too=True
        ),
        recorded=PodHistory(client),
    )
    return WebPage(WebSettings(port=0), sources)
