"""No secret reaches a log, whatever way it takes."""

from __future__ import annotations

import io
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.live.logs.setup import KlogJsonFormatter, KlogTextFormatter, redact, safe_value

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzYSJ9Cg.c2lnbmF0dXJl"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEsecretsecret\nabc=\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Authorization: Bearer abc.def", "Authorization: REDACTED", id="a header"),
        pytest.param("{'Authorization': 'Basic dXNlcjpwYXNz'}", "{'Authorization': 'REDACTED'}", id="a map of headers"),
        pytest.param("sent bearer 0123456789abcdef0123", "sent bearer REDACTED", id="a bearer token in prose"),
        pytest.param(f"got {JWT} back", "got REDACTED back", id="a JSON web token"),
        pytest.param(f"key {PEM} end", "key REDACTED end", id="a private key"),
        pytest.param(f"key {PEM[:50]}", "key REDACTED", id="a private key cut short"),
        pytest.param("client-key-data: LS0tLS1CRUdJTiBSU0Eg", "client-key-data: REDACTED", id="a kubeconfig's key"),
        pytest.param("data LS0tLS1CRUdJTiBSU0Eg== x", "data REDACTED x", id="key data without its name"),
        pytest.param('"password": "hunter2"', '"password": REDACTED', id="a password in JSON"),
        pytest.param("password=x", "password=REDACTED", id="a short password"),
        pytest.param("token: abc-123456", "token: REDACTED", id="a token in YAML"),
        pytest.param("refresh-token=abc", "refresh-token=REDACTED", id="a refresh token"),
        pytest.param("GET /watch?token=abc&x=1", "GET /watch?token=REDACTED&x=1", id="a token in a query"),
        pytest.param("proxy http://me:pw@host:80/", "proxy http://REDACTED@host:80/", id="a password in an address"),
        pytest.param("reading token: open /x: no such file", "reading token: open /x: no such file", id="prose"),
        pytest.param("https://host/a@b", "https://host/a@b", id="an address without a password"),
        pytest.param("secret default/my-tls not found", "secret default/my-tls not found", id="a Secret's name"),
    ],
)
def test_what_looks_like_a_secret_is_taken_out(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize("name", ["token", "Authorization", "client-key-data", "client_key_data", "clientKeyData"])
def test_a_field_named_like_a_secret_loses_its_value(name: str) -> None:
    assert safe_value(name, "x") == "REDACTED"
    assert safe_value("outer", {"inner": [{name: "x"}]}) == {"inner": [{name: "REDACTED"}]}


@given(
    st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789", min_size=12, max_size=40),
    st.sampled_from(["text", "json"]),
)
@settings(max_examples=60, deadline=None)
def test_a_secret_shows_in_no_format(middle: str, log_format: str) -> None:
    secret = f"zq9{middle}"
    formatter = KlogTextFormatter() if log_format == "text" else KlogJsonFormatter()
    logger = logging.Logger("kubesched.secretive")
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logger.addHandler(handler)
    logger.info("sent Authorization: Bearer %s", secret)
    logger.info("Headers", extra={"fields": {"headers": {"Authorization": f"Bearer {secret}"}, "token": secret}})
    logger.info("User", extra={"fields": {"user": {"token": secret, "password": secret, "client-key-data": secret}}})
    logger.info("Body", extra={"fields": {"body": secret.encode()}})
    logger.error("Failed", extra={"fields": {"err": ValueError(f"bad password: {secret}")}})
    assert stream.getvalue().count("\n") == 5
    assert secret not in stream.getvalue()
