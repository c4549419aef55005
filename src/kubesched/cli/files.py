"""Reads the files that commands are given: manifests, dumps, directories of them, or standard input.

What cannot be read is an `InputError` of one line that names the file. Kinds that scheduling does not look at are
left out, with a warning.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from kubesched.k8s.model import manifests
from kubesched.k8s.model.manifests import CLUSTER_KINDS, KINDS, Kinds, ManifestError, Manifests

STDIN = "-"
STDIN_NAME = "<stdin>"

MOST_BYTES = 256 << 20
_FIRST_BYTES = 4096
_EXTENSIONS = (".json", ".yaml", ".yml")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDE_ENCODINGS = (b"\xff\xfe", b"\xfe\xff")
"""How a UTF-16 text begins, as PowerShell writes it; YAML allows for it."""


class InputError(ValueError):
    """A file cannot be read."""


def read_manifests(filenames: Iterable[str], kinds: Kinds = KINDS) -> tuple[Manifests, list[str]]:
    """All objects of these kinds, in the order of the files; and a warning for each other kind in a file, unless every
    dump of a cluster has it."""
    whole = Manifests(kinds=kinds)
    warnings: list[str] = []
    for filename in expanded(filenames):
        name = source_name(filename)
        found = _read(read_bytes(filename), name, kinds)
        whole.objects.extend(found.objects)
        whole.sources.update(found.sources)
        if found.dumped is not None:
            whole.dumped = (whole.dumped or set()) | found.dumped
        for kind, count in found.ignored.items():
            if _is_in_dumps(kind):
                continue
            whole.ignored[kind] = whole.ignored.get(kind, 0) + count
            warnings.append(f"{name}: ignored {count} {kind}")
    return whole, warnings


def _is_in_dumps(kind: str) -> bool:
    """`apps/v1 Deployment` is, for a command that has no use for it."""
    api_version, _, name = kind.partition(" ")
    return (api_version.rpartition("/")[0], name) in CLUSTER_KINDS


def read_bytes(filename: str) -> bytes:
    """The whole file. One that has no end, or is larger than any dump, is not read to its end."""
    if filename == STDIN:
        return _bounded(sys.stdin.buffer, STDIN_NAME)
    try:
        with Path(filename).open("rb") as file:
            return _bounded(file, filename)
    except OSError as problem:
        raise InputError(f"{filename}: {problem.strerror or problem}") from None


def _bounded(file: IO[bytes], name: str) -> bytes:
    first = file.read(_FIRST_BYTES)
    if b"\0" * 8 in first:
        raise InputError(f"{name}: not a text file: it contains NUL bytes")
    data = first + file.read(MOST_BYTES + 1 - len(first))
    if len(data) > MOST_BYTES:
        raise InputError(f"{name}: larger than {MOST_BYTES >> 20} MiB")
    return data


def source_name(filename: str) -> str:
    return STDIN_NAME if filename == STDIN else filename


def expanded(filenames: Iterable[str]) -> Iterator[str]:
    """A directory stands for the manifests in it and in the directories below, but for hidden ones (`.git`)."""
    for filename in filenames:
        if filename == STDIN or not Path(filename).is_dir():
            yield filename
            continue
        inside = manifests_below(Path(filename))
        if not inside:
            raise InputError(f"{filename}: no {', '.join(_EXTENSIONS)} file in this directory or below")
        yield from map(str, inside)


def manifests_below(directory: Path) -> list[Path]:
    found = (path for path in directory.rglob("*") if path.suffix in _EXTENSIONS and path.is_file())
    return sorted(path for path in found if not _is_hidden(path.relative_to(directory)))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _read(data: bytes, name: str, kinds: Kinds) -> Manifests:
    if not data.strip():
        raise InputError(f"{name}: the file is empty")
    data = data.removeprefix(_BYTE_ORDER_MARK)
    try:
        found = manifests.read(data, name, kinds=kinds)
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
