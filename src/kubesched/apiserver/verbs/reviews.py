"""Reviews: questions about tokens and permissions, and new tokens for service accounts. Nothing of it is stored.

Each review is answered with the object that was sent, its status filled in. ``authorization.py`` decides,
``service_tokens.py`` signs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kubesched.apiserver.api import Api
from kubesched.apiserver.errors import StatusError, bad_request, not_found
from kubesched.apiserver.kinds.kind import Object, ServedResource
from kubesched.apiserver.patching.apply import record
from kubesched.apiserver.verbs import writing
from kubesched.apiserver.verbs.authorization import Action, RbacAuthorizer
from kubesched.apiserver.verbs.request import RequestUser, Target, WriteOptions
from kubesched.apiserver.verbs.service_tokens import ISSUER, ServiceTokens

_TOKEN_REQUEST = ServedResource("authentication.k8s.io", "v1", "TokenRequest", "tokenrequests", "tokenrequest", True)
_SHORTEST_TOKEN_S, _LONGEST_TOKEN_S = 600, 1 << 32


@dataclass(frozen=True)
class Reviews:
    """Answers reviews for one API."""

    api: Api
    authorizer: RbacAuthorizer
    tokens: ServiceTokens
    user_of_token: Callable[[str], RequestUser | None]

    def review(self, target: Target, obj: Object, user: RequestUser) -> Object:
        """The answer to a create on one of the review resources."""
        match target.resource.kind:
            case "TokenReview":
                return self._token_review(obj)
            case "SelfSubjectReview":
                return self._who_am_i(user)
            case "SelfSubjectRulesReview":
                return self._rules(obj, user)
            case "SelfSubjectAccessReview":
                return self._access(obj, user)
            case "LocalSubjectAccessReview":
                return self._local_access(target, obj)
        return self._access(obj, _subject(obj))

    def handles(self, kind: str) -> bool:
        return kind.endswith("Review")

    def token_request(self, target: Target, obj: Object, options: WriteOptions) -> Object:
        """A new token for the service account that ``target`` names."""
        stored = self.api.store.get("serviceaccounts", writing.key_of(target))
        if stored is None:
            raise not_found(target.resource, target.name)
        account = writing.load(target.resource, stored)["metadata"]
        spec = _object(obj, "spec")
        asked = spec.get("expirationSeconds")
        for_s = 3600 if asked is None else asked
        if not isinstance(for_s, int) or for_s < _SHORTEST_TOKEN_S or for_s > _LONGEST_TOKEN_S:
            raise _bad_duration(for_s)
        audiences = spec.get("audiences") or [ISSUER]
        sent: Object = {"metadata": {}, "spec": {**spec, "expirationSeconds": for_s}}
        record(sent, None, _TOKEN_REQUEST, options.manager, "token", self.api.now())
        token = self.tokens.issue(target.namespace, target.name, account["uid"], audiences, for_s)
        until = (self.api.clock() + timedelta(seconds=for_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
        shown = {name: account[name] for name in ("name", "namespace", "uid") if name in account}
        return {
            "metadata": {**shown, "creationTimestamp": self.api.now(), **sent["metadata"]},
            "spec": {"audiences": audiences, "expirationSeconds": for_s, "boundObjectRef": spec.get("boundObjectRef")},
            "status": {"token": token, "expirationTimestamp": until},
        }

    def _token_review(self, obj: Object) -> Object:
        token = _object(obj, "spec").get("token", "")
        if not token or not isinstance(token, str):
            raise bad_request("token is required for TokenReview in authentication")
        user = self.user_of_token(token)
        if user is None:
            return _answered(obj, {"user": {}, "error": "invalid bearer token"})
        return _answered(obj, {"authenticated": True, "user": _user_json(user), "audiences": [ISSUER]})

    def _who_am_i(self, user: RequestUser) -> Object:
        return {"metadata": {"creationTimestamp": self.api.now()}, "status": {"userInfo": _user_json(user)}}

    def _rules(self, obj: Object, user: RequestUser) -> Object:
        namespace = _object(obj, "spec").get("namespace", "")
        if not namespace:
            raise bad_request("no namespace on request")
        rules = self.authorizer.rules_for(user, namespace)
        if "system:masters" in user.groups:
            rules = [
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
                {"verbs": ["*"], "nonResourceURLs": ["*"]},
                *rules,
            ]
        status = {
            "resourceRules": [rule for rule in rules if rule.get("resources")],
            "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
            "incomplete": False,
        }
        return {"metadata": {}, "spec": {}, "status": status}

    def _access(self, obj: Object, user: RequestUser) -> Object:
        verdict = self.authorizer.decide(user, _action(obj))
        status: dict[str, Any] = {"allowed": verdict.allowed}
        if verdict.reason:
            status["reason"] = verdict.reason
        return _answered(obj, status)

    def _local_access(self, target: Target, obj: Object) -> Object:
        attributes = _object(obj, "spec").get("resourceAttributes") or {}
        if attributes.get("namespace", "") != target.namespace:
            raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {target.namespace}")
        return self._access(obj, _subject(obj))


def _answered(obj: Object, status: Object) -> Object:
    return {**obj, "status": status}


def _object(obj: Object, name: str) -> dict[str, Any]:
    value = obj.get(name) or {}
    if not isinstance(value, dict):
        raise bad_request(f"{name} must be an object")
    return value


def _user_json(user: RequestUser) -> Object:
    shown: dict[str, Any] = {"username": user.name}
    if user.uid:
        shown["uid"] = user.uid
    if user.groups:
        shown["groups"] = list(user.groups)
    if user.extra:
        shown["extra"] = dict(user.extra)
    return shown


def _subject(obj: Object) -> RequestUser:
    spec = _object(obj, "spec")
    _action(obj)
    if not spec.get("user") and not spec.get("groups"):
        raise _bad_review("spec.user", 'Invalid value: "": at least one of user or group must be specified')
    return RequestUser(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))


def _action(obj: Object) -> Action:
    spec = _object(obj, "spec")
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        shown = json.dumps({"Path": other.get("path", ""), "Verb": other.get("verb", "")}, separators=(",", ":"))
        message = f"Invalid value: {shown}: cannot be specified in combination with resourceAttributes"
        raise _bad_review("spec.nonResourceAttributes", message)
    if resource is None and other is None:
        message = "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _bad_review("spec.resourceAttributes", message)
    if other is not None:
        return Action(other.get("verb", ""), path=other.get("path", "") or "/")
    assert resource is not None
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Action(*(str(resource.get(name, "")) for name in names))


def _bad_review(path: str, message: str) -> StatusError:
    cause = {"reason": "FieldValueInvalid", "message": message, "field": path}
    details = {"group": "authorization.k8s.io", "causes": [cause]}
    return StatusError(422, "Invalid", f'.authorization.k8s.io "" is invalid: {path}: {message}', details)


def _bad_duration(for_s: object) -> StatusError:
    why = (
        "may not specify a duration less than 10 minutes"
        if isinstance(for_s, int) and for_s < _SHORTEST_TOKEN_S
        else ("may not specify a duration larger than 2^32 seconds")
    )
    message = f"Invalid value: {json.dumps(for_s)}: {why}"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": "spec.expirationSeconds"}
    details = {"group": "authentication.k8s.io", "kind": "TokenRequest", "causes": [cause]}
    text = f'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: {message}'
    return StatusError(422, "Invalid", text, details)
