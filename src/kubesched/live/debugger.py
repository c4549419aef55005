"""What kube-scheduler logs on SIGUSR2: its cache, its queue, and where the cache differs from the informers."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kubesched.k8s.model.meta import KubeObject
from kubesched.live.serving.pages.debug_pages import cache_report, queue_report
from kubesched.scheduler.engine.loop import Scheduler

_log = logging.getLogger("kubesched.debugger")


def log_state(loop: Scheduler, informed: Iterable[KubeObject], now_s: float) -> None:
    _log.info("Dump of the scheduling queue", extra={"fields": {"queue": queue_report(loop.queue, now_s)}})
    _log.info("Dump of the cache", extra={"fields": {"cache": cache_report(loop.cluster, informed)}})
