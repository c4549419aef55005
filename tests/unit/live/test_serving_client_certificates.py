"""Who asks, by certificate or by a proxy's word; with CAs from files and from the cluster."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from secured_port import (
    Answered,
    Authority,
    OutOfReach,
    ReviewingServer,
    authenticating,
    serving,
    trusting_all,
)

from kubesched.k8s.client.errors import ApiError
from kubesched.live.serving.authentication import AuthenticationError, ClusterLookup, VerifiedChain
from kubesched.live.serving.certificates import CaBundle
from kubesched.live.serving.settings import RequestHeaderSettings, ServingError, ServingSettings

BOB_BEHIND_A_PROXY = {
    "X-Remote-User": "bob",
    "X-Remote-Group": "dev",
    "X-Remote-Extra-Scope%2Fa": "x",
    "X-Remote-Uid": "9",
}


@pytest.fixture
def clients(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "clients")


@pytest.fixture
def proxies(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "proxies")


def ask(
    settings: ServingSettings,
    client: ReviewingServer,
    pair: tuple[Path, Path] | None,
    headers: Mapping[str, str] | None = None,
    path: str = "/version",
) -> Answered:
    async def run() -> Answered:
        async with serving(client=client, settings=settings) as port:
            return await (port if pair is None else port.with_certificate(pair)).get(path, headers)

    return asyncio.run(run())


def both(clients: Authority, proxies: Authority, **proxy: Any) -> ServingSettings:
    headers = RequestHeaderSettings(client_ca_file=str(proxies.file), **proxy)
    return authenticating(client_ca_file=str(clients.file), request_headers=headers)


def test_a_certificate_says_who_asks_and_of_which_groups(clients: Authority) -> None:
    client = ReviewingServer()
    ask(authenticating(client_ca_file=str(clients.file)), client, clients.issue("eve", "ops", "dev"))
    (spec,) = client.reviews("subjectaccessreviews")
    extra = spec.pop("extra")
    assert spec == {
        "nonResourceAttributes": {"path": "/version", "verb": "get"},
        "user": "eve",
        "groups": ["ops", "dev", "system:authenticated"],
    }
    (fingerprint,) = extra["authentication.kubernetes.io/credential-id"]
    assert fingerprint.startswith("X509SHA256=")
    assert len(fingerprint) == len("X509SHA256=") + 64


def test_masters_may_everything(clients: Authority) -> None:
    clients.file.write_text(f"# Zertifizierungsstelle für Kunden\n{clients.pem}\n# Ende\n")
    settings = authenticating(client_ca_file=str(clients.file), skip_lookup=True)
    assert ask(settings, ReviewingServer(), clients.issue("admin", "system:masters")).status == 200


def test_a_certificate_may_be_signed_on_the_way(clients: Authority, proxies: Authority, tmp_path: Path) -> None:
    between = Authority(tmp_path, "between", parent=clients)
    pair = between.issue("admin", "system:masters")
    assert ask(both(clients, proxies), ReviewingServer(), pair).status == 200
    only_between = authenticating(client_ca_file=str(between.file))
    assert ask(only_between, ReviewingServer(), pair).status == 200, "trust may begin in the middle"


def test_a_connection_that_is_resumed_is_by_the_same_user(clients: Authority) -> None:
    context = trusting_all()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(*clients.issue("admin", "system:masters"))

    def talk(port: int, session: ssl.SSLSession | None) -> tuple[bytes, bool | None, ssl.SSLSession | None]:
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            context.wrap_socket(plain, session=session) as secure,
        ):
            secure.sendall(b"GET /version HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            return secure.recv(12), secure.session_reused, secure.session

    async def run() -> list[tuple[bytes, bool | None]]:
        settings = authenticating(client_ca_file=str(clients.file), skip_lookup=True)
        async with serving(client=ReviewingServer(), settings=settings) as port:
            first, reused, session = await asyncio.to_thread(talk, port.port, None)
            again, reused_again, _ = await asyncio.to_thread(talk, port.port, session)
            return [(first, reused), (again, reused_again)]

    assert asyncio.run(run()) == [(b"HTTP/1.1 200", False), (b"HTTP/1.1 200", True)]


def test_a_certificate_that_expires_does_not_count_any_more(clients: Authority) -> None:
    expired = clients.issue("eve", for_time=timedelta(hours=-1))[0].read_bytes()
    chain = VerifiedChain((ssl.PEM_cert_to_DER_cert(expired.decode()), ssl.PEM_cert_to_DER_cert(clients.pem)))
    with pytest.raises(AuthenticationError, match="x509: certificate has expired or is not yet valid"):
        chain.check_traced_to(CaBundle(clients.pem))


def test_a_proxy_speaks_for_others(clients: Authority, proxies: Authority) -> None:
    client = ReviewingServer()
    ask(both(clients, proxies), client, proxies.issue("front"), BOB_BEHIND_A_PROXY)
    assert client.reviews("subjectaccessreviews") == [
        {
            "nonResourceAttributes": {"path": "/version", "verb": "get"},
            "user": "bob",
            "groups": ["dev", "system:authenticated"],
            "extra": {"scope/a": ["x"]},
        }
    ]


@pytest.mark.parametrize(
    ("authority", "headers", "user"),
    [
        pytest.param("clients", BOB_BEHIND_A_PROXY, "front", id="a client is not a proxy"),
        pytest.param("proxies", {}, None, id="a proxy is not a client"),
        pytest.param(None, BOB_BEHIND_A_PROXY, "system:anonymous", id="headers alone are nobody's word"),
    ],
)
def test_each_ca_is_for_its_own_purpose(
    clients: Authority, proxies: Authority, authority: str | None, headers: dict[str, str], user: str | None
) -> None:
    client = ReviewingServer()
    pair = None if authority is None else {"clients": clients, "proxies": proxies}[authority].issue("front")
    answer = ask(both(clients, proxies), client, pair, headers)
    reviews = client.reviews("subjectaccessreviews")
    assert [spec["user"] for spec in reviews] == ([] if user is None else [user])
    assert answer.status == (401 if user is None else 403)


def test_only_proxies_of_allowed_names_are_trusted(clients: Authority, proxies: Authority) -> None:
    settings = both(clients, proxies, allowed_names=("front",))
    assert ask(settings, ReviewingServer(), proxies.issue("other"), BOB_BEHIND_A_PROXY).status == 401
    assert ask(settings, ReviewingServer(), proxies.issue("front"), BOB_BEHIND_A_PROXY).status == 403


def test_a_certificate_and_a_wrong_token_are_enough(clients: Authority) -> None:
    settings = authenticating(client_ca_file=str(clients.file))
    pair = clients.issue("admin", "system:masters")
    assert ask(settings, ReviewingServer(), pair, {"Authorization": "Bearer nobody"}).status == 200


def test_a_certificate_of_an_unknown_ca_is_not_even_talked_to(clients: Authority, proxies: Authority) -> None:
    with pytest.raises((aiohttp.ClientError, OSError)):
        ask(authenticating(client_ca_file=str(clients.file)), ReviewingServer(), proxies.issue("eve"))


def cluster_configuration(clients: Authority, proxies: Authority) -> dict[str, str]:
    return {
        "client-ca-file": clients.pem,
        "requestheader-client-ca-file": proxies.pem,
        "requestheader-allowed-names": '["front"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
    }


def test_what_no_flag_names_is_looked_for_in_the_cluster(clients: Authority, proxies: Authority) -> None:
    client = ReviewingServer(config_map=cluster_configuration(clients, proxies))
    assert ask(authenticating(), client, clients.issue("admin", "system:masters")).status == 200
    ask(authenticating(), client, proxies.issue("front"), BOB_BEHIND_A_PROXY)
    (spec,) = client.reviews("subjectaccessreviews")
    assert (spec["user"], spec["uid"]) == ("bob", "9")


def test_nothing_is_looked_for_when_told_so(clients: Authority, proxies: Authority) -> None:
    client = ReviewingServer(config_map=cluster_configuration(clients, proxies))
    ask(authenticating(skip_lookup=True), client, clients.issue("admin", "system:masters"))
    assert [path for path, _ in client.asked if "configmaps" in path] == []
    assert [spec["user"] for spec in client.reviews("subjectaccessreviews")] == ["system:anonymous"]


def test_a_lookup_that_fails_is_tolerated_or_not() -> None:
    assert ask(authenticating(), OutOfReach(), None, path="/healthz").status == 200
    with pytest.raises(ServingError, match="unable to load configmap based request-header-client-ca-file: connection"):
        ask(authenticating(tolerate_lookup_failure=False), OutOfReach(), None)


def test_a_config_map_that_is_not_there_is_no_failure() -> None:
    assert ask(authenticating(tolerate_lookup_failure=False), ReviewingServer(), None, path="/healthz").status == 200


def test_the_cluster_is_looked_at_again_every_minute(clients: Authority, proxies: Authority) -> None:
    client = ReviewingServer(config_map={"client-ca-file": clients.pem})
    bundle = CaBundle(clients.pem)
    slept: list[float] = []

    async def sleep(for_s: float) -> None:
        slept.append(for_s)
        if len(slept) == 2:
            client.failure = ApiError(500)
        elif len(slept) == 3:
            client.failure, client.config_map = None, {"client-ca-file": proxies.pem}
        elif len(slept) == 4:
            client.config_map = {"client-ca-file": "no certificate"}
        elif len(slept) == 5:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(ClusterLookup(client, bundle, None, sleep).keep_looking())
    assert (slept, bundle.pem) == ([60.0] * 5, proxies.pem), "what fails leaves the CAs as they were"


def test_a_ca_that_changes_counts_for_who_connects_next(clients: Authority, proxies: Authority) -> None:
    pair = proxies.issue("admin", "system:masters")

    async def run() -> int:
        async with serving(
            client=ReviewingServer(), settings=authenticating(client_ca_file=str(clients.file), skip_lookup=True)
        ) as port:
            clients.file.write_text(proxies.pem)
            return (await port.with_certificate(pair).get("/version")).status

    assert asyncio.run(run()) == 200


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(authenticating(client_ca_file="/no/ca"), "--client-ca-file: /no/ca: ", id="client CA"),
        pytest.param(
            authenticating(request_headers=RequestHeaderSettings(client_ca_file="/no/ca")),
            "--requestheader-client-ca-file: /no/ca: ",
            id="proxies' CA",
        ),
        pytest.param(
            authenticating(request_headers=RequestHeaderSettings(username_headers=(" ",))),
            "--requestheader-username-headers: empty header ' '",
            id="header without a name",
        ),
    ],
)
def test_flags_that_cannot_be_used_are_named(settings: ServingSettings, message: str) -> None:
    with pytest.raises(ServingError, match=message):
        ask(settings, ReviewingServer(), None)
