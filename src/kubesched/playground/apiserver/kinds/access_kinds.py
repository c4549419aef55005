"""Who may do what: service accounts, roles and bindings, and requests for certificates.

Of a request for a certificate, who asks is what the server says; it never changes, and approval and signature come
through subresources of their own. Nothing here signs: that is a signer's work. ``verbs/escalation.py`` checks who may
approve and sign.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import NameOID

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import (
    dns_label_errors,
    dns_subdomain_errors,
    path_segment_errors,
)
from kubesched.playground.apiserver.kinds.metadata import label_selector_errors
from kubesched.playground.apiserver.kinds.serving import AGE, DEFAULT_COLUMNS, NAME, PLAIN, KindRules, field_text, human
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn, WriteContext
from kubesched.playground.apiserver.storage.store import metadata_fields

_RBAC = "rbac.authorization.k8s.io"
_SCHEMA = "io.k8s.api.rbac.v1."


def _set_binding_defaults(binding: Object) -> None:
    if not binding["roleRef"].get("apiGroup"):
        binding["roleRef"]["apiGroup"] = _RBAC
    for subject in binding.get("subjects", []):
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", _RBAC)


def _rule_validator(namespaced: bool) -> Callable[[Object, Object | None], list[InvalidField]]:
    def validate(role: Object, _: Object | None) -> list[InvalidField]:
        found: list[InvalidField] = []
        for position, rule in enumerate(role.get("rules") or []):
            found += _rule_errors(rule, errors.index("rules", position), namespaced)
        return found + _aggregation_errors(role.get("aggregationRule"))

    return validate


def _aggregation_errors(aggregation: Object | None) -> list[InvalidField]:
    if aggregation is None:
        return []
    at, selectors = "aggregationRule.clusterRoleSelectors", aggregation.get("clusterRoleSelectors") or []
    if not selectors:
        return [errors.required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil")]
    found: list[InvalidField] = []
    for position, selector in enumerate(selectors):
        wrong = label_selector_errors(selector, errors.index(at, position))
        if wrong:
            wrong.append(errors.invalid(errors.index(at, position), None, "invalid label selector."))
        found += wrong
    return found


def _rule_errors(rule: Object, path: str, namespaced: bool) -> list[InvalidField]:
    found: list[InvalidField] = []
    if not rule.get("verbs"):
        found.append(errors.required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs", [])
    if urls:
        at = f"{path}.nonResourceURLs"
        if namespaced:
            found.append(errors.invalid(at, urls, "namespaced rules cannot apply to non-resource URLs"))
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            found.append(errors.invalid(at, urls, "rules cannot apply to both regular resources and non-resource URLs"))
        return found
    if not rule.get("apiGroups"):
        found.append(errors.required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        found.append(errors.required(f"{path}.resources", "resource rules must supply at least one resource"))
    return found


def _binding_validator(namespaced: bool) -> Callable[[Object, Object | None], list[InvalidField]]:
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)

    def validate(binding: Object, old: Object | None) -> list[InvalidField]:
        role = binding["roleRef"]
        found: list[InvalidField] = []
        if role["apiGroup"] != _RBAC:
            found.append(errors.unsupported("roleRef.apiGroup", role["apiGroup"], (_RBAC,)))
        if role.get("kind") not in kinds:
            found.append(errors.unsupported("roleRef.kind", role.get("kind", ""), kinds))
        if not role.get("name"):
            found.append(errors.required("roleRef.name"))
        else:
            found += errors.all_invalid("roleRef.name", role["name"], path_segment_errors(role["name"]))
        for position, subject in enumerate(binding.get("subjects", [])):
            found += _subject_errors(subject, errors.index("subjects", position), namespaced)
        if old is not None and role != old["roleRef"]:
            shown = {"APIGroup": role["apiGroup"], "Kind": role.get("kind", ""), "Name": role.get("name", "")}
            found.append(errors.invalid("roleRef", shown, "cannot change roleRef"))
        return found

    return validate


def _subject_errors(subject: Object, path: str, namespaced: bool) -> list[InvalidField]:
    found: list[InvalidField] = []
    if not subject.get("name"):
        found.append(errors.required(f"{path}.name"))
    kind = subject.get("kind", "")
    if kind not in ("ServiceAccount", "User", "Group"):
        found.append(errors.unsupported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    elif kind == "ServiceAccount":
        name, group = subject.get("name", ""), subject.get("apiGroup", "")
        found += errors.all_invalid(f"{path}.name", name, dns_subdomain_errors(name) if name else ())
        if group:
            found.append(errors.unsupported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            found.append(errors.required(f"{path}.namespace"))
    elif subject.get("apiGroup") != _RBAC:
        found.append(errors.unsupported(f"{path}.apiGroup", subject.get("apiGroup", ""), (_RBAC,)))
    return found


def _subjects(kind: str) -> Callable[[Object], str]:
    def show(binding: Object) -> str:
        chosen = [one for one in binding.get("subjects", []) if one.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{one.get('namespace', '')}/{one.get('name', '')}" for one in chosen)
        return ", ".join(one.get("name", "") for one in chosen)

    return show


def _binding_columns(kind: str, word: str) -> tuple[TableColumn, ...]:
    return (
        NAME,
        TableColumn(
            "Role",
            lambda b: f"{b['roleRef'].get('kind', '')}/{b['roleRef'].get('name', '')}",
            description=field_text(_SCHEMA + kind, "roleRef").removesuffix(" This field is immutable."),
        ),
        AGE,
        TableColumn("Users", _subjects("User"), description=f"Users in the {word}", priority=1),
        TableColumn("Groups", _subjects("Group"), description=f"Groups in the {word}", priority=1),
        TableColumn(
            "ServiceAccounts", _subjects("ServiceAccount"), description=f"ServiceAccounts in the {word}", priority=1
        ),
    )


SERVICE_ACCOUNT = KindRules(columns=PLAIN)
ROLE = KindRules(validate=_rule_validator(namespaced=True), name_rule=path_segment_errors, columns=DEFAULT_COLUMNS)
CLUSTER_ROLE = KindRules(
    validate=_rule_validator(namespaced=False), name_rule=path_segment_errors, columns=DEFAULT_COLUMNS
)
ROLE_BINDING = KindRules(
    set_defaults=_set_binding_defaults,
    validate=_binding_validator(namespaced=True),
    name_rule=path_segment_errors,
    columns=_binding_columns("RoleBinding", "roleBinding"),
)
CLUSTER_ROLE_BINDING = KindRules(
    set_defaults=_set_binding_defaults,
    validate=_binding_validator(namespaced=False),
    name_rule=path_segment_errors,
    columns=_binding_columns("ClusterRoleBinding", "clusterRoleBinding"),
)


RESOURCE = "certificatesigningrequests.certificates.k8s.io"
_SPEC_SCHEMA = "io.k8s.api.certificates.v1.CertificateSigningRequestSpec"
_STATUS_SCHEMA = "io.k8s.api.certificates.v1.CertificateSigningRequestStatus"
_ABOUT_USER = ("username", "uid", "groups", "extra")
_DECISIONS = ("Approved", "Denied")
_LASTING = (*_DECISIONS, "Failed")
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
_OLD_SIGNER = "kubernetes.io/legacy-unknown"
_LONGEST_PATH = 253 + 63 + 1
_USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_PEM = re.compile(rb"-----BEGIN ([^-\n]+)-----\n(.*?)-----END \1-----", re.DOTALL)


def _prepare_new(request: Object, ctx: WriteContext) -> None:
    """Nobody says who they are, and nobody brings their own approval."""
    spec = request["spec"]
    for name in _ABOUT_USER:
        spec.pop(name, None)
    spec.update({name: ctx.user[name] for name in _ABOUT_USER if ctx.user.get(name)})
    request["status"] = {}


def _prepare_changed(new: Object, old: Object, ctx: WriteContext) -> None:
    if ctx.subresource != "status":
        new["spec"] = old["spec"]
    if not ctx.subresource:
        return
    conditions = (new.get("status") or {}).get("conditions") or []
    if ctx.subresource == "approval":
        new["status"] = {**(old.get("status") or {}), "conditions": conditions}
    else:
        for kind in _DECISIONS:
            _keep_conditions(conditions, _conditions(old), kind)
    _set_times(conditions, _conditions(old), ctx.now)
    if not conditions:
        new["status"].pop("conditions", None)


def _conditions(request: Object) -> list[Object]:
    found: list[Object] = (request.get("status") or {}).get("conditions") or []
    return found


def _of_type(conditions: list[Object], kind: str) -> list[Object]:
    return [one for one in conditions if one.get("type") == kind]


def _keep_conditions(new: list[Object], old: list[Object], kind: str) -> None:
    kept = iter(_of_type(old, kind))
    if len(_of_type(new, kind)) == len(_of_type(old, kind)):
        new[:] = [next(kept) if one.get("type") == kind else one for one in new]


def _set_times(new: list[Object], old: list[Object], now: str) -> None:
    for one in new:
        if not one.get("lastUpdateTime"):
            one["lastUpdateTime"] = now
        if not one.get("lastTransitionTime"):
            same = (was for was in old if (was.get("type"), was.get("status")) == (one.get("type"), one.get("status")))
            one["lastTransitionTime"] = next((was["lastTransitionTime"] for was in same), now)


def _validate_admission(new: Object, _: Object | None, ctx: WriteContext) -> None:
    """Nobody gets a client certificate of the group that may do everything."""
    if ctx.subresource or new["spec"].get("signerName") != _CLIENT_SIGNER:
        return
    subject = x509.load_pem_x509_csr(base64.b64decode(new["spec"]["request"])).subject
    if any(one.value == "system:masters" for one in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)):
        name = new["metadata"].get("name", "")
        why = f"use of {_CLIENT_SIGNER} signer with system:masters group is not allowed"
        details = {"name": name, "group": "certificates.k8s.io", "kind": "certificatesigningrequests"}
        raise StatusError(403, "Forbidden", f'{RESOURCE} "{name}" is forbidden: {why}', details)


def _request_error(spec: Object) -> str:
    """What is wrong with the PEM of the request, or ""."""
    try:
        pem = base64.b64decode(spec.get("request") or "")
    except binascii.Error:
        pem = b""
    found = _PEM.search(pem)
    if found is None or found[1] != b"CERTIFICATE REQUEST":
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        request = x509.load_pem_x509_csr(found[0] + b"\n")
        return "" if request.is_signature_valid else "x509: ECDSA verification failure"
    except (ValueError, UnsupportedAlgorithm) as error:
        return f"x509: {error}"


def _certificate_error(status: Object) -> str:
    """What is wrong with the PEM of the certificate, or ""."""
    if not status.get("certificate"):
        return ""
    try:
        blocks = _PEM.findall(base64.b64decode(status["certificate"]))
    except binascii.Error:
        blocks = []
    for kind, content in blocks:
        if kind != b"CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{kind.decode(errors="replace")}"'
        if b":" in content:
            return "no PEM block headers are permitted"
        try:
            x509.load_der_x509_certificate(base64.b64decode(content))
        except (ValueError, binascii.Error):
            return "x509: malformed certificate"
    return "" if blocks else "must contain at least one CERTIFICATE PEM block"


def _spec_errors(spec: Object, old: Object | None) -> list[InvalidField]:
    found: list[InvalidField] = []
    problem = _request_error(spec)
    if problem:
        found.append(errors.invalid("spec.request", spec.get("request", ""), problem))
    usages = spec.get("usages") or []
    if not usages:
        found.append(errors.required("spec.usages"))
    if old is None:
        for position, usage in enumerate(usages):
            at = errors.index("spec.usages", position)
            if usage not in _USAGES:
                found.append(errors.unsupported(at, usage, _USAGES))
        for position, usage in enumerate(usages):
            if usage in usages[:position]:
                found.append(errors.duplicate(errors.index("spec.usages", position), usage))
    found += _signer_errors(spec.get("signerName") or "", "spec.signerName")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        found.append(errors.invalid("spec.expirationSeconds", seconds, why))
    return found


def _signer_errors(name: str, path: str) -> list[InvalidField]:
    if not name:
        return [errors.required(path)]
    if name == _OLD_SIGNER:
        return [errors.invalid(path, name, "the legacy signerName is not allowed via this API version")]
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [errors.invalid(path, name, why)]
    found = [errors.too_long(path, 253)] if len(domain) > 253 else []
    found += _first_label_errors(path, domain, dns_label_errors)
    if "." not in domain:
        found.append(errors.invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    found += _first_label_errors(path, rest, dns_subdomain_errors)
    if len(rest) > _LONGEST_PATH:
        found.append(errors.too_long(path, _LONGEST_PATH))
    return found


def _first_label_errors(path: str, text: str, rule: Callable[[str], tuple[str, ...]]) -> list[InvalidField]:
    for label in text.split("."):
        problems = rule(label)
        if problems:
            return [errors.invalid(path, text, f'validating label "{label}": {problem}') for problem in problems]
    return []


def _condition_errors(conditions: list[Object], old: list[Object]) -> list[InvalidField]:
    found: list[InvalidField] = []
    had_both = all(_of_type(old, kind) for kind in _DECISIONS)
    seen: set[str] = set()
    for position, one in enumerate(conditions):
        at, kind, status = errors.index("status.conditions", position), one.get("type", ""), one.get("status", "")
        if not kind:
            found.append(errors.required(f"{at}.type"))
        allowed = ("True",) if kind in _LASTING else ("False", "True", "Unknown")
        if not status:
            found.append(errors.required(f"{at}.status"))
        elif status not in allowed:
            found.append(errors.unsupported(f"{at}.status", status, allowed))
        other = {"Approved": "Denied", "Denied": "Approved"}.get(kind)
        if other in seen and not had_both:
            why = "Approved and Denied conditions are mutually exclusive"
            found.append(errors.invalid("status.conditions", kind, why))
        if kind in seen:
            found.append(errors.duplicate(f"{at}.type", kind))
        seen.add(kind)
    return found


def _change_errors(new: Object, old: Object, subresource: str) -> list[InvalidField]:
    """A decision stays; only the way it is meant to be made makes it."""
    at = "status.conditions"
    n_new, n_old = ({kind: len(_of_type(_conditions(one), kind)) for kind in _LASTING} for one in (new, old))
    removed = [kind for kind in _LASTING if n_new[kind] < n_old[kind]]
    added = [kind for kind in _DECISIONS if n_new[kind] > n_old[kind] and subresource != "approval"]
    found = [errors.forbidden(at, f'updates may not remove a condition of type "{kind}"') for kind in removed]
    found += [errors.forbidden(at, f'updates may not add a condition of type "{kind}"') for kind in added]
    issued, before = ((one.get("status") or {}).get("certificate", "") for one in (new, old))
    if issued != before and subresource != "status":
        found.append(errors.forbidden("status.certificate", "updates may not set certificate content"))
    elif issued != before and before:
        found.append(errors.forbidden("status.certificate", "updates may not modify existing certificate content"))
    return found


def _validator(subresource: str) -> Callable[[Object, Object | None], list[InvalidField]]:
    def validate(new: Object, old: Object | None) -> list[InvalidField]:
        status, old_status = new.get("status") or {}, (old or {}).get("status") or {}
        found = _spec_errors(new["spec"], old)
        found += _condition_errors(_conditions(new), old_status.get("conditions") or [])
        if status.get("certificate") != old_status.get("certificate"):
            problem = _certificate_error(status)
            if problem:
                found.append(errors.invalid("status.certificate", "<certificate data>", problem))
        return found + (_change_errors(new, old, subresource) if old is not None else [])

    return validate


def _state(request: Object) -> str:
    kinds = {one.get("type") for one in _conditions(request)}
    state = "Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"
    state += ",Failed" if "Failed" in kinds else ""
    return state + (",Issued" if (request.get("status") or {}).get("certificate") else "")


def _duration(request: Object) -> str:
    seconds = request["spec"].get("expirationSeconds")
    return "<none>" if seconds is None else human(seconds)


def _any_name(_: str) -> tuple[str, ...]:
    return ()


def _selectable(request: Object) -> dict[str, Any]:
    return {**metadata_fields(request), "spec.signerName": request["spec"].get("signerName", "")}


REQUEST = KindRules(
    prepare_create=_prepare_new,
    prepare_update=_prepare_changed,
    validate=_validator(""),
    validate_through={"status": _validator("status"), "approval": _validator("approval")},
    validate_admission=_validate_admission,
    name_rule=_any_name,
    columns=(
        NAME,
        AGE,
        TableColumn(
            "SignerName",
            lambda request: request["spec"].get("signerName") or "<none>",
            description=field_text(_SPEC_SCHEMA, "signerName"),
        ),
        TableColumn(
            "Requestor",
            lambda request: request["spec"].get("username", ""),
            description=field_text(_SPEC_SCHEMA, "request"),
        ),
        TableColumn("RequestedDuration", _duration, description=field_text(_SPEC_SCHEMA, "expirationSeconds")),
        TableColumn("Condition", _state, description=field_text(_STATUS_SCHEMA, "conditions")),
    ),
    selectable_fields=_selectable,
)
