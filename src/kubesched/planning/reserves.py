"""What a kubelet keeps for the system: how much of a machine is allocatable, by the published formulas of the clouds.

Amounts are milli-cpus and bytes. The eviction threshold of 100 MiB counts for each of them: kubelets evict pods before
that is used, so allocatable leaves it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


def reserved(formula: str, cpu_milli: int, memory_bytes: int, pods: int) -> tuple[int, int]:
    """Milli-cpus and bytes that are not allocatable on a machine of this size."""
    if formula == "none":
        return 0, 0
    cpu, memory = _FORMULAS[formula](cpu_milli, memory_bytes, pods)
    return cpu, memory + _EVICTION_BYTES
