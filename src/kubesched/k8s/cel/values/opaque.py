"""The base of values that only their library looks into: quantities, versions, addresses, URLs, formats.

In Kubernetes, such a value on the left of == refuses a stranger on the right instead of saying "different".

Next: each library module derives its own value from this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar


class OpaqueValue(ABC):
    """A value with a type name of its own."""

    __slots__ = ()

    type_name: ClassVar[str]
    """The name that type() gives."""

    go_name: ClassVar[str]
    """The name of the type in Kubernetes' own code, which some messages show."""

    is_hashable: ClassVar[bool] = True
    """Whether Kubernetes' type may be looked up in a set; if not, `in` a constant list fails for it."""

    @abstractmethod
    def same_as(self, other: object) -> bool:
        """Whether `other` is the same value; raises CelEvaluationError if it is not of this type."""
