"""A cluster in any form: files, directories, YAML text, dictionaries, or all of them together.

`LoadedCluster` keeps what was read, so that it is read once and asked about often; `replace` and `without` make
another one, with something changed. The library's functions take one, or whatever one can be made of.

Files are dumps, YAML and JSON, and directories of them. What cannot be read is an `InputError` of one line that names
the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any

import msgspec
import yaml

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.kubernetes_yaml import load_documents
from kubesched.k8s.model.manifests import Kinds, ManifestError, Manifests
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.spelling import did_you_mean

_NAMES_SHOWN = 3


class NoSuchObjectError(KubeschedError, LookupError):
    """The cluster has no object of this kind and name."""


class LoadedCluster:
    """The objects of a cluster, as `kubesched.load` reads them. It does not change: `replace` and `without` give
    another one. Iterating gives manifests as dictionaries, with the fields that decisions look at."""

    def __init__(self, found: Manifests) -> None:
        self.found = found

    @property
    def kinds(self) -> dict[str, int]:
        """How many objects there are of each kind."""
        return dict(Counter(type(item).__name__ for item in self.found.objects))

    @property
    def ignored(self) -> dict[str, int]:
        """How many objects of other kinds were passed over: scheduling does not look at them."""
        return dict(self.found.ignored)

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes."""
        return [item.name for item in self.found.objects if isinstance(item, Node)]

    @property
    def pods(self) -> list[str]:
        """The pods, as `namespace/name`."""
        return [item.key for item in self.found.objects if isinstance(item, Pod)]

    @property
    def pending(self) -> list[str]:
        """The pods that have no node yet, as `namespace/name`."""
        pods = {item.key: item for item in self.found.objects if isinstance(item, Pod)}
        return [key for key, pod in pods.items() if not pod.spec.node_name and not pod.is_terminal]

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """The manifest of an object, to look at or to change and give to `replace`: `get("pod", "shop/web-1")`,
        `get("node", "a")`. Without a namespace, `default` is meant. It has the fields that decisions look at."""
        return _manifest(self._find(kind, name), self.found.kinds)

    def replace(self, *sources: LoadedCluster | str | PathLike[str] | Mapping[str, Any]) -> LoadedCluster:
        """This cluster with these objects in it: in place of those of the same kind and name, or beside them."""
        given = read_objects(sources, self.found.kinds)
        changed = {(type(item), item.key): item for item in given.objects}
        present = {(type(item), item.key): item for item in self.found.objects}
        kept = [changed.pop(place, item) for place, item in present.items()]
        read_from = {**self.found.sources, **given.sources}
        return LoadedCluster(replace(self.found, objects=[*kept, *changed.values()], sources=read_from))

    def beside(self, given: Manifests) -> LoadedCluster:
        """This cluster with more objects. One of the same kind and name as an earlier one is a change of that."""
        whole = replace(self.found, objects=list(self.found.objects), sources={**self.found.sources})
        whole.ignored = dict(self.found.ignored)
        _take(whole, given)
        return LoadedCluster(whole)

    def without(self, kind: str, name: str) -> LoadedCluster:
        """This cluster without that object."""
        gone = self._find(kind, name)
        place = (type(gone), gone.key)
        kept = [item for item in self.found.objects if (type(item), item.key) != place]
        return LoadedCluster(replace(self.found, objects=kept))

    def __len__(self) -> int:
        return len(self.found.objects)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (_manifest(item, self.found.kinds) for item in self.found.objects)

    def __repr__(self) -> str:
        kinds = {kind: n for kind, n in self.kinds.items() if kind not in ("Node", "Pod")}
        pending = self.pending
        shown = ", ".join(pending[:_NAMES_SHOWN]) + (" …" if len(pending) > _NAMES_SHOWN else "")
        waiting = f" ({len(pending)} pending: {shown})" if pending else ""
        parts = [_counted(len(self.nodes), "node"), _counted(len(self.pods), "pod") + waiting]
        parts += [f"{n} {kind}" for kind, n in sorted(kinds.items())]
        return f"<LoadedCluster: {', '.join(parts)}>"

    def _find(self, kind: str, name: str) -> KubeObject:
        known = {struct.__name__.lower(): struct for struct in self.found.kinds.values()}
        struct = known.get(kind.lower()) or known.get(kind.lower().removesuffix("s"))
        if struct is None:
            hint = did_you_mean(kind, (other.__name__ for other in self.found.kinds.values()))
            raise NoSuchObjectError(f'no kind that scheduling looks at is called "{kind}"{hint}')
        key = f"default/{name}" if manifests.is_namespaced(struct) and "/" not in name else name
        of_kind = {item.key: item for item in self.found.objects if type(item) is struct}
        if key not in of_kind:
            raise NoSuchObjectError(f"{struct.__name__} {key} is not there{_namesakes(key, of_kind)}")
        return of_kind[key]


def _namesakes(key: str, of_kind: Mapping[str, KubeObject]) -> str:
    name = key.rpartition("/")[2]
    same = [other for other, item in of_kind.items() if item.name == name]
    return f"; there is {', '.join(same[:_NAMES_SHOWN])}" if same else did_you_mean(key, of_kind)


def _manifest(item: KubeObject, kinds: Kinds) -> dict[str, Any]:
    group = next((group for (group, _), struct in kinds.items() if struct is type(item)), "")
    version = f"{group}/v1" if group else "v1"
    fields: dict[str, Any] = msgspec.to_builtins(item)
    return {"apiVersion": version, "kind": type(item).__name__, **fields}


def _counted(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


# -- reading what is given ---------------------------------------------------------------------------------------------

Source = LoadedCluster | str | PathLike[str] | Mapping[str, Any]
"""A path, a YAML or JSON text, a manifest as a dictionary (a List too), or what was loaded before."""

Objects = Source | Iterable[Any]
"""A source, or several."""

Document = Mapping[str, Any] | str | PathLike[str] | None
"""A configuration: a dictionary, a YAML text, or the path of a file."""


def read_objects(objects: Any, kinds: Kinds) -> Manifests:
    """The objects of these kinds in whatever is given (`Objects`). Raises `InputError` and `ManifestError`."""
    if isinstance(objects, LoadedCluster):
        return _only(objects.found, kinds)
    if isinstance(objects, str | bytes | PathLike | Mapping) or hasattr(objects, "read"):
        return _read_source(objects, kinds)
    if not isinstance(objects, Iterable):
        raise InputError(f"a path, a YAML text or manifests are expected, not {type(objects).__name__}")
    sources = list(objects)
    if all(isinstance(source, Mapping) for source in sources):
        return manifests.from_dicts(sources, kinds=kinds)
    whole = Manifests(kinds=kinds)
    for source in sources:
        _take(whole, _read_source(source, kinds))
    return whole


def read_document(given: Any, default_source: str) -> tuple[dict[str, Any] | str | bytes | None, str]:
    """A configuration, told apart as sources are: what there is to decode, and what to call it in messages."""
    if given is None or isinstance(given, bytes):
        return given, default_source
    if isinstance(given, Mapping):
        return dict(given), default_source
    if hasattr(given, "read"):
        return given.read(), default_source
    if not isinstance(given, str | PathLike):
        raise InputError(f"{default_source}: a path, a YAML text or a mapping is expected, not {type(given).__name__}")
    path = _path_of(given)
    return (str(given), default_source) if path is None else (read_file(path), path)


def _read_source(source: Any, kinds: Kinds) -> Manifests:
    if isinstance(source, LoadedCluster):
        return _only(source.found, kinds)
    if isinstance(source, Mapping):
        return manifests.from_dicts([source], kinds=kinds)
    if hasattr(source, "read"):
        source = source.read()
    if isinstance(source, bytes):
        return manifests.read(source, "", kinds=kinds)
    if not isinstance(source, str | PathLike):
        raise InputError(f"a path, a YAML text or a manifest is expected, not {type(source).__name__}")
    path = _path_of(source)
    if path is None:
        return manifests.read(str(source).encode(), "", kinds=kinds)
    whole = Manifests(kinds=kinds)
    for filename in files_of(path):
        _take(whole, manifests_in(read_file(filename), filename, kinds))
    return whole


def _path_of(source: str | PathLike[str]) -> str | None:
    """The path that is meant, or None for a YAML text: one of several lines, or one that is a mapping, unless a file
    is called so."""
    if not isinstance(source, str):
        return fspath(source)
    if "\n" in source or (not path_exists(source) and _is_mapping(source)):
        return None
    return source


def path_exists(path: str) -> bool:
    """Whatever the text is."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long for a name, or a NUL in it
        return False


def _is_mapping(text: str) -> bool:
    try:
        return any(isinstance(document, dict) for document in load_documents(text.encode()))
    except (yaml.YAMLError, ValueError):
        return text.lstrip().startswith("{")  # meant as one: the reader says what is wrong with it


def _take(whole: Manifests, found: Manifests) -> None:
    whole.objects.extend(found.objects)
    whole.sources.update(found.sources)
    if found.dumped is not None:
        whole.dumped = (whole.dumped or set()) | found.dumped
    for kind, count in found.ignored.items():
        whole.ignored[kind] = whole.ignored.get(kind, 0) + count


def _only(found: Manifests, kinds: Kinds) -> Manifests:
    """Those of these kinds."""
    if found.kinds == kinds:
        return replace(found, objects=list(found.objects))
    wanted = set(kinds.values())
    return replace(found, objects=[item for item in found.objects if type(item) in wanted], kinds=kinds)


MOST_BYTES = 256 << 20
_FIRST_BYTES = 4096
_SIMILAR = 0.6
_LONGEST_NAME_SHOWN = 200
_EXTENSIONS = (".json", ".yaml", ".yml")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDE_ENCODINGS = (b"\xff\xfe", b"\xfe\xff")
"""How a UTF-16 text begins, as PowerShell writes it; YAML allows for it."""


class InputError(KubeschedError, ValueError):
    """A file cannot be read."""


class UnreachableClusterError(InputError):
    """The input is a live cluster, and nobody answers there."""


def read_file(filename: str) -> bytes:
    """The whole file. One that has no end, or is larger than any dump, is not read to its end."""
    try:
        with Path(filename).open("rb") as file:
            return bounded(file, filename)
    except FileNotFoundError as problem:
        raise InputError(f"{filename}: {problem.strerror}{_near(Path(filename))}") from None
    except OSError as problem:
        raise InputError(f"{filename}: {problem.strerror or problem}") from None


def _near(path: Path) -> str:
    """A hint at what stands where the path leads, if the name is only misspelt."""
    try:
        others = [other.name for other in path.parent.iterdir() if _is_similar(path.stem, other.stem)]
        return did_you_mean(path.name, others)
    except OSError:
        return ""


def _is_similar(stem: str, other: str) -> bool:
    """Without the suffix, which half of the files in a directory share."""
    return SequenceMatcher(None, stem.lower(), other.lower()).ratio() >= _SIMILAR


def bounded(file: IO[bytes], name: str) -> bytes:
    first = file.read(_FIRST_BYTES)
    if b"\0" * 8 in first:
        raise InputError(f"{name}: not a text file: it contains NUL bytes")
    data = first + file.read(MOST_BYTES + 1 - len(first))
    if len(data) > MOST_BYTES:
        raise InputError(f"{name}: larger than {MOST_BYTES >> 20} MiB")
    return data


def files_of(filename: str) -> list[str]:
    """A directory stands for the manifests in it and in the directories below, but for hidden ones (`.git`)."""
    try:
        is_directory = Path(filename).is_dir()
    except OSError as problem:  # too long for a name
        raise InputError(f"{filename[:_LONGEST_NAME_SHOWN]}: {problem.strerror or problem}") from None
    if not is_directory:
        return [filename]
    if (Path(filename) / "Chart.yaml").is_file():
        raise InputError(f"{filename}: a Helm chart; render it first: helm template {filename} | kubesched ... -f -")
    inside = manifests_below(Path(filename))
    if not inside:
        raise InputError(f"{filename}: no {', '.join(_EXTENSIONS)} file in this directory or below")
    return [str(path) for path in inside]


def manifests_below(directory: Path) -> list[Path]:
    found = (path for path in directory.rglob("*") if path.suffix in _EXTENSIONS and path.is_file())
    return sorted(path for path in found if not _is_hidden(path.relative_to(directory)))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def manifests_in(data: bytes, name: str, kinds: Kinds, *, keeps_written: bool = False) -> Manifests:
    """The objects of these kinds in a file's text; there must be some, of whatever kinds."""
    if not data.strip():
        raise InputError(f"{name}: the file is empty")
    data = data.removeprefix(_BYTE_ORDER_MARK)
    try:
        found = manifests.read(data, name, kinds=kinds, keeps_written=keeps_written)
    except ManifestError:
        _check_encoding(data, name)
        raise
    except RecursionError:
        raise InputError(f"{name}: nested too deeply") from None
    if not found.objects and not found.ignored:
        raise InputError(f"{name}: no Kubernetes objects in it")
    return found


def _check_encoding(data: bytes, name: str) -> None:
    if data.startswith(_WIDE_ENCODINGS):
        return
    try:
        data.decode()
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise InputError(f"{name}: line {line}: not UTF-8: byte {data[problem.start]:#04x}") from None
