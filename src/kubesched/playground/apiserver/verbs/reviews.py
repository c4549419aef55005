"""Reviews: questions about tokens and permissions. Nothing of it is stored.

Each review is answered with the object that was sent, its status filled in; what is wrong with the question is told in
the real server's words. ``authorization.py`` decides, ``service_tokens.py`` knows tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kubesched.playground.apiserver.errors import StatusError, bad_request
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.metadata import label_requirement_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object
from kubesched.playground.apiserver.verbs.authorization import Action, RbacAuthorizer
from kubesched.playground.apiserver.verbs.request import Api, RequestUser, Target
from kubesched.playground.apiserver.verbs.service_tokens import (
    API_AUDIENCES,
    Identified,
    InvalidTokenError,
    ServiceTokens,
)

_INVALID = "invalid bearer token"
_SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


@dataclass(frozen=True)
class Reviews:
    """Answers reviews for one API."""

    api: Api
    authorizer: RbacAuthorizer
    tokens: ServiceTokens
    identify: Callable[[str, Sequence[str]], Identified]

    def review(self, target: Target, obj: Object, user: RequestUser) -> Object:
        """The answer to a create on one of the review resources."""
        if not target.resource.namespaced:
            obj["metadata"].pop("namespace", None)
        match target.resource.kind:
            case "TokenReview":
                return self._token_review(obj)
            case "SelfSubjectReview":
                return self._who_am_i(user)
            case "SelfSubjectRulesReview":
                return self._rules(obj, user)
            case "SelfSubjectAccessReview":
                _refuse(_spec_errors(obj) + _metadata_errors(obj))
                return self._access(obj, user)
            case "LocalSubjectAccessReview":
                obj["metadata"].setdefault("namespace", target.namespace)
                _refuse(_spec_errors(obj) + _subject_errors(obj) + _local_errors(obj))
                return self._access(obj, _subject(obj))
        _refuse(_spec_errors(obj) + _subject_errors(obj) + _metadata_errors(obj))
        return self._access(obj, _subject(obj))

    def handles(self, kind: str) -> bool:
        return kind.endswith("Review")

    def _token_review(self, obj: Object) -> Object:
        spec = _object(obj, "spec")
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        try:
            found = self.identify(spec["token"], spec.get("audiences") or API_AUDIENCES)
        except InvalidTokenError as error:
            why = f"[{_INVALID}, {error}]" if str(error) else _INVALID
            return _answered(obj, {"user": {}, "error": why})
        user, audiences = found.user.info(), list(found.audiences)
        return _answered(obj, {"authenticated": True, "user": user, "audiences": audiences})

    def _who_am_i(self, user: RequestUser) -> Object:
        return {"metadata": {"creationTimestamp": self.api.now()}, "status": {"userInfo": user.info()}}

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
        status: Object = {
            "resourceRules": [rule for rule in rules if rule.get("resources")],
            "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
            "incomplete": False,
        }
        gaps = self.authorizer.gap_texts(user, namespace)
        if gaps:
            status |= {"incomplete": True, "evaluationError": gaps[0] if len(gaps) == 1 else f"[{', '.join(gaps)}]"}
        return {"metadata": {}, "spec": {}, "status": status}

    def _access(self, obj: Object, user: RequestUser) -> Object:
        verdict = self.authorizer.decide(user, _action(obj))
        status: dict[str, Any] = {"allowed": verdict.allowed}
        if verdict.reason:
            status["reason"] = verdict.reason
        return _answered(obj, status)


def _answered(obj: Object, status: Object) -> Object:
    return {**obj, "status": status}


def _object(obj: Object, name: str) -> dict[str, Any]:
    value = obj.get(name) or {}
    if not isinstance(value, dict):
        raise bad_request(f"{name} must be an object")
    return value


def _subject(obj: Object) -> RequestUser:
    spec = _object(obj, "spec")
    extra = spec.get("extra") or {}
    return RequestUser(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)


def _action(obj: Object) -> Action:
    spec = _object(obj, "spec")
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if other is not None:
        return Action(other.get("verb", ""), path=other.get("path", "") or "/")
    assert resource is not None
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Action(*(str(resource.get(name, "")) for name in names))


def _refuse(found: list[InvalidField]) -> None:
    """Reviews have no name: errors name their group alone."""
    if not found:
        return
    texts = [f"{one.field}: {one.message}" for one in found]
    listed = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    causes = [{"reason": one.reason, "message": one.message, "field": one.field} for one in found]
    details = {"group": "authorization.k8s.io", "causes": causes}
    raise StatusError(422, "Invalid", f'.authorization.k8s.io "" is invalid: {listed}', details)


def _spec_errors(obj: Object) -> list[InvalidField]:
    spec = _object(obj, "spec")
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        why = "cannot be specified in combination with resourceAttributes"
        return [errors.invalid("spec.nonResourceAttributes", _shown(other), why)]
    if resource is None and other is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [errors.invalid("spec.resourceAttributes", None, why)]
    if resource is None:
        return []
    at = "spec.resourceAttributes"
    found = _selector_errors(resource.get("fieldSelector"), f"{at}.fieldSelector")
    return found + _selector_errors(resource.get("labelSelector"), f"{at}.labelSelector")


def _selector_errors(selector: Object | None, path: str) -> list[InvalidField]:
    if selector is None:
        return []
    raw, requirements = selector.get("rawSelector", ""), selector.get("requirements") or []
    found: list[InvalidField] = []
    if raw and requirements:
        why = "may not specified at the same time as requirements"
        found.append(errors.invalid(f"{path}.rawSelector", raw, why))
    if not raw and not requirements:
        why = f"when {path} is specified, requirements or rawSelector is required"
        found.append(errors.required(f"{path}.requirements", why))
    for position, one in enumerate(requirements):
        if one.get("operator") in _SELECTOR_OPERATORS:  # others are left to authorizers that know them
            found += label_requirement_errors(one, errors.index(f"{path}.requirements", position))
    return found


def _subject_errors(obj: Object) -> list[InvalidField]:
    spec = _object(obj, "spec")
    if spec.get("user") or spec.get("groups"):
        return []
    return [errors.invalid("spec.user", "", "at least one of user or group must be specified")]


def _metadata_errors(obj: Object) -> list[InvalidField]:
    metadata = obj["metadata"]
    is_empty = all(not value for name, value in metadata.items() if name != "managedFields")
    return [] if is_empty else [errors.invalid("metadata", metadata, "must be empty")]


def _local_errors(obj: Object) -> list[InvalidField]:
    metadata, spec = obj["metadata"], _object(obj, "spec")
    found: list[InvalidField] = []
    if any(value for name, value in metadata.items() if name not in ("managedFields", "namespace")):
        found.append(errors.invalid("metadata", metadata, "must be empty except for namespace"))
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and resource.get("namespace", "") != metadata.get("namespace", ""):
        asked = resource.get("namespace", "")
        found.append(errors.invalid("spec.resourceAttributes.namespace", asked, "must match metadata.namespace"))
    if other is not None:
        found.append(errors.invalid("spec.nonResourceAttributes", _shown(other), "disallowed on this kind of request"))
    return found


def _shown(attributes: Object) -> Object:
    return {"Path": attributes.get("path", ""), "Verb": attributes.get("verb", "")}
