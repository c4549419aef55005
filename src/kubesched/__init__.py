"""kubesched: the Kubernetes scheduler in Python.

    import kubesched

    print(kubesched.explain(objects, "shop/web-1"))          # why a pod goes where it goes, or nowhere
    print(kubesched.simulate(objects))                       # what becomes of workloads, in virtual time
    kubesched.simulate(objects, sequence=["shop/web-1"])     # pods one after another

Plugin authors import `kubesched.framework`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesched.explanation.explain import Explanation, explain
    from kubesched.simulator.library import simulate
    from kubesched.simulator.report import SimulationReport
    from kubesched.simulator.sequence import PlacedSequence

__all__ = ["Explanation", "PlacedSequence", "SimulationReport", "explain", "simulate"]

_HOMES = {
    "Explanation": "kubesched.explanation.explain",
    "explain": "kubesched.explanation.explain",
    "PlacedSequence": "kubesched.simulator.sequence",
    "SimulationReport": "kubesched.simulator.report",
    "simulate": "kubesched.simulator.library",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for, when it is asked for: `kubesched --help` need not load NumPy."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
