"""From kubeconfig files to a server and a login, and what is said of files that do not work."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from loopback_servers import authority, client_identity

from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.kubeconfig import load_target
from kubesched.k8s.client.target import Headers


def _config(cluster: dict[str, Any], user: dict[str, Any] | None = None, **context: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "ctx",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "ctx", "context": {"cluster": "c", "user": "u"} | context}],
    }


SERVER = {"server": "https://10.0.0.1:6443"}


def _write(path: Path, config: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    return path


def _headers(path: Path) -> Headers:
    return asyncio.run(load_target(path, environ={}).credentials.headers())


@pytest.mark.parametrize(
    ("user", "headers"),
    [
        pytest.param({}, (), id="nobody"),
        pytest.param({"token": "abc"}, (("Authorization", "Bearer abc"),), id="a token"),
        pytest.param({"tokenFile": "token"}, (("Authorization", "Bearer from-file"),), id="a token in a file"),
        pytest.param(
            {"token": "abc", "tokenFile": "token"}, (("Authorization", "Bearer from-file"),), id="the file wins"
        ),
        pytest.param(
            {"token": "abc", "tokenFile": "none"},
            (("Authorization", "Bearer abc"),),
            id="the token when it is not there",
        ),
        pytest.param(
            {"username": "ü", "password": "p:w"},
            (("Authorization", "Basic " + base64.b64encode("ü:p:w".encode()).decode()),),
            id="user name and password",
        ),
        pytest.param(
            {
                "token": "abc",
                "as": "jane",
                "as-uid": "7",
                "as-groups": ["a", "b"],
                "as-user-extra": {"Scopes/x y": ["1", "2"]},
            },
            (
                ("Authorization", "Bearer abc"),
                ("Impersonate-User", "jane"),
                ("Impersonate-Uid", "7"),
                ("Impersonate-Group", "a"),
                ("Impersonate-Group", "b"),
                ("Impersonate-Extra-scopes%2Fx%20y", "1"),
                ("Impersonate-Extra-scopes%2Fx%20y", "2"),
            ),
            id="somebody else",
        ),
        pytest.param({"token": None, "as": None}, (), id="nulls are nothing"),
    ],
)
def test_a_user_logs_in_with(tmp_path: Path, user: dict[str, Any], headers: Headers) -> None:
    (tmp_path / "token").write_text("from-file\n")
    assert _headers(_write(tmp_path / "config", _config(SERVER, user))) == headers


@pytest.mark.parametrize(
    ("cluster", "user", "url"),
    [
        pytest.param({"server": "https://h:1/"}, {}, "https://h:1", id="a slash at the end is dropped"),
        pytest.param({"server": "https://h/k8s/c-1"}, {}, "https://h/k8s/c-1", id="a path is kept"),
        pytest.param({"server": "localhost:8080"}, {}, "http://localhost:8080", id="without a scheme it is http"),
        pytest.param(
            {"server": "h", "insecure-skip-tls-verify": True}, {}, "https://h", id="but https when TLS is configured"
        ),
        pytest.param({"server": "https://[::1]:6443"}, {}, "https://[::1]:6443", id="an IPv6 address"),
    ],
)
def test_the_server_address(tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], url: str) -> None:
    assert load_target(_write(tmp_path / "config", _config(cluster, user)), environ={}).url == url


def test_a_context_gives_server_user_and_namespace(tmp_path: Path) -> None:
    config = _config(SERVER, {"token": "a"}, namespace="shop")
    config["clusters"].append({"name": "d", "cluster": {"server": "https://d", "proxy-url": "http://p:1"}})
    config["contexts"].append({"name": "other", "context": {"cluster": "d"}})
    path = _write(tmp_path / "config", config)
    current, other = load_target(path, environ={}), load_target(path, "other", environ={})
    assert (current.url, current.namespace, current.proxy) == ("https://10.0.0.1:6443", "shop", None)
    assert (other.url, other.namespace, other.proxy) == ("https://d", "default", "http://p:1")
    assert current.source == f'context "ctx" of {path}'
    assert current.files == (path,)


def test_master_overrides_the_address(tmp_path: Path) -> None:
    path = _write(tmp_path / "config", _config(SERVER | {"insecure-skip-tls-verify": True}, {"token": "t"}))
    target = load_target(path, None, "https://elsewhere:1", environ={})
    assert target.url == "https://elsewhere:1"
    assert asyncio.run(target.credentials.headers()) == (("Authorization", "Bearer t"),)


def test_master_alone_is_enough(tmp_path: Path) -> None:
    target = load_target(None, None, "http://127.0.0.1:8080", environ={"HOME": str(tmp_path)})
    assert (target.url, target.ssl_context, target.source) == ("http://127.0.0.1:8080", None, "--master")


def test_the_files_are_those_kubectl_would_read(tmp_path: Path) -> None:
    home = _write(tmp_path / "home" / ".kube" / "config", _config({"server": "https://home"}))
    listed = _write(tmp_path / "listed", _config({"server": "https://listed"}))
    named = _write(tmp_path / "named", _config({"server": "https://named"}))
    environ = {"HOME": str(tmp_path / "home")}
    with_list = environ | {"KUBECONFIG": f"{tmp_path / 'missing'}{os.pathsep}{os.pathsep}{listed}"}
    assert load_target(environ=environ).url == "https://home"
    assert load_target(environ=with_list).url == "https://listed"
    assert load_target(named, environ=with_list).url == "https://named"
    assert load_target(environ=environ).files == (home,)


def test_of_several_files_the_first_with_an_entry_wins_whole(tmp_path: Path) -> None:
    first = _config({"server": "https://first"}, {"as": "jane"})
    first["current-context"] = ""
    second = _config({"server": "https://second", "proxy-url": "http://p:1"}, {"token": "t"}, namespace="ns")
    second["contexts"].append({"name": "two", "context": {"cluster": "c2", "user": "u2"}})
    second["clusters"].append({"name": "c2", "cluster": {"server": "https://c2"}})
    second["users"].append({"name": "u2", "user": {"tokenFile": "token"}})
    second["current-context"] = "two"
    a, b = _write(tmp_path / "a" / "config", first), _write(tmp_path / "b" / "config", second)
    (tmp_path / "b" / "token").write_text("relative to its own file")
    environ = {"KUBECONFIG": f"{a}{os.pathsep}{b}"}
    chosen, current = load_target(None, "ctx", environ=environ), load_target(environ=environ)
    assert (chosen.url, chosen.proxy, chosen.namespace) == ("https://first", None, "default")
    assert asyncio.run(chosen.credentials.headers()) == (("Impersonate-User", "jane"),)
    assert current.url == "https://c2"
    assert asyncio.run(current.credentials.headers()) == (("Authorization", "Bearer relative to its own file"),)
    assert current.files == (a, b, tmp_path / "b" / "token")


def test_the_environment_names_a_proxy_unless_the_cluster_does(tmp_path: Path) -> None:
    environ = {"HTTPS_PROXY": "http://env:1"}
    plain = _write(tmp_path / "plain", _config(SERVER))
    own = _write(tmp_path / "own", _config(SERVER | {"proxy-url": "http://own:1"}))
    assert load_target(plain, environ=environ).proxy == "http://env:1"
    assert load_target(plain, environ=environ | {"NO_PROXY": "10.0.0.0/8"}).proxy is None
    assert load_target(own, environ=environ).proxy == "http://own:1"


CERTIFICATE = base64.b64encode(client_identity().certificate).decode()
KEY = base64.b64encode(client_identity().key).decode()
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "x", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        pytest.param({}, {}, 'cluster "c": server: is required', id="no server"),
        pytest.param(
            {"server": "ftp://x"},
            {},
            'cluster "c": server: must be a URL like https://host:6443',
            id="not a web server",
        ),
        pytest.param({"server": "https://h:port"}, {}, 'cluster "c": server: must be a URL', id="a port of letters"),
        pytest.param({"server": 5}, {}, 'cluster "c": server: Expected `str`, got `int`', id="a number as server"),
        pytest.param(
            SERVER | {"certificate-authority": "none.crt"},
            {},
            'cluster "c": certificate-authority: cannot read {folder}/none.crt: No such file or directory',
            id="an authority that is not there",
        ),
        pytest.param(
            SERVER | {"certificate-authority-data": "%%%"},
            {},
            'cluster "c": certificate-authority-data: is not valid base64',
            id="an authority not in base64",
        ),
        pytest.param(
            SERVER | {"certificate-authority-data": "aGVsbG8="},
            {},
            'cluster "c": certificate-authority-data: holds no PEM certificate',
            id="an authority that is none",
        ),
        pytest.param(
            SERVER | {"certificate-authority-data": CERTIFICATE, "certificate-authority": "x"},
            {},
            'cluster "c": certificate-authority: only one of',
            id="two authorities",
        ),
        pytest.param(
            SERVER | {"certificate-authority-data": CERTIFICATE, "insecure-skip-tls-verify": True},
            {},
            'cluster "c": insecure-skip-tls-verify: cannot be used together',
            id="an authority and no verification",
        ),
        pytest.param(
            SERVER | {"proxy-url": "socks5://p"},
            {},
            'cluster "c": proxy-url: SOCKS proxies are not',
            id="a SOCKS proxy",
        ),
        pytest.param(
            SERVER, {"token": 12345}, 'user "u": token: Expected `str`, got `int`', id="a token without quotes"
        ),
        pytest.param(
            SERVER,
            {"token": "t", "username": "x"},
            'user "u": token: only one of token and username/password is allowed',
            id="two ways to log in",
        ),
        pytest.param(
            SERVER,
            {"client-certificate-data": CERTIFICATE},
            'user "u": client-key: client-key or client-key-data is required',
            id="a certificate without key",
        ),
        pytest.param(
            SERVER,
            {"client-key-data": KEY},
            'user "u": client-certificate: client-certificate or client-certificate-data is required',
            id="a key without certificate",
        ),
        pytest.param(
            SERVER,
            {"client-certificate-data": CERTIFICATE, "client-key": "k", "client-key-data": KEY},
            'user "u": client-key: only one of client-key and client-key-data',
            id="two keys",
        ),
        pytest.param(
            SERVER,
            {"client-certificate-data": KEY, "client-key-data": KEY},
            'user "u": client-certificate: not a PEM certificate',
            id="a key in place of the certificate",
        ),
        pytest.param(SERVER, {"as-groups": ["a"]}, 'user "u": as: is required with', id="groups of nobody"),
        pytest.param(
            SERVER, {"exec": EXEC | {"command": ""}}, 'user "u": exec.command: is required', id="a plugin without name"
        ),
        pytest.param(
            SERVER,
            {"exec": EXEC | {"apiVersion": "client.authentication.k8s.io/v1alpha1"}},
            'user "u": exec.apiVersion: must be one of client.authentication.k8s.io/v1, ',
            id="a plugin of old",
        ),
        pytest.param(
            SERVER,
            {"exec": {k: v for k, v in EXEC.items() if k != "interactiveMode"}},
            'user "u": exec.interactiveMode: is required',
            id="v1 wants an interactive mode",
        ),
        pytest.param(
            SERVER,
            {"exec": EXEC | {"interactiveMode": "Always"}},
            'user "u": exec.interactiveMode: is Always, but kubesched cannot ask anybody',
            id="a plugin that wants to ask",
        ),
        pytest.param(
            SERVER, {"exec": EXEC | {"env": [{"value": "x"}]}}, 'user "u": exec.env: every variable', id="no name"
        ),
        pytest.param(
            SERVER,
            {"exec": EXEC | {"args": [1]}},
            'user "u": exec.args[0]: Expected `str`, got `int`',
            id="a number among the arguments",
        ),
        pytest.param(
            SERVER,
            {"exec": EXEC, "auth-provider": {"name": "oidc"}},
            'user "u": exec: cannot be used together with auth-provider',
            id="a plugin and a provider",
        ),
        pytest.param(
            SERVER,
            {"auth-provider": {"name": "gcp"}},
            "user \"u\": auth-provider: 'gcp' is not supported; use the credential plugin gke-gcloud-auth-plugin",
            id="a provider that Kubernetes removed",
        ),
        pytest.param(
            SERVER,
            {"auth-provider": {"name": "oidc", "config": {"client-id": "x"}}},
            'user "u": auth-provider.config.idp-issuer-url: is required',
            id="a provider without address",
        ),
    ],
)
def test_a_bad_entry_is_named_with_file_and_field(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], message: str
) -> None:
    path = _write(tmp_path / "config", _config(cluster, user))
    with pytest.raises(ClientConfigError) as refused:
        load_target(path, environ={})
    assert str(refused.value).startswith(f"{path}: " + message.format(folder=tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "line 2: not YAML: ", id="not YAML"),
        pytest.param("\x00", "not YAML: it has characters", id="not text"),
        pytest.param("- a", "not a kubeconfig: the file does not hold a mapping", id="a list"),
        pytest.param("kind: Pod", "kind: must be 'Config'; is this a kubeconfig?", id="another kind"),
        pytest.param("clusters: {}", "clusters: must be a list", id="clusters as a mapping"),
        pytest.param("users: [{user: {}}]", "users[0]: name: must be text", id="an entry without name"),
        pytest.param("users: [{name: a}, {name: a}]", 'users[1]: duplicate name "a"', id="the same name twice"),
        pytest.param("current-context: 5", "current-context: must be text", id="a number as context"),
        pytest.param(
            "contexts: [{name: a}, {name: b}]",
            "current-context: is not set; name a context with --context (there are: a, b)",
            id="no current context",
        ),
        pytest.param(
            "current-context: x",
            'current-context: context "x" does not exist (there are none)',
            id="a context that is not there",
        ),
        pytest.param(
            "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]",
            'context "x": cluster: cluster "c" does not exist',
            id="a cluster that is not there",
        ),
        pytest.param("current-context: x\ncontexts: [{name: x}]", 'context "x": cluster: is required', id="no cluster"),
        pytest.param(
            "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
            "clusters: [{name: c, cluster: {server: http://h}}]",
            'context "x": user: user "u" does not exist',
            id="a user that is not there",
        ),
        pytest.param("", "the kubeconfig is empty", id="nothing"),
    ],
)
def test_a_bad_file_says_where(tmp_path: Path, text: str, message: str) -> None:
    path = _write(tmp_path / "config", text)
    with pytest.raises(ClientConfigError) as refused:
        load_target(path, environ={})
    assert str(refused.value).startswith(f"{path}: {message}")


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ClientConfigError, match="none: cannot read the kubeconfig: No such file or directory"):
        load_target(tmp_path / "none", environ={})


def test_a_wrong_context_name_lists_the_right_ones(tmp_path: Path) -> None:
    path = _write(tmp_path / "config", _config(SERVER))
    with pytest.raises(ClientConfigError) as refused:
        load_target(path, "typo", environ={})
    assert str(refused.value) == f'{path}: context "typo" does not exist (there are: ctx)'


def test_nothing_configured_anywhere_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ClientConfigError) as refused:
        load_target(environ={"HOME": str(tmp_path)})
    assert str(refused.value) == (
        f"no cluster is configured: {tmp_path}/.kube/config is missing or empty, "
        "and there is no in-cluster service account; use --kubeconfig or $KUBECONFIG"
    )


def test_secrets_do_not_reach_messages(tmp_path: Path) -> None:
    """Whatever of a user's fields is broken, its value is not in the text."""
    assert authority()
    for user in (
        {"client-certificate-data": "s3cret!", "client-key-data": KEY},
        {"client-certificate-data": CERTIFICATE, "client-key-data": "s3cret!"},
        {"token": ["s3cret!"]},
        {"username": "a", "password": "s3cret!", "token": "s3cret!"},
        {"auth-provider": {"name": "oidc", "config": {"idp-issuer-url": "x", "client-id": "y", "id-token": "s3cret!"}}},
    ):
        path = _write(tmp_path / "config", _config(SERVER, user))
        with pytest.raises(ClientConfigError) as refused:
            load_target(path, environ={})
        assert "s3cret" not in str(refused.value)
