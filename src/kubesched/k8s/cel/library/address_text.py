"""Reads IP addresses, and says what is wrong with them in the words of Go's net/netip.

Next: `addresses` uses it.
"""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv6Address

from kubesched.k8s.cel.values.go_text import quote


class AddressError(ValueError):
    """A text is not an address or network."""


def parse_address(text: str) -> IPv4Address | IPv6Address:
    """The address that a text stands for; a zone is kept."""
    for char in text:
        if char == ".":
            return _parse_v4(text)
        if char == ":":
            return _parse_v6(text)
        if char == "%":
            raise _failure(text, "missing IPv6 address")
    raise _failure(text, "unable to parse IP")


def _failure(text: str, reason: str, at: str = "") -> AddressError:
    place = f" (at {quote(at)})" if at else ""
    return AddressError(f"ParseAddr({quote(text)}): {reason}{place}")


def _parse_v4(text: str) -> IPv4Address:
    fields = text.split(".")
    octets: list[int] = []
    position = 0
    for field in fields:
        for index, char in enumerate(field):
            if not ("0" <= char <= "9"):
                raise _failure(text, "unexpected character", text[position + index :])
            if index == 1 and field[0] == "0":
                raise _failure(text, "IPv4 field has octet with leading zero")
            if int(field[: index + 1]) > 255:
                raise _failure(text, "IPv4 field has value >255")
        if not field:
            raise _failure(text, "IPv4 field must have at least one digit", text[position:])
        if len(octets) == 4:
            raise _failure(text, "IPv4 address too long")
        octets.append(int(field))
        position += len(field) + 1
    if len(octets) < 4:
        raise _failure(text, "IPv4 address too short")
    return IPv4Address(bytes(octets))


def _parse_v6(text: str) -> IPv6Address:
    bare, percent, zone = text.partition("%")
    if percent and not zone:
        raise _failure(text, "zone must be a non-empty string")
    try:
        return IPv6Address(text)
    except ipaddress.AddressValueError:
        raise _failure(text, _v6_reason(bare)) from None


def _v6_reason(text: str) -> str:
    """The likeliest of netip's complaints."""
    fields = text.split(":")
    if text.count("::") > 1 or ":::" in text:
        return (
            "multiple :: in address" if ":::" not in text else "each colon-separated field must have at least one digit"
        )
    if any(len(field) > 4 and "." not in field for field in fields):
        return "each group must have 4 or fewer digits"
    if len(fields) > 8:
        return "trailing garbage after address"
    if "::" not in text and len(fields) < 8:
        return "address string too short"
    return "each colon-separated field must have at least one digit"
