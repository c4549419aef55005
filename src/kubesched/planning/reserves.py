"""What a kubelet keeps of a machine for the system: the published formulas of the clouds, and formulas of one's own.

Amounts are milli-cpus and bytes. The eviction threshold (100 MiB, unless a formula of one's own says otherwise) counts
too: kubelets evict pods before that memory is used, so allocatable leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.quantity import Quantity, QuantityError, parse

_MI = 1 << 20
_GI = 1 << 30
_EVICTION_BYTES = 100 * _MI

_MEMORY_TIERS = ((4 * _GI, 25), (4 * _GI, 20), (8 * _GI, 10), (112 * _GI, 6))
_MEMORY_REST_PERCENT = 2
_CPU_TIERS = ((1000, 600), (1000, 100), (2000, 50))
"""So many milli-cpus, of which this many ten-thousandths are kept."""
_CPU_REST = 25
_AKS_CPU = ((1, 60), (2, 100), (4, 140), (8, 180), (16, 260), (32, 420), (64, 740))


def _tiered_cpu(cpu_milli: int) -> int:
    kept = 0
    for width, share in _CPU_TIERS:
        kept += min(cpu_milli, width) * share
        cpu_milli = max(0, cpu_milli - width)
    return (kept + cpu_milli * _CPU_REST) // 10_000


def _gke(cpu_milli: int, memory_bytes: int, _pods: int) -> tuple[int, int]:
    if memory_bytes < _GI:
        return _tiered_cpu(cpu_milli), 255 * _MI
    kept, rest = 0, memory_bytes
    for width, percent in _MEMORY_TIERS:
        kept += min(rest, width) * percent
        rest = max(0, rest - width)
    return _tiered_cpu(cpu_milli), (kept + rest * _MEMORY_REST_PERCENT) // 100


def _eks(cpu_milli: int, _memory_bytes: int, pods: int) -> tuple[int, int]:
    return _tiered_cpu(cpu_milli), (255 + 11 * pods) * _MI


def _aks(cpu_milli: int, memory_bytes: int, pods: int) -> tuple[int, int]:
    cores = cpu_milli / 1000
    cpu = next((kept for most, kept in _AKS_CPU if cores <= most), _AKS_CPU[-1][1])
    return cpu, min((20 * pods + 50) * 1_000_000, memory_bytes // 4)


_FORMULAS: Mapping[str, Callable[[int, int, int], tuple[int, int]]] = {"gke": _gke, "eks": _eks, "aks": _aks}
RESERVES = ("none", *_FORMULAS)
"""What a catalogue may name as its `reserve`."""
_TIERS = "tiers"


def reserved(formula: str, cpu_milli: int, memory_bytes: int, pods: int) -> tuple[int, int]:
    """Milli-cpus and bytes that are not allocatable on a machine of this size."""
    if formula == "none":
        return 0, 0
    cpu, memory = _FORMULAS[formula](cpu_milli, memory_bytes, pods)
    return cpu, memory + _EVICTION_BYTES


# -- formulas of one's own ---------------------------------------------------------------------------------------------


class ReserveError(KubeschedError, ValueError):
    """A formula makes no sense; begins with the field."""


@dataclass(frozen=True, slots=True)
class _Tier:
    up_to: int | None
    """In milli-cpus or bytes; None: the rest."""
    share: Fraction


@dataclass(frozen=True, slots=True)
class _Part:
    """Of one resource: a fixed amount, or shares of what lies between amounts."""

    fixed: int = 0
    tiers: tuple[_Tier, ...] = ()

    def of(self, amount: int) -> int:
        kept, begin = Fraction(self.fixed), 0
        for tier in self.tiers:
            end = amount if tier.up_to is None else min(amount, tier.up_to)
            kept += max(0, end - begin) * tier.share
            begin = max(begin, end)
        return int(kept)


@dataclass(frozen=True, slots=True)
class SystemReserve:
    """A cloud's formula, of which parts may be replaced."""

    formula: str = "none"
    cpu: _Part | None = None
    memory: _Part | None = None
    memory_per_pod: int = 0
    eviction: int | None = None

    def of(self, cpu_milli: int, memory_bytes: int, pods: int) -> tuple[int, int]:
        if self == SystemReserve():
            return 0, 0
        known = _FORMULAS.get(self.formula)
        cpu, memory = (0, 0) if known is None else known(cpu_milli, memory_bytes, pods)
        if self.cpu is not None:
            cpu = self.cpu.of(cpu_milli)
        if self.memory is not None:
            memory = self.memory.of(memory_bytes)
        eviction = _EVICTION_BYTES if self.eviction is None else self.eviction
        return cpu, memory + self.memory_per_pod * pods + eviction


_FIELDS = ("formula", "cpu", "memory", "memoryPerPod", "eviction")


def read_reserve(given: object) -> SystemReserve:
    """A name, or a mapping with `formula`, `cpu`, `memory`, `memoryPerPod`, `eviction`; cpu and memory are amounts, or
    lists of tiers. Raises ReserveError."""
    if isinstance(given, str):
        if given not in RESERVES:
            raise ReserveError(f"one of {', '.join(RESERVES)} is expected, not {given}")
        return SystemReserve(given)
    if not isinstance(given, Mapping):
        raise ReserveError(f"one of {', '.join(RESERVES)} or a mapping is expected, not {given!r}")
    for name in given:
        if name not in _FIELDS:
            raise ReserveError(f"{name}: not known; there are {', '.join(_FIELDS)}")
    formula = given.get("formula", "none")
    if formula not in (*RESERVES, _TIERS):
        raise ReserveError(f"formula: one of {', '.join((*RESERVES, _TIERS))} is expected, not {formula!r}")
    if formula == _TIERS and not any(isinstance(given.get(name), list) for name in ("cpu", "memory")):
        raise ReserveError("formula: tiers needs a list of tiers, in cpu or memory")
    amounts = {name: _amount(given[name], name) for name in ("memoryPerPod", "eviction") if name in given}
    return SystemReserve(
        "none" if formula == _TIERS else formula,
        _part(given["cpu"], "cpu") if "cpu" in given else None,
        _part(given["memory"], "memory") if "memory" in given else None,
        amounts.get("memoryPerPod", 0),
        amounts.get("eviction"),
    )


def _part(given: object, field: str) -> _Part:
    if not isinstance(given, list):
        return _Part(_amount(given, field))
    tiers: list[_Tier] = []
    for i, one in enumerate(given):
        where = f"{field}[{i}]"
        if not isinstance(one, Mapping) or not set(one) <= {"upTo", "percent"}:
            raise ReserveError(f"{where}: a tier is expected: {{upTo: AMOUNT, percent: NUMBER}}, the last without upTo")
        up_to = _amount(one["upTo"], f"{where}.upTo", field) if "upTo" in one else None
        if tiers and (tiers[-1].up_to is None or (up_to is not None and up_to <= (tiers[-1].up_to or 0))):
            raise ReserveError(f"{where}.upTo: tiers must rise, and only the last may be without it")
        tiers.append(_Tier(up_to, _percent(one.get("percent"), f"{where}.percent") / 100))
    if not tiers:
        raise ReserveError(f"{field}: no tier in it")
    return _Part(0, tuple(tiers))


def _percent(given: object, field: str) -> Fraction:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 100:
        raise ReserveError(f"{field}: a number between 0 and 100 is expected, not {given!r}")
    return Fraction(str(given))


def _amount(given: object, field: str, resource: str = "") -> int:
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise ReserveError(f"{field}: an amount is expected, not {given!r}")
    try:
        found: Quantity = parse(given)
    except QuantityError as problem:
        raise ReserveError(f"{field}: {problem}") from None
    if found.nanos < 0:
        raise ReserveError(f"{field}: {given} is negative")
    return found.milli_value if (resource or field) == "cpu" else found.value
