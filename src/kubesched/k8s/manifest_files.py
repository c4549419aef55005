"""Manifests in files: dumps, YAML and JSON, directories of them.

What cannot be read is an `InputError` of one line that names the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model import manifests
from kubesched.k8s.model.manifests import Kinds, ManifestError, Manifests
from kubesched.k8s.model.spelling import did_you_mean

MOST_BYTES = 256 << 20
_FIRST_BYTES = 4096
_LONGEST_NAME_SHOWN = 200
_EXTENSIONS = (".json", ".yaml", ".yml")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDE_ENCODINGS = (b"\xff\xfe", b"\xfe\xff")
"""How a UTF-16 text begins, as PowerShell writes it; YAML allows for it."""


class InputError(KubeschedError, ValueError):
    """A file cannot be read."""


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
        return did_you_mean(path.name, [other.name for other in path.parent.iterdir()])
    except OSError:
        return ""


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
