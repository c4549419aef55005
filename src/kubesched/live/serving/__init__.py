"""The secure port: health, metrics, configuration and debugging over HTTPS, for whom the API server allows it.

`settings` is what flags say, `sources` is what the scheduler tells about itself, `server` puts both behind a port.
What is inside: `tls` (certificates), `access` (who asks, and may they), `pages` (what is answered).

Next: `server`.
"""

from __future__ import annotations

from kubesched.live.serving.errors import ServingError
from kubesched.live.serving.server import SecureServer
from kubesched.live.serving.settings import AuthenticationSettings, AuthorizationSettings, ServingSettings
from kubesched.live.serving.sources import Sources

__all__ = [
    "AuthenticationSettings",
    "AuthorizationSettings",
    "SecureServer",
    "ServingError",
    "ServingSettings",
    "Sources",
]
