"""The Common Expression Language, as device selectors of dynamic resource allocation use it.

`compile` turns a selector's text into a Program, `Program.evaluate` answers for a DeviceView. Faults of the text raise
CelCompileError, an expression without a value for a device raises CelEvaluationError.

Next: README.md says what is supported; `program` is the way through the package.
"""

from __future__ import annotations

from kubesched.cel.device import AttributeValue, DeviceView, VersionText
from kubesched.cel.errors import CelCompileError, CelError, CelEvaluationError
from kubesched.cel.program import Program, compile

__all__ = [
    "AttributeValue",
    "CelCompileError",
    "CelError",
    "CelEvaluationError",
    "DeviceView",
    "Program",
    "VersionText",
    "compile",
]
