"""Reads the files that commands are given: manifests, dumps, directories of them, or standard input; writes those that
they are asked for, whole or not at all.

What cannot be read or written is an `InputError` of one line that names the file. Kinds that scheduling does not look
at are left out, with a warning.

Next: `kubesched.k8s.loaded_cluster`, which reads.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kubesched.k8s.loaded_cluster import InputError, bounded, files_of, manifests_in, read_file
from kubesched.k8s.model.manifests import CLUSTER_KINDS, KINDS, Kinds, Manifests, WrittenObject

__all__ = [
    "STDIN",
    "STDIN_NAME",
    "InputError",
    "check_place",
    "expanded",
    "read_bytes",
    "read_manifests",
    "source_name",
    "write_files",
]

STDIN = "-"
STDIN_NAME = "<stdin>"


def read_manifests(filenames: Iterable[str], kinds: Kinds = KINDS) -> tuple[Manifests, list[str]]:
    """All objects of these kinds, in the order of the files; and a warning for each other kind in a file, unless every
    dump of a cluster has it."""
    whole = Manifests(kinds=kinds)
    warnings: list[str] = []
    written: list[WrittenObject] = []
    for filename in expanded(filenames):
        name = source_name(filename)
        found = manifests_in(read_bytes(filename), name, kinds, keeps_written=True)
        if found.written:
            warnings += _unknown_fields(found.written)
            written += found.written
        whole.objects.extend(found.objects)
        whole.sources.update(found.sources)
        if found.dumped is not None:
            whole.dumped = (whole.dumped or set()) | found.dumped
        for kind, count in found.ignored.items():
            if _is_in_dumps(kind):
                continue
            whole.ignored[kind] = whole.ignored.get(kind, 0) + count
            warnings.append(f"{name}: ignored {count} {kind}{_meant_kind(kind, kinds)}")
    return whole, [*warnings, *_overridden(written)]


def _meant_kind(given: str, kinds: Kinds) -> str:
    """A hint, for a kind that Kubernetes has in another of its groups, or in other letters. Groups that are not its own
    have kinds of these names, too (Knative's Service)."""
    api_version, _, kind = given.rpartition(" ")
    its_group = api_version.rpartition("/")[0]
    for group, known in kinds:
        if known == kind and its_group in ("extensions", *(group for group, _ in kinds)):
            return f" ({kind} is in {f'{group}/v1' if group else 'v1'})"
        if known != kind and known.lower() == kind.lower():
            return f" (did you mean {known}?)"
    return ""


def _overridden(written: Iterable[WrittenObject]) -> Iterator[str]:
    """Manifests that say different things of one object, of which the last counts. A manifest of an object in a dump is
    a change that was meant."""
    latest: dict[tuple[str, str, str], WrittenObject] = {}
    found: dict[tuple[str, str], list[str]] = {}
    for one in written:
        name = one.api_version.rpartition("/")[0], one.kind, one.item.key
        before = latest.get(name)
        latest[name] = one
        if before is not None and before.tree() != one.tree():
            found.setdefault((one.source, before.source), []).append(f"{one.kind} {one.item.key}")
    for (source, before_source), names in found.items():
        where = "an earlier one in the same file" if source == before_source else f"the one in {before_source}"
        others = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        yield f"{source}: {names[0]} overrides {where}{others}"


def _unknown_fields(written: Iterable[WrittenObject]) -> Iterator[str]:
    """What no server has checked is checked here; the shapes of all kinds are loaded only then."""
    from kubesched.playground.apiserver.openapi.decoding import unknown_fields

    for one in written:
        for field, hint in unknown_fields(one.tree(), one.api_version, one.kind):
            yield f'{one.source}: {one.kind} {one.item.key}: unknown field "{field}"{hint}'


def _is_in_dumps(kind: str) -> bool:
    """`apps/v1 Deployment` is, for a command that has no use for it."""
    api_version, _, name = kind.partition(" ")
    return (api_version.rpartition("/")[0], name) in CLUSTER_KINDS


def read_bytes(filename: str) -> bytes:
    """The whole file, or all of standard input."""
    return bounded(sys.stdin.buffer, STDIN_NAME) if filename == STDIN else read_file(filename)


def source_name(filename: str) -> str:
    return STDIN_NAME if filename == STDIN else filename


def expanded(filenames: Iterable[str]) -> Iterator[str]:
    """A directory stands for the manifests in it and below."""
    for filename in filenames:
        yield from [filename] if filename == STDIN else files_of(filename)


def check_place(filename: str) -> None:
    """Whether a file can be written there, told before the work. Raises InputError."""
    problem = _problem_of(Path(filename))
    if problem:
        raise InputError(f"{filename}: {problem}")


def _problem_of(path: Path) -> str:
    try:
        if path.is_dir():
            return "is a directory"
        if path.exists() and not path.is_file():
            return "is not a file"
        if not path.parent.is_dir():
            return f"directory {path.parent} does not exist"
    except (OSError, ValueError) as problem:
        return str(problem)
    return "" if os.access(path.parent, os.W_OK) else f"directory {path.parent} cannot be written"


def write_files(files: Mapping[str, bytes], *, private: bool = False) -> None:
    """The whole files or none, whatever happens meanwhile. Private ones can be read by their owner alone, whoever could
    read what was there before: they name what runs in a cluster. Raises InputError."""
    beside: dict[str, str] = {}
    try:
        for filename, data in files.items():
            path = Path(filename)
            number, beside[filename] = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            with os.fdopen(number, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if not private:
                Path(beside[filename]).chmod(0o666 & ~_umask())
        for filename, name in beside.items():
            os.replace(name, filename)  # noqa: PTH105 - both names are texts anyway
    except OSError as problem:
        raise InputError(f"{filename}: {problem.strerror or problem}") from None
    finally:
        for name in beside.values():
            Path(name).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
