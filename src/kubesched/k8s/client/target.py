"""Where an API server is and how to log in to it: all that `RestClient` needs to know, whoever found it out.

A `ServerTarget` is made by `kubeconfig.load_target` or `kubeconfig.load_in_cluster_target`, and in tests by hand:
`ServerTarget(url="http://127.0.0.1:8080")`. `Credentials` is what the ways of logging in have in common.

Next: `credentials` (the ways of logging in), `rest` (who asks for headers before each request).
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

Headers = tuple[tuple[str, str], ...]


class Credentials(Protocol):
    """How requests prove who we are. Asked before every request, so the usual answer must cost next to nothing."""

    @property
    def connection_epoch(self) -> int:
        """Grows when connections opened before must not be used for new requests (a new client certificate)."""
        ...

    async def headers(self) -> Headers:
        """The headers to send; renews first what has expired. The same object as long as nothing changed.

        Raises `ClientConfigError` when there is no way to get valid credentials.
        """
        ...

    async def renew(self, used: Headers, epoch: int) -> bool:
        """The server answered 401 to the headers `used`, sent at that `epoch`. True when there are others now.

        Many requests may be refused at once; the first renews, and the others find it done.
        """
        ...

    def advice(self) -> str:
        """What a user should do when the server keeps answering 401."""
        ...

    async def close(self) -> None: ...


class NoCredentials:
    """Nobody in particular: requests carry nothing."""

    connection_epoch = 0

    async def headers(self) -> Headers:
        return ()

    async def renew(self, used: Headers, epoch: int) -> bool:
        return False

    def advice(self) -> str:
        return "no credentials are configured: name a user in the kubeconfig's context"

    async def close(self) -> None:
        return None


@dataclass(frozen=True)
class ServerTarget:
    """One API server. `url` has a scheme, no slash at the end, and may have a path (servers behind a gateway)."""

    url: str
    ssl_context: ssl.SSLContext | None = None
    """None for http, and for https with the system's certificate authorities."""
    tls_server_name: str | None = None
    """The name to expect in the server's certificate, when it is not the URL's host."""
    proxy: str | None = None
    namespace: str = "default"
    credentials: Credentials = field(default_factory=NoCredentials)
    source: str = "a URL given by hand"
    """Where this came from, for messages: "context kind of /home/me/.kube/config"."""
    files: tuple[Path, ...] = ()
    """The files that were read (kubeconfigs, certificate authorities, tokens), for messages and for watching them."""

    @property
    def is_tls(self) -> bool:
        return self.url.startswith("https://")
