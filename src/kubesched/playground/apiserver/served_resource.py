"""What the server knows of one resource it serves: names, rules on writing, columns of its table.

A ServedResource guarantees: after ``prepare_create`` or ``prepare_update`` the object has every default of its kind,
and ``validate`` then returns everything that is wrong with it, in the order of the real server. The verbs do what is
the same for all kinds (names, uid, versions, generation, managed fields, timestamps). Read ``kinds/registry.py`` for
the kinds served, ``verbs/`` for who calls this.

How the verbs call it, for a create: ``decode`` → metadata → ``prepare_create`` → ``validate(new, None)``; for an
update: ``decode`` → metadata taken over from ``old`` → ``prepare_update(new, old, ctx)`` → ``validate(new, old)``.
``ctx.subresource`` is "" for the object itself. For "status" the verbs have already put back everything but ``status``
and ``metadata``; for "" on a kind with a status subresource they have already put back ``status``.

Objects come without ``kind`` and ``apiVersion`` (they are stored so; answers get them back). ``validate`` covers
``metadata`` too: name rules, labels, annotations, finalizers, owners, and what may not change. Admission refusals
(priority, runtime class, …) are raised from ``prepare_*`` as ``errors.forbidden`` and the like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kubesched.playground.apiserver.storage.store import metadata_fields

Object = dict[str, Any]
"""A Kubernetes object as decoded JSON, while it is being changed."""


@dataclass(frozen=True, slots=True)
class InvalidField:
    """One thing wrong with one field: ``message`` is complete ("Invalid value: 3: must be …"), ``reason`` is
    FieldValueInvalid, …
    """

    reason: str
    field: str
    message: str


class DecodeError(ValueError):
    """The JSON cannot be read as this kind (a wrong type); the message is that of Go's decoder, without prefix."""


class ObjectLookup(Protocol):
    """Reads other objects as they are now; ``resource`` is written "pods" or "priorityclasses.scheduling.k8s.io"."""

    def get(self, resource: str, namespace: str, name: str) -> Object | None: ...

    def list(self, resource: str, namespace: str = "") -> Iterable[Object]: ...


@dataclass(slots=True)
class WriteContext:
    """What a kind's rules may know of the request; ``warnings`` collects texts for Warning headers, ``user`` is who
    asks, with the names of Kubernetes' UserInfo (username, uid, groups, extra).
    """

    lookup: ObjectLookup
    now: str
    user: Mapping[str, Any] = field(default_factory=dict)
    subresource: str = ""
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    mounts_tokens: bool = False  # new pods get a service account and its token
    new_suffix: Callable[[], str] = str


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of the kind's table; ``value`` takes the object and gives a JSON value. Priority 0 is shown by
    default, 1 with -o wide. One without a name has cells, but is not announced.
    """

    name: str
    value: Callable[[Object], Any]
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


def _nothing(*_: Any) -> None:
    return None


def _no_errors(*_: Any) -> list[InvalidField]:
    return []


def _no_unknown_fields(_: Object) -> list[str]:
    return []


@dataclass(frozen=True, eq=False)
class ServedResource:
    """One resource as served; the callables are the kind's rules, the flags its strategy in the real server."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    # decode: drops unknown fields in place and returns their paths ("spec.foo"); raises DecodeError on a wrong type
    decode: Callable[[Object], list[str]] = _no_unknown_fields
    # defaults that are the time of the request; a manager owns them as if it had sent them
    set_times: Callable[[Object, str], None] = _nothing
    prepare_create: Callable[[Object, WriteContext], None] = _nothing
    prepare_update: Callable[[Object, Object, WriteContext], None] = _nothing
    validate: Callable[[Object, Object | None], list[InvalidField]] = _no_errors
    # rules of a write through one of these subresources, where they are not those of the whole object
    validate_through: Mapping[str, Callable[[Object, Object | None], list[InvalidField]]] = field(default_factory=dict)
    # what is wrong in view of other objects; told before all else
    validate_in_context: Callable[[Object, Object | None, WriteContext], list[InvalidField]] = _no_errors
    # after validation: refuses what admission has the last word on, and warns of what is accepted
    validate_admission: Callable[[Object, Object | None, WriteContext], None] = _nothing
    columns: tuple[TableColumn, ...] = ()
    selectable_fields: Callable[[Object], Mapping[str, str]] = metadata_fields
    tracks_generation: bool = (
        False  # metadata.generation is 1 at create and rises when anything but metadata and status changes
    )
    counted_metadata: tuple[str, ...] = ()  # fields of the metadata whose change raises the generation too
    unconditional_update: bool = True  # PUT without resourceVersion is allowed
    status_keeps: tuple[str, ...] = ()  # fields of the metadata that writes of its status do not change
    create_on_update: bool = False  # PUT on a name that does not exist creates it
    # other kinds that show the same stored objects (events.k8s.io/v1 Event is v1 Event): group/plural of the storage
    stored_as: str = ""
    to_stored: Callable[[Object], Object] | None = (
        None  # this version's object -> the stored form (both without kind and apiVersion)
    )
    from_stored: Callable[[Object], Object] | None = None
    # of a custom resource: where its scale lies (replicas wanted, replicas seen, selector), and its type for apply
    scale_paths: tuple[str, str, str] = ("", "", "")
    custom_type: Any = None
    deprecation: str = ""  # what every request for it is warned of
    custom_schema: Object = field(default_factory=dict)
    selectable_paths: tuple[str, ...] = ()  # of a custom resource: where the fields are that selectors may name
    is_custom: bool = False  # from a CustomResourceDefinition: list items carry kind and apiVersion

    @property
    def group_resource(self) -> str:
        """As Kubernetes writes it: "pods", "deployments.apps"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        return self.kind + "List"

    @property
    def storage_key(self) -> str:
        """The table of the store where the objects lie."""
        return self.stored_as or self.group_resource
