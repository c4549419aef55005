"""The methods that a plugin may have, with the parameters they are called with: read off `framework.extension_points`
and `framework.caching`.

Next: `class_rules`, which holds a plugin's own methods against them.
"""

from __future__ import annotations

import inspect
from types import FunctionType

from kubesched.framework import caching, extension_points


def _found() -> dict[str, inspect.Signature]:
    found: dict[str, inspect.Signature] = {}
    for contract in (extension_points, caching):
        for _, protocol in inspect.getmembers(contract, inspect.isclass):
            if protocol.__module__ == contract.__name__ and getattr(protocol, "_is_protocol", False):
                for name, member in vars(protocol).items():
                    if isinstance(member, FunctionType) and not name.startswith("_"):
                        found[name] = inspect.signature(member)
    return found


_SIGNATURES = _found()

METHODS: dict[str, tuple[str, ...]] = {
    **{name: tuple(signature.parameters)[1:] for name, signature in _SIGNATURES.items()},
    **{f"{attribute}_for": ("pod",) for attribute in caching.SCOPE_ATTRIBUTES},
}
"""By name, the parameters after `self`."""

YES_OR_NO = frozenset(name for name, signature in _SIGNATURES.items() if signature.return_annotation == "bool")
"""Methods that answer with a truth value."""

EXTENSION_POINT_METHODS: tuple[str, ...] = tuple(
    method for methods in extension_points.EXTENSION_POINTS.values() for method in methods
)
"""Having one of these makes a class a plugin."""

NEEDED_BY = {"add_pod": "remove_pod", "remove_pod": "add_pod", "normalize_score": "score"}
"""Methods that mean nothing without another one (`score` stands for both of its forms)."""
