"""The secure port: health, metrics, configuration and debugging over HTTPS, for whom the API server allows it.

`settings` is what flags say, `sources` is what the scheduler tells about itself, `server` puts both behind a port.
`certificates` are its side of TLS, `authentication` and `filters` say who asks and whether they may, and
`component_pages`, `metrics_pages` and `debug_pages` say what is answered.

Next: `server`.
"""

from __future__ import annotations

from kubesched.live.serving.server import SecureServer
from kubesched.live.serving.settings import AuthenticationSettings, AuthorizationSettings, ServingError, ServingSettings
from kubesched.live.serving.sources import Sources

__all__ = [
    "AuthenticationSettings",
    "AuthorizationSettings",
    "SecureServer",
    "ServingError",
    "ServingSettings",
    "Sources",
]
