"""Feature gates on the command line: from `A=true,B=false`, perhaps of one component, to which features are on.

A gate that concerns other components is taken and does nothing, as in kube-scheduler: clusters hand the same flag to
all of them.

Next: `kubesched.scheduler.config.feature_gates` for what they mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubesched.live.options.flag import BOOL, FlagError
from kubesched.scheduler.config.feature_gates import KNOWN_GATES, FeatureGates, GateError, check_gates

_KUBE = "kube"


def read_gates(given: Iterable[tuple[str, str]]) -> tuple[FeatureGates, tuple[str, ...]]:
    """The gates, and warnings, from (component, `Gate=true`) as `--feature-gates` has them."""
    try:
        return check_gates(asked_gates(given))
    except GateError as problem:
        raise FlagError.of(list(problem.errors)) from None


def asked_gates(given: Iterable[tuple[str, str]]) -> dict[str, bool]:
    """What the flag says, unchecked."""
    return _asked(_of_kube(tuple(given)))


def _of_kube(given: tuple[tuple[str, str], ...]) -> Iterator[str]:
    components = {component for component, _ in given}
    if {"", _KUBE} <= components:
        raise FlagError("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use")
    for component, text in given:
        if component not in ("", _KUBE):
            raise FlagError(f"component not registered: {component}")
        yield text


def _asked(texts: Iterable[str]) -> dict[str, bool]:
    """What was asked for, in order; the last one counts."""
    asked: dict[str, bool] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise FlagError(f"missing bool value for {name}")
        try:
            asked[name] = BOOL.parse(value)
        except ValueError as problem:
            raise FlagError(f"invalid value of {name}={value}, err: {problem}") from None
        if name not in KNOWN_GATES:
            raise FlagError(f"unrecognized feature gate: {name}")
    return asked
