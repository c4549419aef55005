"""Feature gates: from `A=true,B=false` to which features are on.

Mistakes are told as Kubernetes tells them: a gate that does not exist, one that is locked, one that needs another. A
gate that kubesched cannot move away from its default is refused, for a decision that is silently wrong is worse.

Next: `gate_table` for the gates, `gate_effects` for what kubesched does about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kubesched.live.options.flag import FlagError
from kubesched.live.options.gate_effects import GATES_WITHOUT_EFFECT, REFUSED_GATES
from kubesched.live.options.gate_table import ALL_ALPHA, ALL_BETA, GATE_NEEDS, KNOWN_GATES, GateStage
from kubesched.live.options.value_kinds import BOOL

_KUBE = "kube"
_WHOLE_STAGES = {ALL_ALPHA: GateStage.ALPHA, ALL_BETA: GateStage.BETA}


@dataclass(frozen=True, slots=True)
class FeatureGates(Mapping[str, bool]):
    """Every known gate, and whether its feature is on. `changed` holds those away from their defaults."""

    changed: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))

    def __getitem__(self, name: str) -> bool:
        return self.changed[name] if name in self.changed else KNOWN_GATES[name].default

    def __iter__(self) -> Iterator[str]:
        return iter(KNOWN_GATES)

    def __len__(self) -> int:
        return len(KNOWN_GATES)


def read_gates(given: Iterable[tuple[str, str]]) -> tuple[FeatureGates, tuple[str, ...]]:
    """The gates, and warnings, from (component, `Gate=true`) as `--feature-gates` has them."""
    asked = _asked(_of_kube(tuple(given)))
    _check_locks(asked)
    gates = FeatureGates(MappingProxyType(_changed(asked)))
    _check_needs(gates)
    _check_refused(gates, asked)
    return gates, (*_stage_warnings(asked), *_effect_warnings(gates))


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


def _check_locks(asked: Mapping[str, bool]) -> None:
    mistakes = [
        f"cannot set feature gate {name} to {_shown(is_on)}, feature is locked to {_shown(KNOWN_GATES[name].default)}"
        for name, is_on in asked.items()
        if KNOWN_GATES[name].is_locked and is_on != KNOWN_GATES[name].default
    ]
    if mistakes:
        raise FlagError.of(mistakes)


def _changed(asked: Mapping[str, bool]) -> dict[str, bool]:
    """What differs from the defaults. A gate that was asked for by its name does not follow its stage."""
    wanted: dict[str, bool] = {}
    for whole, stage in _WHOLE_STAGES.items():
        if whole in asked:
            wanted.update((name, asked[whole]) for name, spec in KNOWN_GATES.items() if spec.stage is stage)
    wanted.update(asked)
    return {name: is_on for name, is_on in wanted.items() if is_on != KNOWN_GATES[name].default}


def _check_needs(gates: FeatureGates) -> None:
    mistakes = []
    for name, needs in GATE_NEEDS.items():
        missing = [need for need in needs if not gates[need]]
        if gates[name] and missing:
            mistakes.append(f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]")
    if mistakes:
        raise FlagError.of(mistakes)


def _check_refused(gates: FeatureGates, asked: Mapping[str, bool]) -> None:
    mistakes = []
    for name, is_on in gates.changed.items():
        if name in REFUSED_GATES:
            through = "" if name in asked else f" (through {ALL_ALPHA if is_on else ALL_BETA})"
            mistakes.append(f"cannot set feature gate {name} to {_shown(is_on)}{through}: {REFUSED_GATES[name]}")
    if mistakes:
        raise FlagError.of(mistakes)


def _stage_warnings(asked: Mapping[str, bool]) -> Iterator[str]:
    for name, is_on in asked.items():
        stage = KNOWN_GATES[name].stage
        if stage in (GateStage.GA, GateStage.DEPRECATED):
            kind = stage.value if stage is GateStage.GA else "deprecated"
            yield f"setting {kind} feature gate {name}={_shown(is_on)}. It will be removed in a future release."


def _effect_warnings(gates: FeatureGates) -> Iterator[str]:
    for name, is_on in gates.changed.items():
        if name in GATES_WITHOUT_EFFECT:
            yield f"feature gate {name}={_shown(is_on)} has no effect: {GATES_WITHOUT_EFFECT[name]}"


def _shown(is_on: bool) -> str:
    return BOOL.show(is_on)
