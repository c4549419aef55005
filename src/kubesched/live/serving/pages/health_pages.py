"""`/healthz`, `/livez`, `/readyz`, and a page for each of their checks. Next: `health`, for what is checked."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from aiohttp import web

from kubesched.live.serving import answers
from kubesched.live.serving.health import PING, HealthCheck, HealthChecks, HealthRecords, examine

Page = Callable[[web.Request], Awaitable[web.Response]]
_log = logging.getLogger("kubesched.serving")


@dataclass(frozen=True, slots=True)
class HealthPages:
    checks: HealthChecks
    records: HealthRecords

    def routes(self) -> Iterator[tuple[str, Page]]:
        """(path, page)"""
        for page, checks in (
            ("healthz", self.checks.healthz),
            ("livez", self.checks.livez),
            ("readyz", self.checks.readyz),
        ):
            asked = tuple(checks) or (PING,)
            yield f"/{page}", self._whole(page, asked)
            for check in asked:
                yield f"/{page}/{check.name}", _single(check)

    def _whole(self, page: str, checks: Sequence[HealthCheck]) -> Page:
        async def answer(request: web.Request) -> web.Response:
            excluded = request.query.getall("exclude", [])
            found = examine(page, checks, self.records, excluded, verbose="verbose" in request.query)
            if not found.is_healthy:
                _log.info(f"{page} check failed", extra={"fields": {"problems": list(found.problems)}, "v": 2})
            return answers.text(found.body, status=200 if found.is_healthy else 500, no_sniff=True)

        return answer


def _single(check: HealthCheck) -> Page:
    async def answer(_request: web.Request) -> web.Response:
        problem = check.problem()
        return answers.text_error(f"internal server error: {problem}", 500) if problem else answers.text("ok")

    return answer
