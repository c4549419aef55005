"""Inside a pod: the server's address from the environment, token and authority from the service account's files.

Token and authority are read again as they get old, since kubelets replace them (`credentials.token_file`,
`credentials.followed_files`).

Next: `kubeconfig.load_target`, which comes here when no kubeconfig says anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kubesched.k8s.client.credentials.followed_files import FollowedFiles
from kubesched.k8s.client.credentials.token_file import TokenFileCredentials
from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.proxy import ProxyUrlError, proxy_from_environment
from kubesched.k8s.client.target import ServerTarget
from kubesched.k8s.client.tls import TlsMaterialError, make_tls_context, trust

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def is_in_cluster(environ: Mapping[str, str]) -> bool:
    return bool(environ.get(_HOST) and environ.get(_PORT))


def load_in_cluster_target(
    *, environ: Mapping[str, str] | None = None, directory: Path = SERVICE_ACCOUNT
) -> ServerTarget:
    """The API server of the cluster that this pod runs in."""
    environ = os.environ if environ is None else environ
    if not is_in_cluster(environ):
        raise ClientConfigError(f"this is not a pod: the environment has no {_HOST} and {_PORT}")
    host = environ[_HOST]
    url = f"https://[{host}]:{environ[_PORT]}" if ":" in host else f"https://{host}:{environ[_PORT]}"
    authority, token = directory / "ca.crt", directory / "token"
    try:
        ssl_context = make_tls_context(authorities=_read(authority))
    except TlsMaterialError as failure:
        raise ClientConfigError(f"{authority}: {failure}") from None
    _read(token)
    try:
        proxy = proxy_from_environment(url, environ)
    except ProxyUrlError as failure:
        raise ClientConfigError(str(failure)) from None
    return ServerTarget(
        url=url,
        ssl_context=ssl_context,
        proxy=proxy,
        namespace=_namespace(directory / "namespace"),
        credentials=FollowedFiles(
            TokenFileCredentials(token), (authority,), lambda: trust(ssl_context, _read(authority)), advice=None
        ),
        source=f"the pod's service account ({directory})",
        files=(authority, token),
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as failure:
        raise ClientConfigError(
            f"{path}: cannot read the service account: {failure.strerror}; "
            "check automountServiceAccountToken of the pod and its service account"
        ) from None


def _namespace(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip() or "default"
    except OSError:
        return "default"
