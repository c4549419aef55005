"""What became of the pods, in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.k8s.model.core import Pod
from kubesched.playground.settling import why_pending

_NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """Pods with a place by node, and those without by the reason."""

    n_placed: int
    by_node: dict[str, int]
    pending: dict[str, list[str]]

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> Outcome:
        by_node: Counter[str] = Counter()
        pending: dict[str, list[str]] = {}
        for pod in sorted(pods, key=lambda known: known.key):
            if pod.spec.node_name:
                by_node[pod.spec.node_name] += 1
            elif not pod.is_terminal:
                pending.setdefault(why_pending(pod) or "not looked at yet", []).append(pod.key)
        return cls(by_node.total(), dict(sorted(by_node.items())), pending)

    @property
    def n_pending(self) -> int:
        return sum(map(len, self.pending.values()))

    def lines(self) -> list[str]:
        n_all = self.n_placed + self.n_pending
        found = [f"{self.n_placed} of {n_all} pods scheduled, on {_counted(len(self.by_node), 'node')}"]
        for reason, keys in self.pending.items():
            more = f" and {len(keys) - _NAMES_SHOWN} more" if len(keys) > _NAMES_SHOWN else ""
            found.append(f"pending: {', '.join(keys[:_NAMES_SHOWN])}{more}: {reason}")
        return found


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
