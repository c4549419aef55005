"""Names of devices, pools, requests, attributes and users of claims: what is wrong with them."""

from __future__ import annotations

import ipaddress
import re

from kubesched.k8s.model import label_syntax
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.name_syntax import (
    dns_label_errors,
    dns_subdomain_errors,
    driver_name_errors,
)
from kubesched.playground.apiserver.served_resource import InvalidField

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
    return errors.all_invalid(path, name, label_syntax.label_key_errors(name))


def label_value_errors(value: str, path: str) -> list[InvalidField]:
    return errors.all_invalid(path, value, label_syntax.label_value_errors(value))


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
