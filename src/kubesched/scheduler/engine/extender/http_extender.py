"""One extender: what it is asked, about which pods, and where it is.

Next: `wire` for what is said.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kubesched.framework.effects import CallExtender, Failed
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Container
from kubesched.scheduler.config import ExtenderConfiguration

EXTENDER = "Extender"
"""Stands for all extenders among the plugins that rejected a pod: any change may make them change their minds."""

DEFAULT_TIMEOUT_S = 5.0

Found = TypeVar("Found")
Consultation = Generator[Sequence[CallExtender], Sequence[object], Found]
"""Yields calls that may be made at once, is sent their answers in the same order, ends in what was found."""


class ExtenderError(Exception):
    """An extender could not be asked, or its answer cannot be used. The text is what the pod's event says."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class HTTPExtender:
    """An extender as it is configured; `index` is its place in the configuration."""

    index: int
    config: ExtenderConfiguration

    @property
    def name(self) -> str:
        return self.config.shown_url

    @property
    def is_ignorable(self) -> bool:
        return self.config.ignorable

    @property
    def decides(self) -> bool:
        """Whether it takes part in decisions, not only in binding."""
        return bool(self.config.filter_verb or self.config.prioritize_verb or self.config.preempt_verb)

    @property
    def compares_nodes(self) -> bool:
        """Whether more than one feasible node must be found for it."""
        return bool(self.config.filter_verb or self.config.prioritize_verb)

    @property
    def is_insecure(self) -> bool:
        """Whether its certificate is not verified: asked for, or HTTPS without any certificates to trust."""
        tls = self.config.tls_config
        if tls is not None and tls.insecure:
            return True
        return self.config.enable_https and not (tls is not None and (tls.ca_file or tls.ca_data))

    def is_interested(self, pod: PodInfo) -> bool:
        """Without managed resources in every pod, else in those that name one of them."""
        managed = {resource.name for resource in self.config.managed_resources}
        if not managed:
            return True
        spec = pod.spec
        return any(_names_any(container, managed) for container in (*spec.containers, *(spec.init_containers or ())))

    def call(self, verb: str, body: bytes) -> CallExtender:
        timeout_s = self.config.http_timeout.seconds or DEFAULT_TIMEOUT_S
        return CallExtender(self.index, verb, f"{self.config.url_prefix.rstrip('/')}/{verb}", body, timeout_s)


def build_extenders(configured: Sequence[ExtenderConfiguration]) -> tuple[HTTPExtender, ...]:
    """In the order in which they are asked: those that can be done without come last."""
    extenders = [HTTPExtender(index, config) for index, config in enumerate(configured)]
    return tuple(sorted(extenders, key=lambda extender: extender.is_ignorable))


def refused(call: CallExtender, code: int) -> Failed:
    """The answer to a call that was met with another HTTP status than 200."""
    return Failed(f"failed {call.verb} with extender at URL {call.url}, code {code}")


def body_of(answer: object) -> bytes:
    """What the extender said; raises ExtenderError if it said nothing."""
    if isinstance(answer, bytes):
        return answer
    raise ExtenderError(answer.message if isinstance(answer, Failed) else f"unexpected answer {answer!r}")


def _names_any(container: Container, resources: set[str]) -> bool:
    found = container.resources
    if found is None:
        return False
    return not resources.isdisjoint(found.requests or ()) or not resources.isdisjoint(found.limits or ())
