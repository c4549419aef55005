"""What all verbs share: the store, the kinds served, the clock and the source of identities.

Guarantees that a name is served by at most one resource and that kinds from CustomResourceDefinitions appear as soon as
those are written. Read ``create.py`` next.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from kubesched.playground.apiserver.kinds.registry import TODAY
from kubesched.playground.apiserver.served_resource import Object, ServedResource
from kubesched.playground.apiserver.storage.store import ObjectKey, Store, Stored

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
