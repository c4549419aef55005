"""Requests for certificates: who asks, who may approve and sign, and what never changes."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from access_objects import MERGE_PATCH, ask_as, give, rule
from apiserver_serving import TestClient, serve
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_KEY = ec.generate_private_key(ec.SECP256R1())
_ALL_PARTS = " ".join(f"certificatesigningrequests{part}" for part in ("", "/approval", "/status"))


def _name(*organizations: str) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, "robot")])


def _pem(made: x509.CertificateSigningRequest | x509.Certificate) -> str:
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


def _wanted(*organizations: str) -> str:
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(*organizations))
    return _pem(builder.sign(_KEY, hashes.SHA256()))


def _certificate() -> str:
    builder = x509.CertificateBuilder().subject_name(_name()).issuer_name(_name()).public_key(_KEY.public_key())
    builder = builder.serial_number(1).not_valid_before(datetime(2026, 1, 1, tzinfo=UTC))
    return _pem(builder.not_valid_after(datetime(2027, 1, 1, tzinfo=UTC)).sign(_KEY, hashes.SHA256()))


def _request(name: str = "it", **spec: Any) -> dict[str, Any]:
    usages = ["digital signature", "client auth"]
    wish = {"request": _wanted(), "signerName": "example.com/signer", "usages": usages, **spec}
    return {"metadata": {"name": name}, "spec": wish}


def _condition(kind: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", "reason": "Tested"}]}}


def test_the_server_says_who_asks() -> None:
    async def body(client: TestClient) -> None:
        await give(client, "alice", rule("create", "certificates.k8s.io", "certificatesigningrequests"))
        forged = {**_request(username="admin", groups=["system:masters"]), **_condition("Approved")}
        made = await ask_as(client, "alice", "POST", _PATH, forged)
        assert made.body["spec"]["username"] == "alice"
        assert made.body["spec"]["groups"] == ["system:authenticated"]
        assert made.body["status"] == {}
        other = {"spec": {"signerName": "other.com/x"}, **_condition("Approved")}
        changed = await client.ask("PATCH", f"{_PATH}/it", other, Content_Type=MERGE_PATCH)
        assert changed.body["spec"]["signerName"] == "example.com/signer"
        assert changed.body["status"] == {}

    serve(body)


def test_approving_and_signing_need_a_right_on_the_signer() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", _PATH, _request())
        await give(client, "alice", rule("*", "certificates.k8s.io", _ALL_PARTS))
        for path, change, verb in (
            (f"{_PATH}/it/approval", _condition("Approved"), "approve"),
            (f"{_PATH}/it/status", {"status": {"certificate": _certificate()}}, "sign"),
        ):
            refused = await ask_as(client, "alice", "PATCH", path, change, Content_Type=MERGE_PATCH)
            why = f'user not permitted to {verb} requests with signerName "example.com/signer"'
            named = 'certificatesigningrequests.certificates.k8s.io "it" is forbidden: '
            assert (refused.status, refused.message) == (403, named + why)
            right = rule(verb, "certificates.k8s.io", "signers", "example.com/*")
            await give(client, "alice", right, name=f"may-{verb}")
            assert (await ask_as(client, "alice", "PATCH", path, change, Content_Type=MERGE_PATCH)).status == 200
        found = await client.ask("GET", f"{_PATH}/it")
        assert found.body["status"]["certificate"]
        (condition,) = found.body["status"]["conditions"]
        assert condition["lastUpdateTime"] == condition["lastTransitionTime"]

    serve(body)


def test_a_decision_stays() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", _PATH, _request())
        through_status = await client.ask(
            "PATCH", f"{_PATH}/it/status", _condition("Approved"), Content_Type=MERGE_PATCH
        )
        assert 'updates may not add a condition of type "Approved"' in through_status.message
        approval = f"{_PATH}/it/approval"
        assert (await client.ask("PATCH", approval, _condition("Approved"), Content_Type=MERGE_PATCH)).status == 200
        denied = await client.ask("PATCH", approval, _condition("Denied"), Content_Type=MERGE_PATCH)
        assert 'updates may not remove a condition of type "Approved"' in denied.message

    serve(body)


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        pytest.param(
            {"request": base64.b64encode(b"x").decode()}, "PEM block type must be CERTIFICATE REQUEST", id="PEM"
        ),
        pytest.param({"signerName": "signer"}, "must be a fully qualified domain and path of the form", id="signer"),
        pytest.param({"usages": []}, "spec.usages: Required value", id="usages"),
        pytest.param(
            {"expirationSeconds": 5}, "may not specify a duration less than 600 seconds (10 minutes)", id="short"
        ),
        pytest.param(
            {"signerName": "kubernetes.io/kube-apiserver-client", "request": _wanted("system:masters")},
            "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed",
            id="masters",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(spec: dict[str, Any], wrong: str) -> None:
    async def body(client: TestClient) -> None:
        refused = await client.ask("POST", _PATH, _request(**spec))
        assert refused.status in (403, 422)
        assert wrong in refused.message

    serve(body)
