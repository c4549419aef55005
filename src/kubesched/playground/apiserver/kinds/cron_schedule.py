"""Whether a text is a cron schedule, and if not why, in the words of the parser that Kubernetes uses."""

from __future__ import annotations

import re

_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_FIELDS: tuple[tuple[int, int, list[str]], ...] = (
    (0, 59, []),
    (0, 23, []),
    (1, 31, []),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)

_MOST_DIGITS = 18
"""As many fit into Go's int, whatever they are."""


def schedule_mistake(text: str) -> str:
    """What is wrong, "" if nothing is."""
    if text.startswith("@"):
        is_known = text in _DESCRIPTORS or re.fullmatch(r"@every \S+", text)
        return "" if is_known else f"unrecognized descriptor: {text}"
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]"
    for field, (low, high, names) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            if mistake := _part_mistake(part, low, high, names):
                return mistake
    return ""


def _part_mistake(part: str, low: int, high: int, names: list[str]) -> str:
    span, _, step = part.partition("/")
    if step and not step.isdigit():
        return f'failed to parse int from {step}: strconv.Atoi: parsing "{step}": invalid syntax'
    if any(number.isdigit() and len(number) > _MOST_DIGITS for number in (step, *span.split("-"))):
        number = max((step, *span.split("-")), key=len)
        return f'failed to parse int from {number}: strconv.Atoi: parsing "{number}": value out of range'
    if step and int(step) == 0:
        return f"step of range should be a positive number: {part}"
    if span in ("*", "?"):
        return ""
    bounds = []
    for text in span.split("-"):
        if text.lower() in names:
            bounds.append(names.index(text.lower()) + low)
        elif text.isdigit():
            bounds.append(int(text))
        else:
            return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
    if len(bounds) > 2:
        return f"too many hyphens: {part}"
    if bounds[0] < low:
        return f"beginning of range ({bounds[0]}) below minimum ({low}): {part}"
    if bounds[-1] > high:
        return f"end of range ({bounds[-1]}) above maximum ({high}): {part}"
    if bounds[0] > bounds[-1]:
        return f"beginning of range ({bounds[0]}) beyond end of range ({bounds[-1]}): {part}"
    return ""
