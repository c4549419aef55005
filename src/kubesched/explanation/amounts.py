"""Amounts of resources as people read them.

`exact` prints every unit and reads back as the same amount; `readable` is short, and where it rounds, it says so.
"""

from __future__ import annotations

from kubesched.k8s.model import quantity
from kubesched.k8s.model.quantity import Notation
from kubesched.k8s.model.requests import CPU, EPHEMERAL_STORAGE, HUGE_PAGES_PREFIX, MEMORY

_SHORT = 7
_BINARY_STEPS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def exact(resource: str, units: int) -> str:
    """The quantity for so many milli-cpus, bytes, or whole units."""
    if resource == CPU:
        return str(quantity.from_milli(units))
    notation = Notation.BINARY_SI if _is_bytes(resource) else Notation.DECIMAL_SI
    return str(quantity.from_int(units, notation))


def readable(resource: str, units: int) -> str:
    """The exact quantity if it is short, else about as much with two decimals: `~15.63Gi`."""
    text = exact(resource, units)
    if len(text) <= _SHORT or not _is_bytes(resource):
        return text
    amount, step = float(units), 0
    while abs(amount) >= 1024 and step < len(_BINARY_STEPS) - 1:
        amount /= 1024
        step += 1
    return f"~{amount:.2f}{_BINARY_STEPS[step]}"


def exact_and_readable(resource: str, units: int) -> str:
    """`160773632 (~153.33Mi)`; the exact quantity alone where it is short."""
    text, short = exact(resource, units), readable(resource, units)
    return text if text == short else f"{text} ({short})"


def _is_bytes(resource: str) -> bool:
    return resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGE_PAGES_PREFIX)
