"""Which workloads are run: by name, by label, at other sizes than their files say.

`affinity` is a test case, `affinity/small` one of its workloads. A test case stands for its workload `default`, or if
it has none, for all its workloads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from kubesched.simulator.bench.errors import WorkloadError
from kubesched.simulator.bench.workload_file import DEFAULT_WORKLOAD, BenchWorkload, Param, read_workloads

FAMILIES = Path(__file__).parent / "workloads"
"""The workloads that come with kubesched."""

_NODE_PARAMS = ("initNodes", "nodes")
_POD_PARAM = "measurePods"


def load_workloads(files: Sequence[str]) -> list[BenchWorkload]:
    """All workloads of these files; of none, those that come with kubesched, by name."""
    if files:
        return [workload for file in files for workload in read_workloads(Path(file))]
    found = [workload for path in sorted(FAMILIES.glob("*.yaml")) for workload in read_workloads(path)]
    return sorted(found, key=lambda workload: workload.case)


def select_workloads(
    workloads: Sequence[BenchWorkload], names: Iterable[str], labels: Collection[str]
) -> list[BenchWorkload]:
    """Those named, or all; of these, those that have all the labels. Without labels, test cases stand for their
    default workloads."""
    wanted = list(names) or list(dict.fromkeys(workload.case for workload in workloads))
    found: list[BenchWorkload] = []
    for name in wanted:
        of_case = [workload for workload in workloads if workload.case == name]
        if not of_case:
            found.extend(_by_full_name(workloads, name))
        elif labels:
            found.extend(workload for workload in of_case if workload.labels.issuperset(labels))
        else:
            defaults = [workload for workload in of_case if workload.name == DEFAULT_WORKLOAD]
            found.extend(defaults or of_case)
    if not found:
        raise WorkloadError("", "", f"no workload has the label {' and '.join(labels)}")
    return found


def resized(workload: BenchWorkload, n_nodes: int | None, n_pods: int | None) -> BenchWorkload:
    """The workload with other numbers of nodes and of measured pods."""
    changed: dict[str, Param] = {}
    if n_nodes is not None:
        changed[_param(workload, _NODE_PARAMS, "nodes")] = n_nodes
    if n_pods is not None:
        changed[_param(workload, (_POD_PARAM,), "pods")] = n_pods
    return workload.with_params(changed) if changed else workload


def _by_full_name(workloads: Sequence[BenchWorkload], name: str) -> list[BenchWorkload]:
    found = [workload for workload in workloads if f"{workload.case}/{workload.name}" == name]
    if found:
        return found
    known = dict.fromkeys(title for workload in workloads for title in (workload.case, workload.title))
    close = get_close_matches(name, known, n=1)
    raise WorkloadError("", "", f"unknown workload {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""))


def _param(workload: BenchWorkload, names: Iterable[str], what: str) -> str:
    for name in names:
        if name in workload.params:
            return name
    raise workload.refuse("params", f"has no parameter {' or '.join(names)}, so --{what} cannot change it")
