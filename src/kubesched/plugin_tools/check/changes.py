"""What may happen to a cluster while a pod waits: nodes and pods that come, change and go, and the pod itself.

Half of the changes are generous (more room, fewer taints, labels that the plugin knows): those are the ones that undo
rejections. Each is a change of one object, as an API server would tell it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace

from kubesched.plugin_tools.check.cases import Case, DrawnChange, Manifest
from kubesched.plugin_tools.check.drawing import HOSTNAME, CaseDraws
from kubesched.plugin_tools.check.words import Words

Edit = Callable[[CaseDraws, Manifest], None]


_CHANGES_PER_CASE = 10


def drawn_cases(words: Words, seed: int, count: int) -> Iterator[Case]:
    """Cases, each with changes that may come over it."""
    draws = CaseDraws(seed, words)
    for _ in range(count):
        case = draws.case()
        yield replace(case, changes=drawn_changes(draws, case, _CHANGES_PER_CASE))


def drawn_changes(draws: CaseDraws, case: Case, count: int) -> tuple[DrawnChange, ...]:
    """One after the other: each changes what those before it left."""
    found = []
    for number in range(count):
        change = _drawn(draws, case, f"new-{number}")
        case = case.after(change)
        found.append(change)
    return tuple(found)


def _drawn(draws: CaseDraws, case: Case, name: str) -> DrawnChange:
    """`name` is for whatever comes new."""
    pick = draws.random
    nodes, pods = case.nodes, [item for item in case.objects if item["kind"] == "Pod"]
    kind = pick.choice(("node", "node", "node", "new node", "pod", "new pod", "gone", "own", "own"))
    if kind == "node" and nodes:
        return _edited(draws, pick.choice(nodes), _NODE_EDITS)
    if kind == "pod" and pods:
        return _edited(draws, pick.choice(pods), _POD_EDITS)
    if kind == "new pod" and nodes:
        return DrawnChange.to(draws.pod(name, pick.choice(nodes)["metadata"]["name"]))
    if kind == "gone" and (pods or nodes):
        return DrawnChange.removal(pick.choice([*pods, *pods, *nodes]))
    if kind == "own":
        return _edited(draws, case.pod, _OWN_EDITS)
    return DrawnChange.to(_new_node(draws, name))


def _new_node(draws: CaseDraws, name: str) -> Manifest:
    node = draws.node(name)
    if draws.random.random() < 0.5:
        for edit in (_untaint, _uncordon, _grow):
            edit(draws, node)
    return node


def _edited(draws: CaseDraws, item: Manifest, edits: tuple[Edit, ...]) -> DrawnChange:
    new = deepcopy(item)
    draws.random.choice(edits)(draws, new)
    return DrawnChange.to(new)


# -- nodes -------------------------------------------------------------------------------------------------------------


def _untaint(_draws: CaseDraws, node: Manifest) -> None:
    node.setdefault("spec", {}).pop("taints", None)


def _taint(draws: CaseDraws, node: Manifest) -> None:
    node.setdefault("spec", {}).setdefault("taints", []).append(draws.taint())


def _uncordon(_draws: CaseDraws, node: Manifest) -> None:
    node.setdefault("spec", {}).pop("unschedulable", None)


def _grow(draws: CaseDraws, node: Manifest) -> None:
    amounts = {"cpu": 64, "memory": "256Gi", "pods": 110, **dict.fromkeys(draws.resources, 16)}
    node.setdefault("status", {})["allocatable"] = amounts


def _resize(draws: CaseDraws, node: Manifest) -> None:
    node.setdefault("status", {})["allocatable"] = draws.node("any").get("status", {}).get("allocatable", {})


def _relabel(draws: CaseDraws, item: Manifest) -> None:
    labels = item["metadata"].setdefault("labels", {})
    labels.update(draws.labels(node=item["kind"] == "Node"))


def _unlabel(draws: CaseDraws, item: Manifest) -> None:
    """Any but the host's name."""
    labels = item["metadata"].get("labels", {})
    if own := sorted(key for key in labels if key != HOSTNAME):
        del labels[draws.random.choice(own)]


def _annotate(draws: CaseDraws, item: Manifest) -> None:
    item["metadata"].setdefault("annotations", {}).update(draws.annotations())


def _unannotate(_draws: CaseDraws, item: Manifest) -> None:
    item["metadata"].pop("annotations", None)


def _condition(draws: CaseDraws, node: Manifest) -> None:
    node.setdefault("status", {})["conditions"] = [draws.condition()]


_NODE_EDITS: tuple[Edit, ...] = (
    _untaint,
    _taint,
    _uncordon,
    _grow,
    _resize,
    _relabel,
    _relabel,
    _unlabel,
    _unlabel,
    _annotate,
    _unannotate,
    _condition,
)

# -- pods --------------------------------------------------------------------------------------------------------------


def _scale_down(_draws: CaseDraws, pod: Manifest) -> None:
    for container in pod["spec"]["containers"]:
        container["resources"] = {}


def _tolerate(_draws: CaseDraws, pod: Manifest) -> None:
    pod["spec"]["tolerations"] = [*pod["spec"].get("tolerations", ()), {"operator": "Exists"}]


def _ungate(_draws: CaseDraws, pod: Manifest) -> None:
    pod["spec"].pop("schedulingGates", None)


_POD_EDITS: tuple[Edit, ...] = (_relabel, _unlabel, _scale_down, _annotate, _unannotate)
_OWN_EDITS: tuple[Edit, ...] = (*_POD_EDITS, _relabel, _tolerate, _ungate)
