"""What the kinds for devices consist of: names, bounded lists, selectors, configuration, taints and tolerations.

Lists, sets and maps that hold more than they may are not looked into. Selectors are CEL expressions. The rules that put
taints on devices from outside (DeviceTaintRule) are here, too.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubesched.k8s import cel
from kubesched.k8s.model.selectors import label_key_errors
from kubesched.k8s.model.selectors import label_value_errors as value_form_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors, dns_subdomain_errors, driver_name_errors
from kubesched.playground.apiserver.kinds.metadata import condition_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object, WriteContext

ItemRule = Callable[[Any, str], list[InvalidField]]
_SHORTEST_CUT = 16


def list_errors(items: Sequence[Any], most: int, rule: ItemRule, path: str) -> list[InvalidField]:
    """``most`` below zero: as many as you like."""
    if 0 <= most < len(items):
        return [errors.too_many(path, len(items), most)]
    return [error for position, item in enumerate(items) for error in rule(item, errors.index(path, position))]


def set_errors(
    items: Sequence[Any], most: int, rule: ItemRule, path: str, key: Callable[[Any], Any] = lambda item: item
) -> list[InvalidField]:
    """A list in which no two items have the same key."""
    if 0 <= most < len(items):
        return [errors.too_many(path, len(items), most)]
    found = list_errors(items, -1, rule, path)
    seen: list[Any] = []
    for position, item in enumerate(items):
        if key(item) in seen:
            found.append(errors.duplicate(errors.index(path, position), key(item)))
        seen.append(key(item))
    return found


def map_errors(
    entries: Mapping[str, Any], most: int, longest_shown: int, key_rule: ItemRule, rule: ItemRule, path: str
) -> list[InvalidField]:
    if 0 <= most < len(entries):
        return [errors.too_many(path, len(entries), most)]
    found: list[InvalidField] = []
    for name, value in sorted(entries.items()):
        found += key_rule(name, path) + rule(value, errors.key(path, _cut(name, longest_shown)))
    return found


def _cut(text: str, longest: int) -> str:
    """Long keys are shown without their middle."""
    longest = max(longest, _SHORTEST_CUT)
    if len(text) <= longest:
        return text
    kept = longest - len("...")
    return text[: (kept + 1) // 2] + "..." + text[len(text) - kept // 2 :]


_LONGEST_POOL, _LONGEST_IDENTIFIER = 253, 32
LONGEST_QUALIFIED = 63 + 1 + _LONGEST_IDENTIFIER
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_IDENTIFIER_TEXT = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    f"or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '{_IDENTIFIER}')"
)
_HEX = "[0-9A-Fa-f]"
_UUID = rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_UUID_NORMAL = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` "
    "with lowercase hexadecimal characters"
)


def label_name_errors(name: str, path: str) -> list[InvalidField]:
    """As a key of a label, and of much else."""
    return errors.all_invalid(path, name, label_key_errors(name))


def label_value_errors(value: str, path: str) -> list[InvalidField]:
    return errors.all_invalid(path, value, value_form_errors(value))


def short_name_errors(name: str, path: str) -> list[InvalidField]:
    """Of a device, a request, a counter."""
    return errors.all_invalid(path, name, dns_label_errors(name))


def pool_name_errors(name: str, path: str) -> list[InvalidField]:
    if not name:
        return [errors.required(path)]
    found = [errors.too_long(path, _LONGEST_POOL)] if len(name.encode()) > _LONGEST_POOL else []
    for part in name.split("/"):
        found += errors.all_invalid(path, part, dns_subdomain_errors(part))
    return found


def qualified_name_errors(name: str, path: str) -> list[InvalidField]:
    """Of an attribute or a capacity: an identifier, or a domain and one."""
    parts = name.split("/")
    if len(parts) == 1:
        return _identifier_errors(name, path)
    if len(parts) > 2:
        return []  # the real server lets these pass
    domain, identifier = parts
    found = driver_name_errors(domain, path) if domain else [errors.invalid(path, "", "the domain must not be empty")]
    if identifier:
        return found + _identifier_errors(identifier, path)
    return [*found, errors.invalid(path, "", "the name must not be empty")]


def fully_qualified_name_errors(name: str, path: str) -> list[InvalidField]:
    found = qualified_name_errors(name, path)
    if "/" not in name:
        why = "a fully qualified name must be a domain and a name separated by a slash"
        found.append(errors.invalid(path, name, why))
    return found


def _identifier_errors(name: str, path: str) -> list[InvalidField]:
    found = [errors.too_long(path, _LONGEST_IDENTIFIER)] if len(name.encode()) > _LONGEST_IDENTIFIER else []
    return found if re.fullmatch(_IDENTIFIER, name) else [*found, errors.invalid(path, name, _IDENTIFIER_TEXT)]


def uuid_errors(text: str, path: str) -> list[InvalidField]:
    why = _uuid_problem(text)
    if why:
        return [errors.invalid(path, text, f"error validating uid: {why}")]
    if len(text) != 36 or text != text.lower():
        return [errors.invalid(path, text, _UUID_NORMAL)]
    return []


def _uuid_problem(text: str) -> str:
    n_bytes = len(text.encode())
    if n_bytes == 32:
        return "" if re.fullmatch(f"{_HEX}{{32}}", text) else "invalid UUID format"
    if n_bytes == 45:
        if text[:9].lower() != "urn:uuid:":
            return f'invalid urn prefix: "{text[:9]}"'
        text = text[9:]
    elif n_bytes == 38:
        if text[0] != "{" or text[-1] != "}":
            return "invalid bracketed UUID format"
        text = text[1:-1]
    elif n_bytes != 36:
        return f"invalid UUID length: {n_bytes}"
    return "" if re.fullmatch(_UUID, text) else "invalid UUID format"


def interface_address_errors(text: str, path: str) -> list[InvalidField]:
    """An address of a network interface with the length of its network's prefix."""
    address, slash, length = text.partition("/")
    why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
    octets = address.split(".")
    if len(octets) == 4 and all(re.fullmatch("[0-9]{1,3}", one) for one in octets):
        address = ".".join(str(int(one)) for one in octets)  # zeros in front are read, though not canonical
    try:
        parsed = ipaddress.ip_address(address)
        if not slash or not re.fullmatch("[0-9]{1,3}", length) or int(length) > parsed.max_prefixlen or "%" in address:
            raise ValueError
    except ValueError:
        return [errors.invalid(path, text, why)]
    n_bits, shown = int(length), str(parsed)
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        shown, n_bits = str(parsed.ipv4_mapped), n_bits - 96 if n_bits > 32 else n_bits
    canonical = f"{shown}/{n_bits}"
    return [] if text == canonical else [errors.invalid(path, text, f'must be in canonical form ("{canonical}")')]


_MOST_SELECTORS = 32
MOST_CONFIGS = 32
_LONGEST_EXPRESSION = 10 * 1024
_MOST_PARAMETER_BYTES = 10 * 1024


def selector_errors(selectors: Sequence[Object], path: str) -> list[InvalidField]:
    return list_errors(selectors, _MOST_SELECTORS, _one_selector_errors, path)


def _one_selector_errors(selector: Object, path: str) -> list[InvalidField]:
    if "cel" not in selector:
        return [errors.required(f"{path}.cel")]
    expression, at = selector["cel"].get("expression", ""), f"{path}.cel.expression"
    if len(expression.encode()) > _LONGEST_EXPRESSION:
        return [errors.too_long(at, _LONGEST_EXPRESSION)]
    try:
        cel.compile(expression)
    except cel.CelCompileError as error:
        return [errors.invalid(at, expression, str(error))]
    return []


def configuration_errors(config: Object, path: str, is_stored: bool = False) -> list[InvalidField]:
    """``is_stored``: it was accepted before there was a limit."""
    opaque = config.get("opaque")
    if opaque is None:
        return [errors.required(f"{path}.opaque")]
    found = driver_name_errors(opaque.get("driver", ""), f"{path}.opaque.driver")
    most = -1 if is_stored else _MOST_PARAMETER_BYTES
    return found + raw_object_errors(opaque.get("parameters"), f"{path}.opaque.parameters", most)


def raw_object_errors(value: Any, path: str, most_bytes: int) -> list[InvalidField]:
    """JSON of somebody else's: any object."""
    if value is None:
        return [errors.required(path)]
    if 0 <= most_bytes < len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()):
        return [errors.too_long(path, most_bytes)]
    if not isinstance(value, dict):
        return [errors.invalid(path, "<value omitted>", "must be a valid JSON object")]
    return []


_EFFECTS = ("NoExecute", "NoSchedule", "None")
_OPERATORS = ("Equal", "Exists")
_MOST_CONDITIONS = 8


def taint_errors(taint: Object, path: str, old: Object | None = None) -> list[InvalidField]:
    """An effect that was accepted before is not looked at again."""
    effect = taint.get("effect", "")
    found = label_name_errors(taint.get("key", ""), f"{path}.key")
    if taint.get("value"):
        found += label_value_errors(taint["value"], f"{path}.value")
    if old is not None and old.get("effect", "") == effect:
        return found
    if not effect:
        found.append(errors.required(f"{path}.effect"))
    elif effect not in _EFFECTS:
        found.append(errors.unsupported(f"{path}.effect", effect, _EFFECTS))
    return found


def set_toleration_defaults(tolerations: Sequence[Object]) -> None:
    for toleration in tolerations:
        toleration["operator"] = toleration.get("operator") or "Equal"


def toleration_errors(tolerations: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, toleration in enumerate(tolerations):
        found += _one_toleration_errors(toleration, errors.index(path, position))
    return found


def _one_toleration_errors(toleration: Object, path: str) -> list[InvalidField]:
    operator, value, effect = (toleration.get(name, "") for name in ("operator", "value", "effect"))
    found = label_name_errors(toleration["key"], f"{path}.key") if toleration.get("key") else []
    if operator == "Exists":
        if value:
            found.append(errors.invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        found += label_value_errors(value, f"{path}.value")
    elif not operator:
        found.append(errors.required(f"{path}.operator"))
    else:
        found.append(errors.unsupported(f"{path}.operator", operator, _OPERATORS))
    if effect and effect not in _EFFECTS:
        found.append(errors.unsupported(f"{path}.effect", effect, _EFFECTS))
    return found


def rule_errors(rule: Object, old: Object | None) -> list[InvalidField]:
    """A DeviceTaintRule."""
    spec, at = rule["spec"], "spec.deviceSelector"
    selector = spec.get("deviceSelector", {})
    found: list[InvalidField] = []
    for name, check in (("driver", driver_name_errors), ("pool", pool_name_errors), ("device", short_name_errors)):
        if name in selector:
            found += check(selector[name], f"{at}.{name}")
    return found + taint_errors(spec.get("taint", {}), "spec.taint", old["spec"].get("taint", {}) if old else None)


def rule_status_errors(rule: Object, _: Object) -> list[InvalidField]:
    conditions = rule.get("status", {}).get("conditions") or []
    found = condition_errors(conditions, "status.conditions")
    if len(conditions) > _MOST_CONDITIONS:
        found.append(errors.too_many("status.conditions", len(conditions), _MOST_CONDITIONS))
    return found


def set_rule_times(rule: Object, now: str) -> None:
    rule["spec"].setdefault("taint", {}).setdefault("timeAdded", now)


def update_rule(rule: Object, old: Object, ctx: WriteContext) -> None:
    """The time says since when the taint has its effect: another one begins now, unless the client says otherwise."""
    if ctx.subresource:
        return
    taint, before = rule["spec"].get("taint", {}), old["spec"].get("taint", {})
    if taint.get("effect") != before.get("effect") and taint.get("timeAdded") == before.get("timeAdded"):
        taint["timeAdded"] = ctx.now
