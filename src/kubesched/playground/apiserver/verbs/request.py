"""What every verb is given: the request, free of HTTP (who, on what, with which options), and what all verbs share.

Options are checked here with the real server's messages. Every verb takes a Target; writing verbs take WriteOptions
too.

`Api` has the store, the kinds served, the clock and the source of identities. It guarantees that a name is served by at
most one resource and that kinds from CustomResourceDefinitions appear as soon as those are written. Read ``create.py``
next.
"""

from __future__ import annotations

import re
import secrets
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from kubesched.playground.apiserver.errors import StatusError, bad_request
from kubesched.playground.apiserver.go_text import quoted
from kubesched.playground.apiserver.kinds.metadata import manager_errors
from kubesched.playground.apiserver.kinds.registry import TODAY
from kubesched.playground.apiserver.served_resource import Object, ServedResource, WriteContext
from kubesched.playground.apiserver.storage.store import ObjectKey, Store, Stored

_LONGEST_INT64 = 20
_MOST_UINT64 = 2**64 - 1
Query = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class RequestUser:
    """Who asks, after login and impersonation."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, list[str]] = field(default_factory=dict)

    def info(self) -> Object:
        """As Kubernetes' UserInfo."""
        shown: Object = {"username": self.name, "uid": self.uid, "groups": list(self.groups), "extra": dict(self.extra)}
        return {name: value for name, value in shown.items() if value or name == "username"}


class Target(msgspec.Struct, frozen=True, gc=False):
    """What is asked for; ``name`` is "" for a collection."""

    resource: ServedResource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


GrantCheck = Callable[[RequestUser, Target, Object, Object | None], None]
"""Refuses a write by which the user would give more rights than it has; takes the new state as sent, and the old."""


def _grants_nothing(*_: object) -> None:
    """For writes that the server makes on its own."""


@dataclass(slots=True)
class WriteOptions:
    """Options of a writing request; ``warnings`` grows while the request is worked on."""

    user: RequestUser
    dry_run: bool = False
    manager: str = "unknown"
    field_validation: str = "Warn"
    force: bool = False
    has_manager: bool = False
    is_apply: bool = False  # managedFields are already set by the apply itself
    warnings: list[str] = field(default_factory=list)
    grant_check: GrantCheck = _grants_nothing

    def check_grants(self, target: Target, new: Object, old: Object | None) -> None:
        """Raises StatusError where the write would give away rights that the writer does not have."""
        self.grant_check(self.user, target, new, old)

    def context(self, api: Api, subresource: str = "") -> WriteContext:
        return WriteContext(
            *(api, api.now(), self.user.info(), subresource, self.dry_run, self.warnings),
            mounts_tokens=api.mounts_tokens,
            new_suffix=api.new_suffix,
        )


def single(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


def truth(query: Query, name: str) -> bool | None:
    """Any value but "false" and "0" is true; absent is None."""
    values = query.get(name)
    if not values:
        return None
    return values[0].lower() not in ("false", "0")


def integer(query: Query, name: str) -> int | None:
    """A number from the query; wrong text is refused with the words of Go's parser."""
    values = query.get(name)
    if not values:
        return None
    if not re.fullmatch(r"[+-]?[0-9]+", values[0]):
        raise bad_request(f'strconv.ParseInt: parsing "{values[0]}": invalid syntax')
    if len(values[0]) > _LONGEST_INT64 or not -(2**63) <= int(values[0]) < 2**63:
        raise bad_request(f'strconv.ParseInt: parsing "{values[0]}": value out of range')
    return int(values[0])


def version_error(text: str) -> str:
    """What Go's parser says about a resourceVersion that is no number; "" if it is one, or empty."""
    is_number = text.isascii() and text.isdigit()
    digits = text.lstrip("0")
    if text == "" or (is_number and len(digits) <= _LONGEST_INT64 and int(digits or "0") <= _MOST_UINT64):
        return ""
    why = "value out of range" if is_number else "invalid syntax"
    return f"strconv.ParseUint: parsing {quoted(text)}: {why}"


def options_error(kind: str, causes: list[tuple[str, str, str]]) -> StatusError:
    """Options are wrong; each cause is (reason, field, message)."""
    texts = [f"{name}: {message}" for _, name, message in causes]
    listed = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details = {
        "group": "meta.k8s.io",
        "kind": kind,
        "causes": [{"reason": reason, "message": message, "field": name} for reason, name, message in causes],
    }
    return StatusError(422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {listed}', details)


def write_options(query: Query, user: RequestUser, user_agent: str, options_kind: str) -> WriteOptions:
    """Reads dryRun, fieldManager, fieldValidation and force."""
    causes: list[tuple[str, str, str]] = []
    dry_run = query.get("dryRun", [])
    if any(value != "All" for value in dry_run):
        listed = "[" + ",".join(f'"{value}"' for value in dry_run) + "]"
        causes.append(("FieldValueNotSupported", "dryRun", f'Unsupported value: {listed}: supported values: "All"'))
    if options_kind == "DeleteOptions":
        query = {name: values for name, values in query.items() if name not in ("fieldManager", "fieldValidation")}
    manager = single(query, "fieldManager")
    causes += [(reason, "fieldManager", message) for reason, message in manager_errors(manager)]
    validation = single(query, "fieldValidation")
    if validation not in ("", "Ignore", "Strict", "Warn"):
        message = f'Unsupported value: {quoted(validation)}: supported values: "", "Ignore", "Strict", "Warn"'
        causes.append(("FieldValueNotSupported", "fieldValidation", message))
    if causes:
        raise options_error(options_kind, causes)
    default_manager = user_agent.partition("/")[0][:128] or "unknown"
    return WriteOptions(
        user,
        bool(dry_run),
        manager or default_manager,
        validation or "Warn",
        bool(truth(query, "force")),
        bool(manager),
    )


_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def decode_stored(stored: Stored) -> Object:
    """A fresh object, free to be changed."""
    obj: dict[str, Any] = msgspec.json.decode(stored.raw)
    return obj


def utc_now() -> datetime:
    return datetime.now(UTC)


def _random_uid() -> str:
    return str(uuid.uuid4())


def random_suffix() -> str:
    """Five letters as generateName appends them."""
    return "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))


class Admission(Protocol):
    """Who has a say in every write beyond the kinds' own rules; ``target`` and ``options`` are those of the verbs."""

    def mutate(self, target: Any, operation: str, new: Object, old: Object | None, options: Any) -> Object:
        """The object as it shall be written."""

    def validate(self, target: Any, operation: str, new: Object | None, old: Object | None, options: Any) -> None:
        """Raises StatusError to refuse the write."""


class AdmitsAll:
    """Admission of an API that has no policies."""

    def mutate(self, target: Any, operation: str, new: Object, old: Object | None, options: Any) -> Object:
        return new

    def validate(self, target: Any, operation: str, new: Object | None, old: Object | None, options: Any) -> None:
        return None


@dataclass
class Api:
    """The API as one process serves it."""

    store: Store
    kinds: tuple[ServedResource, ...]
    clock: Callable[[], datetime] = utc_now
    new_uid: Callable[[], str] = _random_uid
    new_suffix: Callable[[], str] = random_suffix
    admission: Admission = field(default_factory=AdmitsAll)
    custom_kinds: tuple[ServedResource, ...] = ()
    mounts_tokens: bool = False
    version: str = TODAY
    """Of Kubernetes; as it is told to those who ask."""
    _by_path: dict[tuple[str, str, str], ServedResource] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.serve_custom(())

    def serve_custom(self, custom: Iterable[ServedResource]) -> None:
        """Replaces the kinds that come from CustomResourceDefinitions."""
        self.custom_kinds = tuple(custom)
        self._by_path = {(kind.group, kind.version, kind.plural): kind for kind in self.all_kinds()}

    def all_kinds(self) -> tuple[ServedResource, ...]:
        return self.kinds + self.custom_kinds

    def resource(self, group: str, version: str, plural: str) -> ServedResource | None:
        return self._by_path.get((group, version, plural))

    def resource_of(self, group_resource: str) -> ServedResource | None:
        """By "deployments.apps"; the first version served."""
        return next((kind for kind in self.all_kinds() if kind.group_resource == group_resource), None)

    def now(self) -> str:
        """The time as objects carry it, in whole seconds."""
        return self.clock().isoformat(timespec="seconds")[:19] + "Z"

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """Implements ObjectLookup for the kinds' rules."""
        stored = self.store.get(resource, ObjectKey(namespace, name))
        return decode_stored(stored) if stored else None

    def list(self, resource: str, namespace: str = "") -> Iterable[Object]:
        return [decode_stored(stored) for stored in self.store.list(resource, namespace)]
