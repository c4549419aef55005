"""What only device selectors have: includes(), which treats a single attribute as a list of one.

Next: `environment`.
"""

from __future__ import annotations

from kubesched.k8s.cel.checking.declarations import CelFunction, function, overload
from kubesched.k8s.cel.errors import CelEvaluationError
from kubesched.k8s.cel.values.equality import is_same

_MAX_VALUES_PER_DEVICE = 48


def includes(attribute: object, sought: object) -> bool:
    """Whether an attribute is the value sought, or a list that has it."""
    if type(attribute) is not list:
        return is_same(attribute, sought)
    for index, element in enumerate(attribute):
        if index >= _MAX_VALUES_PER_DEVICE:
            message = f"'includes' function cannot be applied to lists longer than {_MAX_VALUES_PER_DEVICE} values"
            raise CelEvaluationError(message)
        if is_same(element, sought):
            return True
    return False


FUNCTIONS: tuple[CelFunction, ...] = (
    function("includes", overload("dra_includes_dyn_dyn", "dyn.(dyn) -> bool", includes)),
)
