"""Credential plugins: small programs in the test's own folder."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from loopback_servers import authority, client_identity

from kubesched.k8s.client.credentials.exec_plugin import ExecPluginCredentials, PluginAnswerError, exec_info, read_login
from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.kubeconfig import load_target
from kubesched.k8s.client.kubeconfig_file import EntryPlace, ExecEntry, ExecVariable
from kubesched.k8s.client.target import show_certificate

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


def _answer(version: str = V1, **status: str) -> str:
    return json.dumps({"kind": "ExecCredential", "apiVersion": version, "status": status})


def _plugin(folder: Path, *answers: str) -> Path:
    """A program that gives one answer after another, the last one forever, and writes down each run."""
    for number, answer in enumerate(answers):
        (folder / f"answer{number}").write_text(answer)
    script = folder / "plugin.sh"
    script.write_text(
        "#!/bin/sh\n"
        f'cd {folder} && echo "$KUBERNETES_EXEC_INFO|$GREETING|$*" >> runs && n=$(($(wc -l < runs) - 1))\n'
        f"[ $n -lt {len(answers)} ] || n={len(answers) - 1}\n"
        "cat answer$n\n"
    )
    script.chmod(0o700)
    return script


def _runs(folder: Path) -> list[str]:
    return (folder / "runs").read_text().splitlines()


class _Now:
    now_s = 1_000_000_000.0  # 2001-09-09T01:46:40Z

    def __call__(self) -> float:
        return self.now_s


def _credentials(folder: Path, command: str, now: _Now | None = None, **fields: Any) -> ExecPluginCredentials:
    entry = ExecEntry(command=command, api_version=fields.pop("api_version", V1), **fields)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ExecPluginCredentials(
        entry,
        EntryPlace(folder / "config", "user", "u"),
        show_certificate=lambda certificate, key: show_certificate(context, certificate, key),
        now=now or _Now(),
    )


def test_a_plugin_is_run_once_and_told_what_it_needs(tmp_path: Path) -> None:
    _plugin(tmp_path, _answer(token="abc"))
    credentials = _credentials(tmp_path, "./plugin.sh", args=["get", "token"], env=[ExecVariable("GREETING", "hello")])

    async def story() -> None:
        one, other = await asyncio.gather(credentials.headers(), credentials.headers())
        assert one == other == (("Authorization", "Bearer abc"),)
        assert await credentials.headers() is one

    asyncio.run(story())
    assert _runs(tmp_path) == [f"{exec_info(V1, None)}|hello|get token"]
    assert json.loads(exec_info(V1, None)) == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False},
    }


def test_a_login_is_renewed_when_it_expires(tmp_path: Path) -> None:
    _plugin(
        tmp_path,
        _answer(V1BETA1, token="one", expirationTimestamp="2001-09-09T01:47:00Z"),
        _answer(V1BETA1, token="two", expirationTimestamp="2001-09-09T03:47:00.5+02:00"),
    )
    now = _Now()
    credentials = _credentials(tmp_path, str(tmp_path / "plugin.sh"), now, api_version=V1BETA1)

    async def story() -> list[str]:
        tokens = []
        for now.now_s in (1_000_000_000, 1_000_000_019, 1_000_000_020, 1_000_000_020.4):
            tokens.append((await credentials.headers())[0][1])
        return tokens

    assert asyncio.run(story()) == ["Bearer one", "Bearer one", "Bearer two", "Bearer two"]


def test_a_refused_login_is_renewed_once_for_all(tmp_path: Path) -> None:
    _plugin(tmp_path, _answer(token="one"), _answer(token="two"))
    credentials = _credentials(tmp_path, "./plugin.sh")

    async def story() -> None:
        used = await credentials.headers()
        assert await asyncio.gather(*(credentials.renew(used, 0) for _ in range(3))) == [True] * 3
        assert await credentials.headers() == (("Authorization", "Bearer two"),)

    asyncio.run(story())
    assert len(_runs(tmp_path)) == 2
    assert "./plugin.sh" in credentials.advice()


def test_a_certificate_from_a_plugin_is_shown_and_a_new_one_asks_for_new_connections(tmp_path: Path) -> None:
    one, two = client_identity("one"), client_identity("two")
    answers = [
        _answer(clientCertificateData=who.certificate.decode(), clientKeyData=who.key.decode())
        for who in (one, one, two)
    ]
    _plugin(tmp_path, *answers)
    credentials = _credentials(tmp_path, "./plugin.sh")

    async def story() -> list[int]:
        epochs = []
        assert await credentials.headers() == ()
        epochs.append(credentials.connection_epoch)
        for _ in range(2):
            assert await credentials.renew((), credentials.connection_epoch)
            epochs.append(credentials.connection_epoch)
        return epochs

    assert asyncio.run(story()) == [1, 1, 2]


@pytest.mark.parametrize(
    ("output", "why"),
    [
        pytest.param("hello", "its output is not JSON", id="not JSON"),
        pytest.param('{"kind":"Pod"}', "its output is not an ExecCredential", id="another kind"),
        pytest.param(
            _answer(V1BETA1, token="s3cret"), f"configured for apiVersion {V1} and answers in another", id="version"
        ),
        pytest.param(
            json.dumps({"kind": "ExecCredential", "apiVersion": V1}), "did not return a status field", id="no status"
        ),
        pytest.param(_answer(), "did not return a token or a certificate with key", id="an empty status"),
        pytest.param(_answer(clientKeyData="s3cret"), "only one of clientCertificateData and", id="a key alone"),
        pytest.param(_answer(token="s3cret", expirationTimestamp="soon"), "expirationTimestamp", id="no time"),
        pytest.param(
            json.dumps({"kind": "ExecCredential", "apiVersion": V1, "status": {"token": {"s3cret": 1}}}),
            "wrong type in status.token",
            id="a token of the wrong type",
        ),
    ],
)
def test_an_answer_that_cannot_be_used_says_why_and_not_what(output: str, why: str) -> None:
    with pytest.raises(PluginAnswerError, match=why) as refused:
        read_login(output.encode(), V1)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        pytest.param("echo no session >&2; exit 3", "failed with exit code 3: no session", id="that fails"),
        pytest.param("echo hello", "its output is not JSON", id="that says something else"),
    ],
)
def test_a_plugin_that_fails_is_named_with_its_hint(tmp_path: Path, script: str, why: str) -> None:
    (tmp_path / "bad").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "bad").chmod(0o700)
    credentials = _credentials(tmp_path, "./bad", install_hint="Install it from example.org.\n")
    with pytest.raises(ClientConfigError) as refused:
        asyncio.run(credentials.headers())
    assert str(refused.value) == (
        f"{tmp_path}/config: user \"u\": exec: credential plugin './bad': {why}\nInstall it from example.org."
    )


@pytest.mark.parametrize(
    ("command", "why"),
    [
        pytest.param("no-such-plugin", "not found in PATH", id="by name"),
        pytest.param("./no-such-plugin", "/no-such-plugin does not exist", id="by path"),
        pytest.param("./config", "cannot be run: Permission denied", id="that is not a program"),
    ],
)
def test_a_plugin_that_cannot_be_run_is_named(tmp_path: Path, command: str, why: str) -> None:
    (tmp_path / "config").write_text("")
    with pytest.raises(ClientConfigError, match=why):
        asyncio.run(_credentials(tmp_path, command).headers())


def test_a_plugin_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesched.k8s.client.credentials.exec_plugin.RUN_TIMEOUT_S", 0.05)
    credentials = _credentials(tmp_path, sys.executable, args=["-c", "import signal; signal.pause()"])
    with pytest.raises(ClientConfigError, match=r"did not finish within 0.05 s"):
        asyncio.run(credentials.headers())


def test_a_plugin_that_asks_learns_of_the_cluster(tmp_path: Path) -> None:
    _plugin(tmp_path, _answer(token="abc"))
    (tmp_path / "ca.crt").write_bytes(authority().certificate)
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    plugin = {
        "apiVersion": V1,
        "command": "./plugin.sh",
        "interactiveMode": "IfAvailable",
        "provideClusterInfo": True,
    }
    cluster = {
        "server": "https://h:1",
        "certificate-authority": "ca.crt",
        "tls-server-name": "name.of.it",
        "proxy-url": "http://p:1",
        "extensions": [extension, {"name": "other", "extension": {}}],
    }
    config = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"exec": plugin}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    target = load_target(tmp_path / "config", environ=os.environ)
    asyncio.run(target.credentials.headers())
    told = json.loads(_runs(tmp_path)[0].split("|")[0])["spec"]["cluster"]
    assert told.pop("certificate-authority-data")
    assert told == {
        "server": "https://h:1",
        "tls-server-name": "name.of.it",
        "proxy-url": "http://p:1",
        "config": {"audience": "x"},
    }
