"""What others are set up by: namespaces, config maps, secrets and leases, and the settings of an API server.

Their defaults, their keys, what "immutable" means, and their tables. A namespace has a label with its own name, the
finalizer it begins with, and a phase.

Admission webhooks, flow control and addresses of services tell an API server how to behave. They are stored and shown
as the real server does, with its defaults; none of them has an effect here.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors, path_segment_errors
from kubesched.playground.apiserver.kinds.serving import AGE, NAME, KindRules, described, dig
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn, WriteContext
from kubesched.playground.apiserver.storage.store import metadata_fields

_NAME_LABEL = "kubernetes.io/metadata.name"


def _set_defaults(namespace: Object) -> None:
    name = namespace["metadata"].get("name")
    if name:
        labels = namespace["metadata"].setdefault("labels", {})
        labels[_NAME_LABEL] = name
    namespace["status"].setdefault("phase", "Active")


def _prepare_create(namespace: Object, _: WriteContext) -> None:
    namespace["status"] = {"phase": "Active"}
    finalizers = namespace["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")
    name = namespace["metadata"].get("name", "")
    namespace["metadata"].setdefault("labels", {})[_NAME_LABEL] = name


def _prepare_update(namespace: Object, old: Object, ctx: WriteContext) -> None:
    if ctx.subresource != "finalize":
        namespace["spec"] = old["spec"]


def _validate_status(namespace: Object, _: Object) -> list[InvalidField]:
    is_going = bool(namespace["metadata"].get("deletionTimestamp"))
    phase, wanted = namespace["status"].get("phase", ""), "Terminating" if is_going else "Active"
    if phase == wanted:
        return []
    why = f"may only be '{wanted}' if `deletionTimestamp` is {'not ' if is_going else ''}empty"
    return [errors.invalid("status.Phase", phase, why)]


def _selectable(namespace: Object) -> dict[str, str]:
    phase = namespace.get("status", {}).get("phase", "")
    return {
        "metadata.name": metadata_fields(namespace)["metadata.name"],
        "status.phase": phase,
        "name": namespace["metadata"]["name"],
    }


NAMESPACE = KindRules(
    set_defaults=_set_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate_through={"status": _validate_status},
    name_rule=dns_label_errors,
    columns=(NAME, TableColumn("Status", dig("status.phase"), description="The status of the namespace"), AGE),
    selectable_fields=_selectable,
)


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


_FLOW = "io.k8s.api.flowcontrol.v1."


def _default(part: Object, name: str, value: Any) -> None:
    if part.get(name) is None:
        part[name] = value


def _set_webhook_defaults(obj: Object) -> None:
    for webhook in obj.get("webhooks") or []:
        _set_match_defaults(webhook)
        _default(webhook, "failurePolicy", "Fail")
        _default(webhook, "timeoutSeconds", 10)
        for rule in webhook.get("rules") or []:
            _default(rule, "scope", "*")
        service = webhook.get("clientConfig", {}).get("service")
        if service is not None:
            _default(service, "port", 443)


def _set_mutating_webhook_defaults(obj: Object) -> None:
    _set_webhook_defaults(obj)
    for webhook in obj.get("webhooks") or []:
        _default(webhook, "reinvocationPolicy", "Never")


def _set_match_defaults(matching: Object) -> None:
    _default(matching, "matchPolicy", "Equivalent")
    _default(matching, "namespaceSelector", {})
    _default(matching, "objectSelector", {})


def _set_flow_schema_defaults(obj: Object) -> None:
    if not obj["spec"].get("matchingPrecedence"):
        obj["spec"]["matchingPrecedence"] = 1000


def _set_priority_level_defaults(obj: Object) -> None:
    for sort, shares in (("exempt", 0), ("limited", 30)):
        part = obj["spec"].get(sort)
        if part is not None:
            _default(part, "nominalConcurrencyShares", shares)
            _default(part, "lendablePercent", 0)
    queuing = dig("spec.limited.limitResponse.queuing", None)(obj)
    for name, value in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
        if queuing is not None and not queuing.get(name):
            queuing[name] = value


def _missing_level(obj: Object) -> str:
    conditions = dig("status.conditions", None)(obj) or []
    return next((one.get("status", "") for one in conditions if one.get("type") == "Dangling"), "?")


def _count_of(path: str) -> Callable[[Object], int]:
    read = dig(path, None)
    return lambda obj: len(read(obj) or [])


def _parent(obj: Object) -> str:
    reference: Any = obj["spec"].get("parentRef")
    if reference is None:
        return "<none>"
    resource = ".".join(filter(None, (reference.get("resource", ""), reference.get("group", "")))).lower()
    return "/".join(filter(None, (resource, reference.get("namespace", ""), reference.get("name", ""))))


_WEBHOOK_COLUMNS = (
    NAME,
    TableColumn(
        "Webhooks",
        _count_of("webhooks"),
        type="integer",
        description="Webhooks indicates the number of webhooks registered in this configuration",
    ),
    AGE,
)
VALIDATING_WEBHOOKS = KindRules(set_defaults=_set_webhook_defaults, columns=_WEBHOOK_COLUMNS)
MUTATING_WEBHOOKS = KindRules(set_defaults=_set_mutating_webhook_defaults, columns=_WEBHOOK_COLUMNS)
FLOW_SCHEMA = KindRules(
    name_rule=path_segment_errors,
    set_defaults=_set_flow_schema_defaults,
    columns=(
        NAME,
        described(
            "PriorityLevel",
            dig("spec.priorityLevelConfiguration.name"),
            _FLOW + "PriorityLevelConfigurationReference",
            "name",
        ),
        described(
            "MatchingPrecedence", dig("spec.matchingPrecedence", 0), _FLOW + "FlowSchemaSpec", "matchingPrecedence"
        ),
        described(
            "DistinguisherMethod",
            dig("spec.distinguisherMethod.type", "<none>"),
            _FLOW + "FlowSchemaSpec",
            "distinguisherMethod",
        ),
        AGE,
        TableColumn(
            "MissingPL", _missing_level, description="references a broken or non-existent PriorityLevelConfiguration"
        ),
    ),
)
PRIORITY_LEVEL = KindRules(
    name_rule=path_segment_errors,
    set_defaults=_set_priority_level_defaults,
    columns=(
        NAME,
        described("Type", dig("spec.type"), _FLOW + "PriorityLevelConfigurationSpec", "type"),
        described(
            "NominalConcurrencyShares",
            dig("spec.limited.nominalConcurrencyShares", "<none>"),
            _FLOW + "LimitedPriorityLevelConfiguration",
            "nominalConcurrencyShares",
        ),
        *(
            described(
                label, dig(f"spec.limited.limitResponse.queuing.{name}", "<none>"), _FLOW + "QueuingConfiguration", name
            )
            for label, name in (
                ("Queues", "queues"),
                ("HandSize", "handSize"),
                ("QueueLengthLimit", "queueLengthLimit"),
            )
        ),
        AGE,
    ),
)
ADDRESS = KindRules(
    columns=(
        NAME,
        described("ParentRef", _parent, "io.k8s.api.networking.v1.IPAddressSpec", "parentRef"),
        TableColumn("", AGE.value),
    ),
)
ADDRESS_RANGE = KindRules(
    columns=(
        NAME,
        described(
            "CIDRs",
            lambda obj: ",".join(obj["spec"].get("cidrs") or []),
            "io.k8s.api.networking.v1.ServiceCIDRSpec",
            "cidrs",
        ),
        AGE,
    ),
)
