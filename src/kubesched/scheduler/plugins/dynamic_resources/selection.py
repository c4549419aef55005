"""Which devices a request picks: the CEL selectors of its class and its own, and the taints it puts up with.

What an expression says about a device is remembered with the device, for all nodes that have such a device.

Next: `kubesched.k8s.cel` for the language, `search` for who asks.
"""

from __future__ import annotations

from collections import OrderedDict

from kubesched.k8s import cel
from kubesched.k8s.cel.program import AttributeValue, DeviceView, VersionText
from kubesched.k8s.model.resource import DeviceAttribute, DeviceSelector
from kubesched.k8s.model.taints import tolerates
from kubesched.scheduler.plugins.dynamic_resources.outcomes import AllocationError, SearchBudget
from kubesched.scheduler.plugins.dynamic_resources.published import PublishedDevice
from kubesched.scheduler.plugins.dynamic_resources.wants import Want

_MAX_REMEMBERED = 256
"""How many expressions are remembered with a device; claims of strangers can bring any number."""

_MAX_PROGRAMS = 1024
_UNITS_PER_CHARACTER = 30
"""What compiling costs."""


def is_selected(want: Want, device: PublishedDevice, claim_key: str, budget: SearchBudget) -> bool:
    """Raises AllocationError where an expression is broken, or has no answer for the device; SearchAbandonedError."""
    if want.device_class is not None:
        source = f"class {want.device_class.name}"
        if not _all_match(want.device_class.spec.selectors or (), device, source, budget):
            return False
    return _all_match(want.selectors, device, f"claim {claim_key}", budget)


def is_kept_away(device: PublishedDevice, want: Want) -> bool:
    """Whether the device has a taint that the request does not tolerate."""
    tolerations = want.tolerations or ()
    return any(not any(tolerates(toleration, taint) for toleration in tolerations) for taint in device.taints)


def _all_match(
    selectors: tuple[DeviceSelector, ...], device: PublishedDevice, source: str, budget: SearchBudget
) -> bool:
    return all(
        _matches(selector, device, f"{source}: selector #{index}", budget) for index, selector in enumerate(selectors)
    )


def _matches(selector: DeviceSelector, device: PublishedDevice, place: str, budget: SearchBudget) -> bool:
    expression = selector.cel.expression if selector.cel is not None else ""
    known = device.selected.get(expression)
    if known is None:
        known = _ask(expression, device, budget)
    if isinstance(known, str):
        raise AllocationError(f"{place}: {known}")
    return known


def _ask(expression: str, device: PublishedDevice, budget: SearchBudget) -> bool | str:
    """The answer, or why there is none. It is remembered even if it was too dear: another time it costs nothing."""
    program = _compiled(expression, budget)
    meter = cel.CostMeter()
    answer: bool | str
    if isinstance(program, str):
        answer = program
    else:
        try:
            answer = program.evaluate(_view(device), meter)
        except cel.CelError as mistake:
            answer = f"CEL runtime error: {mistake}"
    if len(device.selected) >= _MAX_REMEMBERED:
        device.selected.clear()
    device.selected[expression] = answer
    budget.has_learnt = True
    budget.spend(meter.spent)
    return answer


_programs: OrderedDict[str, cel.Program | str] = OrderedDict()
"""Those used last, and why others are none."""


def _compiled(expression: str, budget: SearchBudget) -> cel.Program | str:
    known = _programs.get(expression)
    if known is not None:
        _programs.move_to_end(expression)
        return known
    try:
        known = cel.compile(expression)
    except cel.CelCompileError as mistake:
        known = f"CEL compile error: {mistake}"
    _programs[expression] = known
    if len(_programs) > _MAX_PROGRAMS:
        _programs.popitem(last=False)
    budget.has_learnt = True
    budget.spend(len(expression) * _UNITS_PER_CHARACTER)
    return known


def _view(device: PublishedDevice) -> DeviceView:
    """Raises CelError where an attribute is not what it says."""
    if device.view is not None:
        return device.view
    attributes = {name: _attribute(name, value) for name, value in (device.device.attributes or {}).items()}
    capacity = {name: published.value for name, published in device.capacity.items()}
    device.view = DeviceView.of(device.driver, attributes, capacity, device.is_shareable)
    return device.view


def _attribute(name: str, attribute: DeviceAttribute) -> AttributeValue:
    if attribute.int_value is not None:
        return attribute.int_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    if attribute.string is not None:
        return attribute.string
    if attribute.version is not None:
        return VersionText(attribute.version)
    raise cel.CelEvaluationError(f"attribute {name}: unsupported attribute value")
