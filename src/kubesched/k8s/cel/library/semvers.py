"""Semantic versions: semver(), isSemver(), comparisons and parts.

Order is that of the specification: a pre-release comes before its release, build metadata counts for nothing. With
normalisation, a leading v, missing parts and leading zeros are forgiven.

Next: `strings`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from kubesched.k8s.cel.checking.declarations import CelFunction, function, overload
from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.values.go_text import quote
from kubesched.k8s.cel.values.scalars import MAX_INT, MAX_UINT, OpaqueValue

_DIGITS = re.compile(r"[0-9]*")
_ALPHANUMERIC = re.compile(r"[0-9A-Za-z-]*")


class SemverError(ValueError):
    """A text is not a semantic version."""


@dataclass(frozen=True, slots=True, eq=False)
class Semver(OpaqueValue):
    """A semantic version. `prerelease` has its parts as they compare: numbers before texts."""

    type_name: ClassVar[str] = "kubernetes.Semver"
    go_name: ClassVar[str] = "cel.Semver"
    is_hashable: ClassVar[bool] = False

    text: str
    numbers: tuple[int, int, int]
    prerelease: tuple[tuple[int, int, str], ...]

    @property
    def rank(self) -> tuple[object, ...]:
        """What versions with the same numbers are ordered by."""
        return (not self.prerelease, self.prerelease)

    def same_as(self, other: object) -> bool:
        if type(other) is not Semver:
            raise no_such_overload()
        return self.numbers == other.numbers and self.prerelease == other.prerelease

    def __str__(self) -> str:
        return self.text


def parse(text: str) -> Semver:
    """The version that a text stands for; raises SemverError."""
    if not text:
        raise SemverError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise SemverError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major"), _number(parts[1], "minor")
    rest, has_build, build = parts[2].partition("+")
    patch, has_prerelease, prerelease = rest.partition("-")
    numbers = (major, minor, _number(patch, "patch"))
    ranks = tuple(map(_prerelease_part, prerelease.split("."))) if has_prerelease else ()
    for part in build.split(".") if has_build else ():
        _check_build(part)
    return Semver(text, numbers, ranks)


def normalize(text: str) -> str:
    """The text without what a strict parser refuses but people write."""
    parts = [_without_leading_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise SemverError("short version cannot contain PreRelease/Build meta data")
    return ".".join(parts + ["0"] * (3 - len(parts)))


def _without_leading_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in tuple("0123456789") else "0" + stripped


def _number(text: str, name: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in {name} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise SemverError(f"{name.capitalize()} number must not contain leading zeroes {quote(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if not text:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    if int(text) > MAX_UINT:
        raise SemverError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _prerelease_part(text: str) -> tuple[int, int, str]:
    if not text:
        raise SemverError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise SemverError(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
        return (0, _unsigned(text), "")
    if not _ALPHANUMERIC.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in prerelease {quote(text)}")
    return (1, 0, text)


def _check_build(text: str) -> None:
    if not text:
        raise SemverError("Build meta data is empty")
    if not _ALPHANUMERIC.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in build meta data {quote(text)}")


def from_text(text: str, is_normalized: bool = False) -> Semver:
    """semver(text) and semver(text, true)."""
    try:
        return parse(normalize(text) if is_normalized else text)
    except SemverError as error:
        raise CelEvaluationError(str(error)) from None


def is_semver(text: str, is_normalized: bool = False) -> bool:
    try:
        parse(normalize(text) if is_normalized else text)
    except SemverError:
        return False
    return True


def compare_to(left: Semver, right: Semver) -> int:
    if left.numbers != right.numbers:
        return 1 if left.numbers > right.numbers else -1
    if left.prerelease == right.prerelease:
        return 0
    return 1 if left.rank > right.rank else -1


def _part(index: int, version: Semver) -> int:
    number = version.numbers[index]
    return number if number <= MAX_INT else number - 2**64


_S = "kubernetes.Semver"

FUNCTIONS: tuple[CelFunction, ...] = (
    function(
        "semver",
        overload("string_to_semver", f"(string) -> {_S}", from_text),
        overload("string_bool_to_semver", f"(string, bool) -> {_S}", from_text),
    ),
    function(
        "isSemver",
        overload("is_semver_string", "(string) -> bool", is_semver),
        overload("is_semver_string_bool", "(string, bool) -> bool", is_semver),
    ),
    function(
        "isGreaterThan",
        overload("semver_is_greater_than", f"{_S}.({_S}) -> bool", lambda left, right: compare_to(left, right) > 0),
    ),
    function(
        "isLessThan",
        overload("semver_is_less_than", f"{_S}.({_S}) -> bool", lambda left, right: compare_to(left, right) < 0),
    ),
    function("compareTo", overload("semver_compare_to", f"{_S}.({_S}) -> int", compare_to)),
    function("major", overload("semver_major", f"{_S}.() -> int", lambda version: _part(0, version))),
    function("minor", overload("semver_minor", f"{_S}.() -> int", lambda version: _part(1, version))),
    function("patch", overload("semver_patch", f"{_S}.() -> int", lambda version: _part(2, version))),
)
