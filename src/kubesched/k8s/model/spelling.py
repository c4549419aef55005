"""How names are spelled: the nearest one to a name that is not known, and fields as Kubernetes writes them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """` (did you mean "x"?)`, to follow a message; nothing if no name is near. Upper and lower case count alike, and
    where no whole name is near, the beginning of one that is longer does."""
    known = {other.lower(): other for other in names}
    begun = {other[: len(name) + 1]: whole for other, whole in known.items()}
    near = get_close_matches(name.lower(), known, n=1)
    if near:
        return f' (did you mean "{known[near[0]]}"?)'
    near = get_close_matches(name.lower(), begun, n=1, cutoff=0.7)
    return f' (did you mean "{begun[near[0]]}"?)' if near else ""


def camel(name: str) -> str:
    """A name of Python's as Kubernetes spells it: `maxSurge` for `max_surge`."""
    first, *others = name.strip("_").split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


def record_field(name: str) -> str:
    """The same of what a record holds; Kubernetes writes units out: `bootSeconds` for `boot_s`."""
    return camel(f"{name}econds" if name.endswith("_s") else name)
