"""An independent check of consolidation steps, by counting alone: nothing of the scheduler, nothing of the search.

Carries out the steps on the manifests, in their order, and finds every node that is asked for more than it has, every
pod that has no node, and every moment at which a disruption budget would be broken.
"""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import Any

from kubesched.planning.consolidate.report import ConsolidationReport

Manifest = dict[str, Any]
_UNITS = {"m": 1, "Mi": 1, "Gi": 1024}


def _amount(text: str) -> int:
    """cpu in thousandths, memory in MiB."""
    for unit, factor in _UNITS.items():
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    return int(text) * 1000


class ClusterOnPaper:
    def __init__(self, objects: list[Manifest]) -> None:
        self.room: dict[str, dict[str, int]] = {}
        self.pods: dict[str, Manifest] = {}
        self.where: dict[str, str] = {}
        self.budgets = [one for one in objects if one["kind"] == "PodDisruptionBudget"]
        self.wanted = {
            one["metadata"]["name"]: one["spec"].get("replicas", 1) for one in objects if "replicas" in str(one)
        }
        for one in objects:
            if one["kind"] == "Node":
                amounts = one["status"]["allocatable"]
                self.room[one["metadata"]["name"]] = {key: _amount(amounts[key]) for key in ("cpu", "memory")}
            elif one["kind"] == "Pod":
                key = f"{one['metadata']['namespace']}/{one['metadata']['name']}"
                self.pods[key], self.where[key] = one, one["spec"]["nodeName"]

    def problems(self, report: ConsolidationReport, shapes: dict[str, dict[str, str]] | None = None) -> list[str]:
        found: list[str] = []
        for number, step in enumerate(report.steps, 1):
            for new in step.launch:
                amounts = (shapes or {})[new.option.shape.name]
                self.room[new.name] = {key: _amount(str(amounts[key])) for key in ("cpu", "memory")}
            leaving = [key for key, node in self.where.items() if node in step.delete]
            moved = {move.pod: move for move in step.moves}
            found += [f"step {number}: {key} is left behind" for key in leaving if key not in moved]
            found += self._broken_budgets(number, leaving, step.waves)
            for key, move in moved.items():
                if move.target in step.delete or move.target not in self.room:
                    found.append(f"step {number}: {key} goes to {move.target}, which is not there")
                self.where[key] = move.target
            for name in step.delete:
                del self.room[name]
            found += [f"step {number}: {text}" for text in self._overfull()]
        return found

    def _overfull(self) -> list[str]:
        used: dict[str, Counter[str]] = {name: Counter() for name in self.room}
        for key, node in self.where.items():
            if node not in used:
                return [f"{key} is on {node}, which is not there"]
            for container in self.pods[key]["spec"]["containers"]:
                for name, amount in container["resources"]["requests"].items():
                    used[node][name] += _amount(amount)
        return [
            f"{node} is asked for {asked[name]} {name} and has {self.room[node][name]}"
            for node, asked in used.items()
            for name in asked
            if asked[name] > self.room[node][name]
        ]

    def _broken_budgets(self, number: int, leaving: list[str], waves: int) -> list[str]:
        found = []
        for budget in self.budgets:
            wanted = budget["spec"]["selector"]["matchLabels"]
            covered = [k for k, pod in self.pods.items() if wanted.items() <= pod["metadata"]["labels"].items()]
            n_leaving = sum(key in leaving for key in covered)
            most = self._most_missing(budget["spec"], len(covered))
            if n_leaving and (most < 1 or waves < ceil(n_leaving / most)):
                name = budget["metadata"]["name"]
                found.append(f"step {number}: {n_leaving} pods of {name} leave in {waves} waves, {most} may at a time")
        return found

    @staticmethod
    def _most_missing(spec: Manifest, n_pods: int) -> int:
        if "maxUnavailable" in spec:
            return int(spec["maxUnavailable"])
        least = spec["minAvailable"]
        if isinstance(least, str):
            return n_pods - ceil(n_pods * int(least.removesuffix("%")) / 100)
        return n_pods - int(least)
