"""Config maps, secrets and leases: their keys, what "immutable" means, and their tables."""

from __future__ import annotations

import base64
import re

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.serving import KindRules
from kubesched.playground.apiserver.kinds.table_columns import AGE, NAME, described, dig
from kubesched.playground.apiserver.served_resource import InvalidField, Object, WriteContext, metadata_fields

_KEY = r"[-._a-zA-Z0-9]+"
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    f"(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY}')"
)
_FIXED = "field is immutable when `immutable` is set"
_CONFIG_MAP = "io.k8s.api.core.v1.ConfigMap"
_SECRET = "io.k8s.api.core.v1.Secret"
_NEEDED_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def _warn_of_certificate(secret: Object, _: Object | None, ctx: WriteContext) -> None:
    """A pair of certificate and key that no server could load is kept, with a warning."""
    if secret.get("type") != "kubernetes.io/tls":
        return
    for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
        text = base64.b64decode((secret.get("data") or {}).get(key) or "")
        if b"-----BEGIN " not in text:
            ctx.warnings.append(f"tls: failed to find any PEM data in {what} input")
            return


def _key_errors(keys: list[str], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for key in sorted(keys):
        at = errors.key(path, key)
        if len(key) > 253:
            found.append(errors.invalid(at, key, "must be no more than 253 characters"))
        if not re.fullmatch(_KEY, key):
            found.append(errors.invalid(at, key, _KEY_RULE))
        if key in (".", "..") or key.startswith("..."):
            found.append(errors.invalid(at, key, f"must not be '{key}'"))
    return found


def _fixed_errors(new: Object, old: Object | None, names: tuple[str, ...]) -> list[InvalidField]:
    if old is None or not old.get("immutable"):
        return []
    found = [] if new.get("immutable") else [errors.forbidden("immutable", _FIXED)]
    return found + [errors.forbidden(name, _FIXED) for name in names if new.get(name, {}) != old.get(name, {})]


def _validate_config_map(new: Object, old: Object | None) -> list[InvalidField]:
    data, binary = new.get("data", {}), new.get("binaryData", {})
    found = _key_errors(list(data), "data")
    repeated = "duplicate of key present in binaryData"
    found += [errors.invalid(errors.key("data", key), key, repeated) for key in sorted(data) if key in binary]
    found += _key_errors(list(binary), "binaryData")
    return _fixed_errors(new, old, ("data", "binaryData")) + found


def _set_secret_defaults(secret: Object) -> None:
    secret.setdefault("type", "Opaque")
    plain = secret.pop("stringData", {})
    if plain:
        data = secret.setdefault("data", {})
        data |= {name: base64.b64encode(text.encode()).decode() for name, text in plain.items()}


def _validate_secret(new: Object, old: Object | None) -> list[InvalidField]:
    found: list[InvalidField] = []
    if old is not None and new.get("type") != old.get("type"):
        found.append(errors.immutable("type", new.get("type", "")))
    found += _fixed_errors(new, old, ("data",))
    found += _key_errors(list(new.get("data", {})), "data")
    needed = _NEEDED_KEYS.get(new.get("type", ""), ())
    return found + [errors.required(errors.key("data", key)) for key in needed if key not in new.get("data", {})]


def _selectable_secret(secret: Object) -> dict[str, str]:
    return {**metadata_fields(secret), "type": secret.get("type", "")}


def _validate_lease(new: Object, _: Object | None) -> list[InvalidField]:
    spec = new.get("spec", {})
    found: list[InvalidField] = []
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        found.append(errors.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        found.append(errors.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    return found


def _n_keys(obj: Object) -> int:
    return len(obj.get("data", {})) + len(obj.get("binaryData", {}))


CONFIG_MAP = KindRules(
    metadata_again="both",
    validate=_validate_config_map,
    columns=(NAME, described("Data", _n_keys, _CONFIG_MAP, "data"), AGE),
)
SECRET = KindRules(
    validate_admission=_warn_of_certificate,
    metadata_again="both",
    set_defaults=_set_secret_defaults,
    validate=_validate_secret,
    columns=(NAME, described("Type", dig("type"), _SECRET, "type"), described("Data", _n_keys, _SECRET, "data"), AGE),
    selectable_fields=_selectable_secret,
)
LEASE = KindRules(
    validate=_validate_lease,
    columns=(
        NAME,
        described("Holder", dig("spec.holderIdentity"), "io.k8s.api.coordination.v1.LeaseSpec", "holderIdentity"),
        AGE,
    ),
)
