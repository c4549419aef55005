"""Capacity of devices that is given out in portions: how much a request uses up, and whether that much is left.

Next: `search` asks this for every device it considers.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.k8s.model.quantity import Notation, Quantity, from_int
from kubesched.scheduler.plugins.dynamic_resources.ledger import Consumed
from kubesched.scheduler.plugins.dynamic_resources.published import PublishedCapacity, RequestRange

Wanted = Mapping[str, Quantity]
"""What a request asks of each capacity."""


def consumption(wanted: Wanted, capacity: Mapping[str, PublishedCapacity]) -> dict[str, Quantity]:
    """What a request uses up of each capacity of a device; of those it does not mention, the usual portion."""
    return {name: _portion(wanted.get(name), published) for name, published in capacity.items()}


def has_room(
    wanted: Wanted, capacity: Mapping[str, PublishedCapacity], consumed: Consumed, consuming: Consumed
) -> bool:
    """Whether the portions are allowed, and left over by what is consumed and what is about to be."""
    if any(name not in capacity for name in wanted):
        return False
    for name, published in capacity.items():
        portion = _portion(wanted.get(name), published)
        if _breaks_policy(portion, published):
            return False
        if portion.nanos + consumed.get(name, 0) + consuming.get(name, 0) > published.value.nanos:
            return False
    return True


def _portion(wanted: Quantity | None, published: PublishedCapacity) -> Quantity:
    if wanted is None:
        return published.value if published.default is None else published.default
    limits = published.valid_range
    if limits is not None and limits.lowest is not None:
        return _round_up(wanted, limits, limits.lowest)
    for value in published.valid_values:
        if wanted <= value:
            return value
    return wanted


def _round_up(wanted: Quantity, limits: RequestRange, lowest: Quantity) -> Quantity:
    if wanted < lowest:
        return lowest
    if limits.step is None or not limits.step.value:
        return wanted
    steps = -(-(wanted.value - lowest.value) // limits.step.value)
    return from_int(lowest.value + steps * limits.step.value, Notation.BINARY_SI)


def _breaks_policy(portion: Quantity, published: PublishedCapacity) -> bool:
    if not published.has_policy or portion == published.default:
        return False
    limits = published.valid_range
    if limits is None:
        return bool(published.valid_values) and portion not in published.valid_values
    if limits.highest is not None and portion > limits.highest:
        return True
    if limits.step is None or not limits.step.value:
        return False
    lowest = 0 if limits.lowest is None else limits.lowest.value
    return (portion.value - lowest) % limits.step.value != 0
