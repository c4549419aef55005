"""How others learn to check tokens of service accounts: the issuer and its keys, as OpenID Connect describes them."""

from __future__ import annotations

import msgspec
from aiohttp import web

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.verbs.service_tokens import ISSUER, ServiceTokens

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
_KEYS_TYPE = "application/jwk-set+json"
_CACHED = "public, max-age=3600"


def answer(request: web.BaseRequest, tokens: ServiceTokens, server_url: str) -> web.Response | None:
    """The answer to one of the issuer's paths, None for any other."""
    path = request.path.rstrip("/")
    if path not in (CONFIGURATION, KEYS) or request.method not in ("GET", "HEAD"):
        return None
    media_type = "application/json" if path == CONFIGURATION else _KEYS_TYPE
    _check_accept(request.headers.get("Accept", "*/*"), media_type)
    content = _configuration(server_url) if path == CONFIGURATION else tokens.public_keys()
    headers = {"Cache-Control": _CACHED}
    return web.Response(body=msgspec.json.encode(content), content_type=media_type, headers=headers)


def _configuration(server_url: str) -> dict[str, object]:
    """The address is the server's own, never the request's: others may keep this answer."""
    return {
        "issuer": ISSUER,
        "jwks_uri": server_url + KEYS,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }


def _check_accept(accept: str, media_type: str) -> None:
    wanted = [one.partition(";")[0].strip() for one in accept.split(",")]
    if not any(one in ("", "*/*", "application/*", media_type) for one in wanted):
        why = f"406: Not Acceptable\n\nAvailable representations: {media_type}"
        raise StatusError(406, "NotAcceptable", why, {})
