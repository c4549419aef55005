"""Tokens of service accounts: what they prove, to whom, and what they end with."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from access_objects import ACCOUNTS, WHO_AM_I, account_token
from apiserver_serving import PODS, TestClient, pod, serve
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from kubesched.playground.apiserver.kinds.registry import ALL_KINDS
from kubesched.playground.apiserver.storage.memory import MemoryStore
from kubesched.playground.apiserver.storage.store import ObjectKey
from kubesched.playground.apiserver.verbs.request import Api
from kubesched.playground.apiserver.verbs.service_tokens import ISSUER, InvalidTokenError, ServiceTokens

_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_SECRETS = "/api/v1/namespaces/default/secrets"
_ENDED = "[invalid bearer token, service account token has been invalidated]"


def _bound(kind: str, name: str, **more: str) -> dict[str, Any]:
    return {"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, **more}}


async def _review(client: TestClient, token: str, *audiences: str) -> dict[str, Any]:
    spec = {"token": token, "audiences": list(audiences)} if audiences else {"token": token}
    answered = await client.ask("POST", _REVIEWS, {"spec": spec})
    assert answered.status == 201
    return dict(answered.body["status"])


@pytest.mark.parametrize(
    ("kind", "path", "body"),
    [
        pytest.param("Pod", PODS, pod("it", serviceAccountName="robot"), id="pod"),
        pytest.param("Secret", _SECRETS, {"metadata": {"name": "it"}}, id="secret"),
        pytest.param("Node", "/api/v1/nodes", {"metadata": {"name": "it"}}, id="node"),
    ],
)
def test_a_token_ends_with_what_it_is_bound_to(kind: str, path: str, body: dict[str, Any]) -> None:
    async def scenario(client: TestClient) -> None:
        assert (await client.ask("POST", path, body)).status == 201
        token = await account_token(client, "robot", _bound(kind, "it"))
        assert (await _review(client, token))["authenticated"]
        assert (await client.ask("GET", "/version", Authorization=f"Bearer {token}")).status == 200
        assert (await client.ask("DELETE", f"{path}/it?gracePeriodSeconds=0")).status == 200
        assert (await _review(client, token))["error"] == _ENDED
        assert (await client.ask("GET", "/version", Authorization=f"Bearer {token}")).status == 401
        assert (await client.ask("POST", path, body)).status == 201  # a namesake is another object
        assert "does not match service account" in (await _review(client, token))["error"]

    serve(scenario)


def test_a_token_of_a_pod_tells_pod_and_node() -> None:
    async def scenario(client: TestClient) -> None:
        await client.ask("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
        await client.ask("POST", PODS, pod("it", serviceAccountName="robot", nodeName="n1"))
        token = await account_token(client, "robot", _bound("Pod", "it"))
        who = await client.ask("POST", WHO_AM_I, {}, Authorization=f"Bearer {token}")
        extra = who.body["status"]["userInfo"]["extra"]
        assert extra["authentication.kubernetes.io/pod-name"] == ["it"]
        assert extra["authentication.kubernetes.io/node-name"] == ["n1"]
        await client.ask("DELETE", "/api/v1/nodes/n1")
        assert (await _review(client, token))["authenticated"]  # bound to the pod, not to its node

    serve(scenario)


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        pytest.param(_bound("Pod", "nope"), 404, 'pods "nope" not found', id="no such pod"),
        pytest.param(_bound("Secret", "nope"), 404, 'secrets "nope" not found', id="no such secret"),
        pytest.param(
            _bound("Pod", "other"),
            400,
            'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
            id="another's pod",
        ),
        pytest.param(
            _bound("ConfigMap", "x"), 400, "cannot bind token to object of type /v1, Kind=ConfigMap", id="other kind"
        ),
        pytest.param(
            _bound("Pod", "own", uid="zz"),
            409,
            'Operation cannot be fulfilled on Pod "own": the UID in the bound object reference (zz) does not match the '
            "UID in record. The object might have been deleted and then recreated",
            id="other uid",
        ),
    ],
)
def test_a_token_is_bound_only_to_what_is_there(spec: dict[str, Any], code: int, message: str) -> None:
    async def scenario(client: TestClient) -> None:
        await account_token(client, "robot")
        await client.ask("POST", PODS, pod("own", serviceAccountName="robot"))
        await client.ask("POST", PODS, pod("other", serviceAccountName="somebody"))
        refused = await client.ask("POST", f"{ACCOUNTS}/robot/token", {"spec": spec})
        assert (refused.status, refused.message) == (code, message)

    serve(scenario)


def test_a_token_is_good_for_its_audiences_alone() -> None:
    async def scenario(client: TestClient) -> None:
        token = await account_token(client, "robot", {"audiences": ["vault", "other"]})
        assert (await client.ask("GET", "/version", Authorization=f"Bearer {token}")).status == 401
        wrong = f'token audiences ["vault" "other"] is invalid for the target audiences ["{ISSUER}"]'
        assert await _review(client, token) == {"user": {}, "error": f"[invalid bearer token, {wrong}]"}
        assert (await _review(client, token, "x", "vault"))["audiences"] == ["vault"]
        admin = await _review(client, client.server.token, "vault")
        assert admin == {"user": {}, "error": "invalid bearer token"}

    serve(scenario)


def test_a_token_of_another_account_of_the_same_name_is_no_token() -> None:
    async def scenario(client: TestClient) -> None:
        token = await account_token(client, "robot")
        await client.ask("DELETE", f"{ACCOUNTS}/robot")
        assert (await _review(client, token))["error"] == '[invalid bearer token, serviceaccounts "robot" not found]'
        await client.ask("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
        assert "does not match claim" in (await _review(client, token))["error"]
        assert (await client.ask("GET", "/version", Authorization=f"Bearer {token}")).status == 401

    serve(scenario)


def _forgeries(token: str) -> dict[str, str]:
    """What somebody without the key can make of a token."""
    head, claims, signature = token.split(".")
    raw = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
    said = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    admin = _encoded({**said, "sub": "system:serviceaccount:kube-system:admin"})
    none = _encoded({"alg": "none"})
    forged_key = ec.generate_private_key(ec.SECP256R1())
    text = f"{head}.{claims}"
    made = forged_key.sign(text.encode(), ec.ECDSA(hashes.SHA256()))
    negated = _text(raw[:32] + (0).to_bytes(32, "big"))
    return {
        "no signature": f"{head}.{claims}.",
        "algorithm none": f"{none}.{claims}.",
        "algorithm none, old signature": f"{none}.{claims}.{signature}",
        "other subject": f"{head}.{admin}.{signature}",
        "another's key": f"{text}.{_text(made)}",
        "zero signature": f"{text}.{_text(bytes(64))}",
        "half a signature": f"{text}.{negated}",
        "longer signature": f"{text}.{_text(raw + b'x')}",
        "two parts": f"{head}.{claims}",
        "four parts": f"{token}.{signature}",
        "empty parts": "..",
        "no base64": f"{head}.{claims}.%%%",
        "no JSON": f"{head}.{_text(b'{')}.{signature}",
        "a list": f"{head}.{_text(b'[]')}.{signature}",
    }


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _encoded(content: dict[str, Any]) -> str:
    return _text(json.dumps(content).encode())


def test_forged_tokens_are_nobodys() -> None:
    async def scenario(client: TestClient) -> None:
        token = await account_token(client, "robot")
        assert (await client.ask("GET", "/version", Authorization=f"Bearer {token}")).status == 200
        forgeries = _forgeries(token)
        assert len(forgeries) == 14
        for name, forged in forgeries.items():
            refused = await client.ask("GET", "/version", Authorization=f"Bearer {forged}")
            assert (refused.status, refused.body["message"]) == (401, "Unauthorized"), name
            assert (await _review(client, forged)) == {"user": {}, "error": "invalid bearer token"}, name

    serve(scenario)


class _Clock:
    now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


def test_a_token_ends_in_time() -> None:
    api, clock = Api(MemoryStore(), ALL_KINDS), _Clock()
    tokens = ServiceTokens(api, ec.generate_private_key(ec.SECP256R1()), clock)
    account = {"name": "robot", "namespace": "default", "uid": "u"}
    api.store.put("serviceaccounts", ObjectKey("default", "robot"), {"metadata": account}, lambda _: {}, 0)
    token = tokens.issue(account, [ISSUER], 600, {})
    clock.now_s += 655
    assert tokens.identify(token).user.name == "system:serviceaccount:default:robot"
    clock.now_s += 10
    with pytest.raises(InvalidTokenError, match="service account token has expired"):
        tokens.identify(token)
    clock.now_s -= 2000
    with pytest.raises(InvalidTokenError, match="not valid yet"):
        tokens.identify(token)


def test_others_can_check_tokens_by_the_published_keys() -> None:
    async def scenario(client: TestClient) -> None:
        token = await account_token(client, "robot")
        described = await client.ask("GET", "/.well-known/openid-configuration", Host="evil.example")
        assert described.body["issuer"] == ISSUER
        assert described.body["jwks_uri"] == f"{client.server.url}/openid/v1/jwks"
        keys = await client.ask("GET", "/openid/v1/jwks", Authorization=f"Bearer {token}")
        (key,) = keys.body["keys"]
        head, claims, signature = token.split(".")
        assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "ES256", "kid": key["kid"]}
        raw = base64.urlsafe_b64decode(signature + "==")
        x, y = (int.from_bytes(base64.urlsafe_b64decode(key[name] + "="), "big") for name in ("x", "y"))
        public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        made = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        public.verify(made, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
        anonymous = await client.ask("GET", "/openid/v1/jwks", Authorization="")
        assert anonymous.status == 403

    serve(scenario)
