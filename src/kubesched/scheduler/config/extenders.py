"""Extenders: HTTP services that take part in decisions.

Next: `configuration`, where they are listed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from kubesched.k8s.model.times import Duration
from kubesched.scheduler.config.schema import Int64, SparseConfigStruct


class ExtenderManagedResource(SparseConfigStruct, frozen=True):
    """An extended resource that an extender looks after."""

    name: str = ""
    """The resource's name."""
    ignored_by_scheduler: bool = False
    """Leave the resource to the extender: NodeResourcesFit does not check it."""


class ExtenderTLSConfig(SparseConfigStruct, frozen=True):
    """How to talk TLS with an extender."""

    insecure: bool = False
    """Do not verify the server's certificate. For tests only."""
    server_name: str = ""
    """The name to expect in the certificate, if it is not the host's."""
    cert_file: str = ""
    """The client's certificate, as a file."""
    key_file: str = ""
    """The client's key, as a file."""
    ca_file: str = ""
    """Certificates to trust, as a file."""
    cert_data: bytes = b""
    """The client's certificate itself, PEM in base64; goes before `certFile`."""
    key_data: bytes = b""
    """The client's key itself; goes before `keyFile`."""
    ca_data: bytes = b""
    """Certificates to trust themselves; goes before `caFile`."""


class ExtenderConfiguration(SparseConfigStruct, frozen=True):
    """An extender and what it is asked. A verb left empty is never called."""

    url_prefix: str = ""
    """Where the extender is; a verb is appended to it."""
    filter_verb: str = ""
    """Verb of the call that filters nodes."""
    preempt_verb: str = ""
    """Verb of the call that may change preemption victims."""
    prioritize_verb: str = ""
    """Verb of the call that scores nodes."""
    weight: Int64 = 0
    """How much its scores count; must be positive when `prioritizeVerb` is given."""
    bind_verb: str = ""
    """Verb of the call that binds pods. At most one extender may bind."""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    """Use HTTPS."""
    tls_config: ExtenderTLSConfig | None = None
    """How to talk TLS."""
    http_timeout: Duration = Duration(0)
    """How long a call may take; `0s` stands for 5 seconds. A filter call that takes longer fails the pod."""
    node_cache_capable: bool = False
    """The extender knows the nodes: send it their names only."""
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    """Send it only pods that ask for one of these; all pods if empty."""
    ignorable: bool = False
    """Carry on without the extender when it fails."""

    @property
    def shown_url(self) -> str:
        """`urlPrefix` as messages, events and metrics show it: a password in it is nobody else's business."""
        return hide_password(self.url_prefix)

    @property
    def trusts_anybody(self) -> bool:
        """Whether it is called over TLS without a look at who answers, as kube-scheduler does without authorities."""
        tls = self.tls_config or ExtenderTLSConfig()
        return tls.insecure or (self.enable_https and not (tls.ca_data or tls.ca_file))


def hide_password(url: str) -> str:
    """As Go's HTTP client writes addresses in its errors."""
    return re.sub(r"(://[^/@:]*):[^/@]*@", r"\1:***@", url, count=1)


_THIS_MACHINE = re.compile(r"(https?://)?([^/@]*@)?(localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?(/|$)")


def extender_warnings(extenders: Sequence[ExtenderConfiguration]) -> list[str]:
    """What is allowed and leaves decisions to whoever happens to answer; one line each, naming the field."""
    found: list[str] = []
    for number, extender in enumerate(extenders):
        at, url = f"extenders[{number}]", extender.shown_url
        if extender.tls_config is not None and extender.tls_config.insecure:
            found.append(
                f"{at}.tlsConfig.insecure: whoever answers at {url} decides where pods go, whatever its certificate"
            )
        elif extender.trusts_anybody:
            found.append(
                f"{at}: enableHTTPS without tlsConfig.caFile or caData trusts any certificate, as in kube-scheduler: "
                f"whoever answers at {url} decides where pods go"
            )
        elif extender.tls_config is None and not url.startswith("https://") and not _THIS_MACHINE.match(url):
            found.append(f"{at}.urlPrefix: {url} is neither encrypted nor verified: consider enableHTTPS and tlsConfig")
    return found
