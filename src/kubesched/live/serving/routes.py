"""Which path leads to which page. Paths are exact, and pages are only read.

Next: `pages`, one module per kind of page.
"""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web
from aiohttp.typedefs import Middleware

from kubesched.live.serving import filters
from kubesched.live.serving.health import HealthRecords
from kubesched.live.serving.pages.component_pages import ComponentPages
from kubesched.live.serving.pages.debug_pages import DebugPages
from kubesched.live.serving.pages.health_pages import HealthPages, Page
from kubesched.live.serving.pages.metrics_pages import MetricsPages
from kubesched.live.serving.sources import Sources


def application(sources: Sources, access: Middleware) -> web.Application:
    """The pages, behind everything that stands before them."""
    app = web.Application(
        middlewares=[filters.log_request, filters.forbid_caching, filters.keep_safe, access, filters.only_read]
    )
    app.on_response_prepare.append(filters.hide_server_name)
    for path, page in routes(sources):
        app.router.add_route("*", path, page)
    return app


def routes(sources: Sources) -> list[tuple[str, Page]]:
    """(path, page)"""
    records = HealthRecords()
    found: list[tuple[str, Page]] = []

    def paths() -> Sequence[str]:
        return [path for path, _page in found]

    metrics = MetricsPages(sources, records)
    component = ComponentPages(sources, paths)
    debug = DebugPages(sources)
    found.extend(HealthPages(sources.checks, records).routes())
    found.extend(
        (
            ("/configz", component.configz),
            ("/metrics", metrics.metrics),
            ("/metrics/resources", metrics.resources),
            ("/metrics/slis", metrics.slis),
            ("/flagz", component.flagz),
            ("/statusz", component.statusz),
            ("/version", component.version),
            ("/debug/queue", debug.queue),
            ("/debug/cache", debug.cache),
            ("/explain/{namespace}/{pod}", debug.explain),
        )
    )
    return found
