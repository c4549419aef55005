"""IP addresses and networks: ip(), cidr(), their tests and parts.

What is wrong with an address is said in the words of Go's net/netip. IPv4-mapped IPv6 addresses and zones are refused,
and so are leading zeros in IPv4 addresses.

Next: `urls`.
"""

from __future__ import annotations

import ipaddress
import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import ClassVar

from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.kinds import CelFunction, function, overload
from kubesched.k8s.cel.values import OpaqueValue, quote


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


class IpValue(OpaqueValue):
    __slots__ = ("address",)

    type_name: ClassVar[str] = "net.IP"
    go_name: ClassVar[str] = "cel.IP"

    def __init__(self, address: IPv4Address | IPv6Address) -> None:
        self.address = address

    def same_as(self, other: object) -> bool:
        if type(other) is not IpValue:
            raise no_such_overload()
        return self.address == other.address

    def __len__(self) -> int:
        """Bytes of the address; the cost of comparing goes by it."""
        return self.address.max_prefixlen // 8

    def __str__(self) -> str:
        return str(self.address)


class CidrValue(OpaqueValue):
    """A network as written: the address may have bits beyond the prefix."""

    __slots__ = ("address", "prefix")

    type_name: ClassVar[str] = "net.CIDR"
    go_name: ClassVar[str] = "cel.CIDR"

    def __init__(self, address: IPv4Address | IPv6Address, prefix: int) -> None:
        self.address = address
        self.prefix = prefix

    @property
    def network(self) -> IPv4Network | IPv6Network:
        return ipaddress.ip_network(f"{self.address}/{self.prefix}", strict=False)

    def same_as(self, other: object) -> bool:
        if type(other) is not CidrValue:
            raise no_such_overload()
        return self.address == other.address and self.prefix == other.prefix

    def __len__(self) -> int:
        return -(-self.prefix // 8)

    def __str__(self) -> str:
        return f"{self.address}/{self.prefix}"


def _parse_ip(text: str) -> IPv4Address | IPv6Address:
    try:
        address = parse_address(text)
    except AddressError as error:
        message = f"IP Address {quote(text)} parse error during conversion from string: {error}"
        raise CelEvaluationError(message) from None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise CelEvaluationError(f"IP address {quote(text)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise CelEvaluationError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def ip(text: str) -> IpValue:
    return IpValue(_parse_ip(text))


def is_ip(text: str) -> bool:
    try:
        _parse_ip(text)
    except CelEvaluationError:
        return False
    return True


def is_canonical(text: str) -> bool:
    return str(_parse_ip(text)) == text


def is_global_unicast(value: IpValue) -> bool:
    address = value.address
    is_broadcast = address == IPv4Address("255.255.255.255")
    return not (
        is_broadcast or address.is_unspecified or address.is_loopback or address.is_multicast or _is_link_local(value)
    )


def _is_link_local(value: IpValue) -> bool:
    return value.address.is_link_local


def _is_link_local_multicast(value: IpValue) -> bool:
    if isinstance(value.address, IPv4Address):
        return value.address in IPv4Network("224.0.0.0/24")
    return value.address.packed[0] == 0xFF and value.address.packed[1] & 0x0F == 2


def _parse_cidr(text: str) -> CidrValue:
    prefix_error = "network address parse error during conversion from string: netip.ParsePrefix(" + quote(text) + "): "
    address_text, slash, bits_text = text.rpartition("/")
    if not slash:
        raise AddressError(f"{prefix_error}no '/'")
    try:
        address = parse_address(address_text)
    except AddressError as error:
        raise AddressError(prefix_error + str(error)) from None
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise AddressError(f"{prefix_error}IPv6 zones cannot be present in a prefix")
    if not re.fullmatch(r"0|[1-9][0-9]*", bits_text):
        raise AddressError(f"{prefix_error}bad bits after slash: {quote(bits_text)}")
    if int(bits_text) > address.max_prefixlen:
        raise AddressError(f"{prefix_error}prefix length out of range")
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise AddressError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return CidrValue(address, int(bits_text))


def cidr(text: str) -> CidrValue:
    try:
        return _parse_cidr(text)
    except AddressError as error:
        raise CelEvaluationError(f"network address parse error during conversion from string: {error}") from None


def is_cidr(text: str) -> bool:
    try:
        _parse_cidr(text)
    except AddressError:
        return False
    return True


def contains_ip(network: CidrValue, value: IpValue) -> bool:
    return value.address in network.network


def contains_cidr(outer: CidrValue, inner: CidrValue) -> bool:
    return inner.address.version == outer.address.version and (
        outer.prefix <= inner.prefix and inner.address in outer.network
    )


def masked(network: CidrValue) -> CidrValue:
    return CidrValue(network.network.network_address, network.prefix)


FUNCTIONS: tuple[CelFunction, ...] = (
    function(
        "ip",
        overload("string_to_ip", "(string) -> net.IP", ip),
        overload("cidr_ip", "net.CIDR.() -> net.IP", lambda network: IpValue(network.address)),
    ),
    function("family", overload("ip_family", "net.IP.() -> int", lambda value: value.address.version)),
    function("ip.isCanonical", overload("ip_is_canonical", "(string) -> bool", is_canonical)),
    function(
        "isUnspecified", overload("ip_is_unspecified", "net.IP.() -> bool", lambda value: value.address.is_unspecified)
    ),
    function("isLoopback", overload("ip_is_loopback", "net.IP.() -> bool", lambda value: value.address.is_loopback)),
    function(
        "isLinkLocalMulticast", overload("ip_is_link_local_multicast", "net.IP.() -> bool", _is_link_local_multicast)
    ),
    function("isLinkLocalUnicast", overload("ip_is_link_local_unicast", "net.IP.() -> bool", _is_link_local)),
    function("isGlobalUnicast", overload("ip_is_global_unicast", "net.IP.() -> bool", is_global_unicast)),
    function("isIP", overload("is_ip", "(string) -> bool", is_ip)),
    function("cidr", overload("string_to_cidr", "(string) -> net.CIDR", cidr)),
    function(
        "containsIP",
        overload(
            "cidr_contains_ip_string",
            "net.CIDR.(string) -> bool",
            lambda network, text: contains_ip(network, ip(text)),
        ),
        overload("cidr_contains_ip_ip", "net.CIDR.(net.IP) -> bool", contains_ip),
    ),
    function(
        "containsCIDR",
        overload(
            "cidr_contains_cidr_string",
            "net.CIDR.(string) -> bool",
            lambda network, text: contains_cidr(network, cidr(text)),
        ),
        overload("cidr_contains_cidr", "net.CIDR.(net.CIDR) -> bool", contains_cidr),
    ),
    function("prefixLength", overload("cidr_prefix_length", "net.CIDR.() -> int", lambda network: network.prefix)),
    function("masked", overload("cidr_masked", "net.CIDR.() -> net.CIDR", masked)),
    function("isCIDR", overload("is_cidr", "(string) -> bool", is_cidr)),
    function(
        "string",
        overload("ip_to_string", "(net.IP) -> string", str),
        overload("cidr_to_string", "(net.CIDR) -> string", str),
    ),
)
