"""The Common Expression Language, as Kubernetes uses it.

`compile` turns the text of a device selector into a Program, `Program.evaluate` answers for a DeviceView.
`compile_expression` does the same for any other variables. Faults of the text raise CelCompileError, an expression
without a value raises CelEvaluationError.

Next: README.md says what is supported; `program` is the way through the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesched.k8s.cel.errors import CelCompileError, CelError, CelEvaluationError
    from kubesched.k8s.cel.program import (
        AttributeValue,
        DeviceView,
        Expression,
        Program,
        StructFields,
        VersionText,
        compile,
        compile_expression,
    )
    from kubesched.k8s.cel.steps import CostMeter

__all__ = [
    "AttributeValue",
    "CelCompileError",
    "CelError",
    "CelEvaluationError",
    "CostMeter",
    "DeviceView",
    "Expression",
    "Program",
    "StructFields",
    "VersionText",
    "compile",
    "compile_expression",
]

_HOMES = {"CelCompileError": "errors", "CelError": "errors", "CelEvaluationError": "errors", "CostMeter": "steps"}


def __getattr__(name: str) -> Any:
    """Imports the language when it is spoken for the first time: most clusters have no expressions."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'program')}"), name)
    return found
