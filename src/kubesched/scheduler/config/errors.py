"""Validation errors in a configuration: where each one is, what is wrong, in the words Kubernetes uses.

`ErrorList` collects them while a file is read, so that the user sees all at once; `ConfigError` carries them out.
The forms of the messages (`Invalid value: "x": …`, `Unsupported value: …`) are those of Kubernetes' field errors.

Next: `load`, which raises `ConfigError`, and `validation`, which finds most validation errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.times import Duration


class FieldError(NamedTuple):
    """One validation error. `path` is empty when it concerns the file as a whole."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(KubeschedError):
    """A configuration cannot be used. `str()` gives one line per validation error: `file: path: message`."""

    def __init__(self, errors: Iterable[FieldError], source: str = "") -> None:
        self.errors = tuple(errors)
        self.source = source
        super().__init__(self.errors, source)

    def __str__(self) -> str:
        prefix = f"{self.source}: " if self.source else ""
        return "\n".join(f"{prefix}{error}" for error in self.errors)


class ErrorList:
    """Validation errors in the order in which they were found."""

    def __init__(self) -> None:
        self._errors: list[FieldError] = []

    def __iter__(self) -> Iterator[FieldError]:
        return iter(self._errors)

    def __len__(self) -> int:
        return len(self._errors)

    def add(self, path: str, message: str) -> None:
        self._errors.append(FieldError(path, message))

    def extend(self, errors: Iterable[FieldError]) -> None:
        self._errors.extend(errors)

    def invalid(self, path: str, value: Any, detail: str) -> None:
        self.add(path, f"Invalid value: {display(value)}: {detail}")

    def required(self, path: str, detail: str = "") -> None:
        self.add(path, f"Required value: {detail}" if detail else "Required value")

    def unsupported(self, path: str, value: Any, supported: Iterable[str]) -> None:
        choices = ", ".join(display(choice) for choice in supported)
        self.add(path, f"Unsupported value: {display(value)}: supported values: {choices}")

    def duplicate(self, path: str, value: Any) -> None:
        self.add(path, f"Duplicate value: {display(value)}")

    def forbidden(self, path: str, detail: str) -> None:
        self.add(path, f"Forbidden: {detail}")


def display(value: Any) -> str:
    """A value as an error message shows it: text in quotes, numbers bare, anything else as compact JSON."""
    if isinstance(value, Duration):
        value = str(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
