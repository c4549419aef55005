"""Kubeconfig files as data: read, checked, and several merged into one as kubectl merges them.

Of several files the first that has an entry of a name wins, whole entry by whole entry; so does the first
`current-context`. Each entry remembers its file, since paths in it are relative to that file's folder, and so that a
message can say where to look. A file that does not exist counts as empty when it is one of a list.

Next: `kubeconfig`, which picks a context and makes a `ServerTarget` of it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import yaml

from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.model.kubernetes_yaml import likely_cause, load_document

T = TypeVar("T")


class ClusterEntry(msgspec.Struct, rename="kebab"):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[dict[str, Any]] = []


class ExecVariable(msgspec.Struct):
    name: str = ""
    value: str = ""


class ExecEntry(msgspec.Struct, rename="camel"):
    command: str = ""
    api_version: str = ""
    args: list[str] = []
    env: list[ExecVariable] = []
    install_hint: str = ""
    interactive_mode: str = ""
    provide_cluster_info: bool = False


class AuthProviderEntry(msgspec.Struct):
    name: str = ""
    config: dict[str, str] = {}


class UserEntry(msgspec.Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    as_user: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}
    auth_provider: AuthProviderEntry | None = None
    exec: ExecEntry | None = None


class ContextEntry(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


@dataclass(frozen=True)
class EntryPlace:
    """Where an entry stands: for messages, and for paths relative to its file."""

    file: Path | None
    kind: str
    name: str

    def error(self, field_name: str, why: str) -> ClientConfigError:
        where = f"{self.file}: " if self.file is not None else ""
        what = f"{field_name}: " if field_name else ""
        return ClientConfigError(f'{where}{self.kind} "{self.name}": {what}{why}')

    def path(self, value: str) -> Path:
        return self.file.parent / value if self.file is not None else Path(value)

    def read(self, field_name: str, value: str) -> bytes:
        """The contents of a file that the entry names."""
        path = self.path(value)
        try:
            return path.read_bytes()
        except OSError as failure:
            raise self.error(field_name, f"cannot read {path}: {failure.strerror}") from None

    def data(self, field_name: str, value: str) -> bytes:
        """The bytes of a field in base64."""
        try:
            return base64.b64decode("".join(value.split()), validate=True)
        except (binascii.Error, ValueError):
            raise self.error(field_name, "is not valid base64") from None


@dataclass(frozen=True)
class Placed(Generic[T]):
    entry: T
    place: EntryPlace


@dataclass
class Kubeconfig:
    """What one or several files say together."""

    files: tuple[Path, ...] = ()
    current_context: str = ""
    clusters: dict[str, Placed[ClusterEntry]] = field(default_factory=dict)
    users: dict[str, Placed[UserEntry]] = field(default_factory=dict)
    contexts: dict[str, Placed[ContextEntry]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.clusters or self.users or self.contexts or self.current_context)


def read_kubeconfigs(paths: Iterable[Path], *, must_exist: bool) -> Kubeconfig:
    """All files merged. With `must_exist`, a missing file is an error."""
    merged = Kubeconfig()
    for path in map(Path.absolute, paths):
        text = _read_text(path, must_exist)
        if text is None:
            continue
        one = _parse(path, text)
        merged.files = (*merged.files, path)
        merged.current_context = merged.current_context or one.current_context
        merged.clusters = one.clusters | merged.clusters
        merged.users = one.users | merged.users
        merged.contexts = one.contexts | merged.contexts
    return merged


def _read_text(path: Path, must_exist: bool) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError as failure:
        if isinstance(failure, FileNotFoundError) and not must_exist:
            return None
        raise ClientConfigError(f"{path}: cannot read the kubeconfig: {failure.strerror}") from None


def _parse(path: Path, text: bytes) -> Kubeconfig:
    document = _load_yaml(path, text)
    for name, expected in (("apiVersion", "v1"), ("kind", "Config")):
        if document.get(name, expected) != expected:
            raise ClientConfigError(f"{path}: {name}: must be {expected!r}; is this a kubeconfig?")
    current = document.get("current-context", "")
    if not isinstance(current, str):
        raise ClientConfigError(f"{path}: current-context: must be text")
    return Kubeconfig(
        files=(path,),
        current_context=current,
        clusters=_entries(path, document, "clusters", "cluster", ClusterEntry),
        users=_entries(path, document, "users", "user", UserEntry),
        contexts=_entries(path, document, "contexts", "context", ContextEntry),
    )


def _load_yaml(path: Path, text: bytes) -> Mapping[str, Any]:
    try:
        document = load_document(text)
    except yaml.MarkedYAMLError as failure:
        line = f"line {failure.problem_mark.line + 1}: " if failure.problem_mark else ""
        cause = f"{failure.problem or 'cannot be parsed'}{likely_cause(failure, text)}"
        raise ClientConfigError(f"{path}: {line}not YAML: {cause}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ClientConfigError(f"{path}: not YAML: it has characters that YAML does not allow") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ClientConfigError(f"{path}: not a kubeconfig: the file does not hold a mapping")
    cleaned: Mapping[str, Any] = _without_nulls(document)
    return cleaned


def _entries(path: Path, document: Mapping[str, Any], plural: str, kind: str, type_: type[T]) -> dict[str, Placed[T]]:
    listed = document.get(plural, [])
    if not isinstance(listed, list):
        raise ClientConfigError(f"{path}: {plural}: must be a list")
    found: dict[str, Placed[T]] = {}
    for index, item in enumerate(listed):
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str):
            raise ClientConfigError(f"{path}: {plural}[{index}]: name: must be text")
        if name in found:
            raise ClientConfigError(f'{path}: {plural}[{index}]: duplicate name "{name}"')
        place = EntryPlace(path, kind, name)
        found[name] = Placed(_convert(item.get(kind, {}), type_, place), place)
    return found


def _convert(item: Any, type_: type[T], place: EntryPlace) -> T:
    try:
        return msgspec.convert(item, type_)
    except msgspec.ValidationError as failure:
        why, _, where = str(failure).partition(" - at `$")
        raise place.error(where.rstrip("`").lstrip("."), why) from None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value
