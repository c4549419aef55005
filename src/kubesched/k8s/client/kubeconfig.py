"""From kubeconfig files to a `ServerTarget`, as kubectl does it: which files, which context, which server and user.

Files: the one that was named; else those in $KUBECONFIG; else ~/.kube/config; and when these say nothing, the
configuration inside a pod: the server's address from the environment, token and authority from the service account's
files, which are read again as they get old, since kubelets replace them. Whatever is wrong raises `ClientConfigError`
naming file, entry and field.

Next: `kubeconfig_file` (reading and merging), `credentials.from_user` (logging in), `target`.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kubesched.k8s.client.credentials.exec_plugin import cluster_info
from kubesched.k8s.client.credentials.from_user import LoginSurroundings, credentials_of, files_of
from kubesched.k8s.client.credentials.stored import FollowedFiles, TokenFileCredentials
from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.kubeconfig_file import (
    ClusterEntry,
    ContextEntry,
    EntryPlace,
    Kubeconfig,
    Placed,
    UserEntry,
    read_kubeconfigs,
)
from kubesched.k8s.client.target import (
    ProxyUrlError,
    ServerTarget,
    TlsMaterialError,
    check_proxy_url,
    make_tls_context,
    proxy_from_environment,
    trust,
)

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
        ssl_context = make_tls_context(authorities=_read_service_account(authority))
    except TlsMaterialError as failure:
        raise ClientConfigError(f"{authority}: {failure}") from None
    _read_service_account(token)
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
            TokenFileCredentials(token),
            (authority,),
            lambda: trust(ssl_context, _read_service_account(authority)),
            advice=None,
        ),
        source=f"the pod's service account ({directory})",
        files=(authority, token),
    )


def _read_service_account(path: Path) -> bytes:
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


def load_target(
    kubeconfig: Path | None = None,
    context: str | None = None,
    master: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
) -> ServerTarget:
    """The server to talk to. `master` overrides the server's address; `environ` is os.environ unless given."""
    environ = os.environ if environ is None else environ
    config = _read(kubeconfig, environ)
    if config.is_empty and not master:
        if context is None and kubeconfig is None and is_in_cluster(environ):
            return load_in_cluster_target(environ=environ)
        raise ClientConfigError(_nothing_found(kubeconfig, environ))
    name, chosen = _choose_context(config, context, bool(master))
    cluster = _cluster_of(config, chosen, master)
    user = _user_of(config, chosen)
    return _make_target(config, name, chosen.entry.namespace, cluster, user, environ)


def _read(kubeconfig: Path | None, environ: Mapping[str, str]) -> Kubeconfig:
    if kubeconfig is not None:
        return read_kubeconfigs([kubeconfig], must_exist=True)
    listed = [part for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    paths = [Path(part) for part in dict.fromkeys(listed)] or [_home(environ) / ".kube" / "config"]
    return read_kubeconfigs(paths, must_exist=False)


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ["HOME"]) if environ.get("HOME") else Path("~").expanduser()


def _nothing_found(kubeconfig: Path | None, environ: Mapping[str, str]) -> str:
    if kubeconfig is not None:
        return f"{kubeconfig}: the kubeconfig is empty"
    listed = environ.get("KUBECONFIG")
    looked = f"$KUBECONFIG ({listed})" if listed else str(_home(environ) / ".kube" / "config")
    return (
        f"no cluster is configured: {looked} is missing or empty, and there is no in-cluster service account; "
        "use --kubeconfig or $KUBECONFIG"
    )


def _choose_context(config: Kubeconfig, wanted: str | None, has_master: bool) -> tuple[str, Placed[ContextEntry]]:
    name = wanted or config.current_context
    files = ", ".join(str(path) for path in config.files) or "no kubeconfig"
    if not name:
        if has_master:
            return "", Placed(ContextEntry(), EntryPlace(None, "context", ""))
        raise ClientConfigError(f"{files}: current-context: is not set; name a context with --context{_known(config)}")
    if name not in config.contexts:
        field_name = "" if wanted else "current-context: "
        raise ClientConfigError(f'{files}: {field_name}context "{name}" does not exist{_known(config)}')
    return name, config.contexts[name]


def _known(config: Kubeconfig) -> str:
    names = ", ".join(sorted(config.contexts))
    return f" (there are: {names})" if names else " (there are none)"


def _cluster_of(config: Kubeconfig, context: Placed[ContextEntry], master: str | None) -> Placed[ClusterEntry]:
    name = context.entry.cluster
    if name and name not in config.clusters:
        raise context.place.error("cluster", f'cluster "{name}" does not exist')
    if not name and not master:
        raise context.place.error("cluster", "is required")
    found = config.clusters[name] if name else Placed(ClusterEntry(), EntryPlace(None, "cluster", master or ""))
    if not (master or found.entry.server):
        raise found.place.error("server", "is required")
    if not master:
        return found
    fields = {name: getattr(found.entry, name) for name in found.entry.__struct_fields__}
    return Placed(ClusterEntry(**(fields | {"server": master})), found.place)


def _user_of(config: Kubeconfig, context: Placed[ContextEntry]) -> Placed[UserEntry]:
    name = context.entry.user
    if name and name not in config.users:
        raise context.place.error("user", f'user "{name}" does not exist')
    return config.users[name] if name else Placed(UserEntry(), context.place)


def _make_target(
    config: Kubeconfig,
    context: str,
    namespace: str,
    cluster: Placed[ClusterEntry],
    user: Placed[UserEntry],
    environ: Mapping[str, str],
) -> ServerTarget:
    authorities = _authorities(cluster)
    url = _server_url(cluster, user.entry, authorities)
    ssl_context = _tls(cluster, authorities) if url.startswith("https://") else None
    proxy = _proxy(cluster, url, environ)

    def about_cluster() -> dict[str, Any]:
        return cluster_info(url, proxy or "", cluster, authorities)

    credentials = credentials_of(user, LoginSurroundings(ssl_context, about_cluster))
    files = [*config.files, *files_of(user)]
    if cluster.entry.certificate_authority:
        authority = cluster.place.path(cluster.entry.certificate_authority)
        files.append(authority)
        if ssl_context is not None:
            credentials = FollowedFiles(
                credentials, (authority,), lambda: trust(ssl_context, _authorities(cluster) or b""), advice=None
            )
    return ServerTarget(
        url=url,
        ssl_context=ssl_context,
        tls_server_name=cluster.entry.tls_server_name or None,
        proxy=proxy,
        namespace=namespace or "default",
        credentials=credentials,
        source=_source(config, context),
        files=tuple(files),
    )


def _source(config: Kubeconfig, context: str) -> str:
    if not context:
        return "--master"
    return f'context "{context}" of {config.contexts[context].place.file}'


def _authorities(cluster: Placed[ClusterEntry]) -> bytes | None:
    entry, place = cluster.entry, cluster.place
    if entry.certificate_authority and entry.certificate_authority_data:
        raise place.error(
            "certificate-authority", "only one of certificate-authority and certificate-authority-data is allowed"
        )
    if entry.certificate_authority_data:
        return place.data("certificate-authority-data", entry.certificate_authority_data)
    if entry.certificate_authority:
        return place.read("certificate-authority", entry.certificate_authority)
    return None


def _server_url(cluster: Placed[ClusterEntry], user: UserEntry, authorities: bytes | None) -> str:
    """The address with a scheme; without one, https when anything about TLS is configured, as kubectl guesses."""
    server = cluster.entry.server.strip().rstrip("/")
    if "://" not in server:
        uses_tls = (
            authorities is not None
            or cluster.entry.insecure_skip_tls_verify
            or bool(user.client_certificate or user.client_certificate_data)
        )
        server = f"{'https' if uses_tls else 'http'}://{server}"
    try:
        parts = urlsplit(server)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or parts.username:
        raise cluster.place.error("server", "must be a URL like https://host:6443")
    return server


def _tls(cluster: Placed[ClusterEntry], authorities: bytes | None) -> ssl.SSLContext:
    entry = cluster.entry
    if entry.insecure_skip_tls_verify and authorities is not None:
        raise cluster.place.error(
            "insecure-skip-tls-verify", "cannot be used together with a certificate authority; remove one of them"
        )
    try:
        return make_tls_context(authorities=authorities, verify=not entry.insecure_skip_tls_verify)
    except TlsMaterialError as failure:
        suffix = "-data" if entry.certificate_authority_data else ""
        raise cluster.place.error(f"certificate-authority{suffix}", str(failure)) from None


def _proxy(cluster: Placed[ClusterEntry], url: str, environ: Mapping[str, str]) -> str | None:
    if cluster.entry.proxy_url:
        try:
            return check_proxy_url(cluster.entry.proxy_url)
        except ProxyUrlError as failure:
            raise cluster.place.error("proxy-url", str(failure)) from None
    try:
        return proxy_from_environment(url, environ)
    except ProxyUrlError as failure:
        raise ClientConfigError(str(failure)) from None
