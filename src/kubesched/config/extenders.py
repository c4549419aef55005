"""Extenders: HTTP services that take part in decisions.

Next: `configuration`, where they are listed.
"""

from __future__ import annotations

import msgspec

from kubesched.config.durations import Duration
from kubesched.config.schema import Int64, SparseConfigStruct


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
