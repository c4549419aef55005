"""Requests for certificates: who asks is what the server says, a request never changes, approval and signature come
through subresources of their own.

Nothing here signs: that is a signer's work. ``verbs/escalation.py`` checks who may approve and sign.
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
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors, dns_subdomain_errors
from kubesched.playground.apiserver.kinds.serving import AGE, NAME, KindRules, field_text, human
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn, WriteContext
from kubesched.playground.apiserver.storage.store import metadata_fields

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
