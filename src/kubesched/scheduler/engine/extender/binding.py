"""Bind: an extender that binds goes before the bind plugins."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, SKIP, Status
from kubesched.scheduler.engine.extender import wire
from kubesched.scheduler.engine.extender.http_extender import EXTENDER, ExtenderError, HTTPExtender, body_of


def bind_by_extender(
    extenders: Sequence[HTTPExtender], pod: PodInfo, node_name: str
) -> Generator[object, object, Status]:
    """SKIP leaves the pod to the bind plugins: no extender wants it, or one that can be done without failed."""
    for extender in extenders:
        verb = extender.config.bind_verb
        if not verb or not extender.is_interested(pod):
            continue
        answer = yield extender.call(verb, wire.binding_args(pod, node_name))
        try:
            error = wire.binding_error(body_of(answer))
        except ExtenderError as failure:
            error = failure.message
        if not error:
            return OK
        if not extender.is_ignorable:
            return Status.error(error).by(EXTENDER)
    return SKIP
