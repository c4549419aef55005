"""Cases drawn from a seed: clusters that are small, crowded and ugly, so that every rule is met often.

Nodes may be over-committed, cordoned, tainted, equal to each other, or lack everything; pods use what schedulers look
at, in every combination, and the words that the plugin itself knows. The same seed and words give the same cases.

While the pod waits, nodes and pods come, change and go, and so may the pod itself. Half of the changes are generous
(more room, fewer taints, labels that the plugin knows): those are the ones that undo rejections. Each is a change of
one object, as an API server would show it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from kubesched.plugin_tools.check.subject import SUBJECT_POD, Case, DrawnChange, Manifest, Words

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
APPS = ("web", "api", "db")

_CPUS = (None, "250m", "1", "2500m")
_MEMORIES = (None, "64Mi", "1Gi", "3Gi")
_IMAGES = {"example.com/app:1": 400_000_000, "example.com/app:2": 900_000_000}
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_VALUES = ("true", "false", "a", "b", "1", "2", "50", "100", "-1", "", "none")
_ODD_AMOUNTS = ("0", "1", "1m", "4096", "64Ti")
_DATE = "2026-01-01T00:00:00Z"


class CaseDraws:
    """Draws cases, and parts of them, one after the other."""

    def __init__(self, seed: int, words: Words) -> None:
        self.random = random.Random(seed)
        self.words = words
        self._n_odd = 0
        self._all_keys = (*words.texts, *words.texts, "disk", "app", "tier")
        near = (str(number + by) for number in words.numbers for by in (-1, 0, 1))
        self._all_values = (*_VALUES, *words.texts, *words.texts, *near)
        self._keys: Iterable[str] = self._all_keys
        self._values: Iterable[str] = self._all_values
        self.resources = ("example.com/gpu", *words.resources, *words.resources)

    def case(self, max_nodes: int = 5, max_pods: int = 8) -> Case:
        """Each has a few keys and values of its own, so that what one object asks for another often has."""
        pick = self.random
        self._keys = dict.fromkeys(self._mostly(self.words.keys, self._all_keys, 3))
        self._values = dict.fromkeys(self._mostly(self.words.values, self._all_values, 4))
        nodes = [self.node(f"n{number}") for number in range(pick.randint(1, max_nodes))]
        for number in range(1, len(nodes)):
            if pick.random() < 0.3:
                nodes[number] = self._like(nodes[pick.randrange(number)], f"n{number}")
        names = [node["metadata"]["name"] for node in nodes]
        pods = [self.pod(f"p{number}", pick.choice(names)) for number in range(pick.randint(0, max_pods))]
        asking = self.odd_pod(SUBJECT_POD) if pick.random() < 0.25 else self.pod(SUBJECT_POD)
        objects = (*nodes, *pods, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        return Case(asking, objects, self.pod("visitor"))

    def _mostly(self, known: Sequence[str], others: Sequence[str], count: int) -> list[str]:
        """Some of what the plugin is known to look at, and one or more of what it may."""
        picked = self.random.sample(known, min(count - 1, len(known)))
        return picked + self.random.choices(others, k=count - len(picked))

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def node(self, name: str) -> Manifest:
        pick = self.random
        if pick.random() < 0.05:
            return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        allocatable: Manifest = {
            "cpu": pick.choice((0, 1, 2, 4, 8)),
            "memory": f"{pick.choice((0, 1, 2, 4, 8))}Gi",
            "pods": pick.choice((1, 3, 110)),
        }
        for resource in self._some(self.resources, 0.5):
            allocatable[resource] = pick.choice((0, 1, 2, 4, 8))
        spec: Manifest = {}
        if taints := [self.taint() for _ in range(pick.choice((0, 0, 1, 2)))]:
            spec["taints"] = taints
        if pick.random() < 0.2:
            spec["unschedulable"] = True
        images = [{"names": [image], "sizeBytes": _IMAGES[image]} for image in _IMAGES if pick.random() < 0.4]
        metadata: Manifest = {"name": name, "labels": {HOSTNAME: name, **self.labels(node=True)}}
        if annotations := self.annotations():
            metadata["annotations"] = annotations
        status = {"allocatable": allocatable, "images": images, "conditions": [self.condition()]}
        return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}

    def _like(self, node: Manifest, name: str) -> Manifest:
        """A node of the same size, perhaps with the same labels."""
        copied = deepcopy(node)
        labels = copied["metadata"].get("labels", {}) if self.random.random() < 0.5 else self.labels(node=True)
        copied["metadata"] |= {"name": name, "labels": {**labels, HOSTNAME: name}}
        return copied

    def condition(self) -> Manifest:
        return {"type": "Ready", "status": self.random.choice(("True", "True", "False", "Unknown"))}

    def taint(self) -> Manifest:
        key = self.random.choice(("gpu", "spot", *self._keys))
        return {"key": key, "value": self._value(), "effect": self.random.choice(_EFFECTS)}

    # -- pods ----------------------------------------------------------------------------------------------------------

    def pod(self, name: str, on: str = "") -> Manifest:
        pick = self.random
        namespace = pick.choice(("default", "shop"))
        metadata: Manifest = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
        metadata["labels"] = self.labels()
        if annotations := self.annotations():
            metadata["annotations"] = annotations
        if on and pick.random() < 0.1:
            metadata["deletionTimestamp"] = _DATE
        spec: Manifest = {"containers": [self._container()], "priority": pick.randint(-1, 3), **self._wishes()}
        if on:
            spec["nodeName"] = on
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": spec,
            "status": {"phase": "Running", "startTime": _DATE} if on else {"phase": "Pending"},
        }

    def odd_pod(self, name: str) -> Manifest:
        """As the API server lets them through, and hardly anybody expects them."""
        pod, pick = self.pod(name), self.random
        oddities: tuple[Callable[[], object], ...] = (
            lambda: pod["spec"].update(containers=[]),
            lambda: pod["metadata"].pop("labels", None),
            lambda: pod["metadata"].pop("annotations", None),
            lambda: pod["metadata"].pop("uid", None),
            lambda: pod["spec"].pop("priority", None),
            lambda: pod["spec"]["containers"].append({"name": "bare", "image": "bare"}),
            lambda: pod["spec"].update(initContainers=[self._container()], overhead={"cpu": "10m"}),
            lambda: pod["spec"].update(schedulingGates=[{"name": "example.com/wait"}]),
            lambda: pod["spec"].update(tolerations=[{"operator": "Exists"}], affinity={}, nodeSelector={}),
            lambda: pod["metadata"].update(namespace="nowhere"),
            lambda: pod["status"].update(nominatedNodeName="gone"),
            lambda: pod["metadata"].update(labels={self._key(): "" for _ in range(2)}),
            lambda: pod["spec"].update(containers=[self._container(amounts=_ODD_AMOUNTS)]),
        )
        pick.choice(oddities)()
        oddities[self._n_odd % len(oddities)]()  # each in its turn: none is left to chance
        self._n_odd += 1
        return pod

    def labels(self, *, node: bool = False) -> dict[str, str]:
        pick = self.random
        found = {}
        if node and pick.random() < 0.7:
            found[ZONE] = pick.choice(("a", "b", "c"))
        if not node and pick.random() < 0.7:
            found["app"] = pick.choice(APPS)
        return found | {key: self._value() for key in self._keys if pick.random() < 0.5}

    def annotations(self) -> dict[str, str]:
        return {key: self._value() for key in self._keys if self.random.random() < 0.35}

    def toleration(self) -> Manifest:
        key = self.random.choice(("gpu", "spot", "", *self._keys))
        return {"key": key, "operator": "Exists"}

    def _container(self, amounts: Sequence[str] = ()) -> Manifest:
        pick = self.random
        requests: Manifest = {}
        for resource, choices in (("cpu", amounts or _CPUS), ("memory", amounts or _MEMORIES)):
            if (amount := pick.choice(choices)) is not None:
                requests[resource] = amount
        for resource in self._some(self.resources, 0.3):
            requests[resource] = pick.choice((0, 1, 2, 4))
        container: Manifest = {"name": "main", "image": pick.choice(sorted(_IMAGES))}
        container["resources"] = {"requests": requests}
        if pick.random() < 0.25:
            container["ports"] = [{"containerPort": port, "hostPort": port} for port in self._some((80, 443), 0.6)]
        return container

    def _wishes(self) -> dict[str, Any]:
        """What a pod says about where it would like to be."""
        pick = self.random
        spec: dict[str, Any] = {}
        if pick.random() < 0.35:
            spec["affinity"] = self._affinity()
        if pick.random() < 0.3:
            spec["topologySpreadConstraints"] = [self._spread(key) for key in self._some((ZONE, HOSTNAME), 0.6)]
        if pick.random() < 0.5:
            spec["tolerations"] = [self.toleration()]
        if pick.random() < 0.2:
            spec["nodeSelector"] = {self._key(): self._value()}
        return spec

    def _affinity(self) -> Manifest:
        found: Manifest = {}
        for kind in self._some(("podAffinity", "podAntiAffinity"), 0.5):
            found[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [self._term()]}
            if self.random.random() < 0.5:
                preferred = {"weight": self.random.randint(1, 100), "podAffinityTerm": self._term()}
                found[kind]["preferredDuringSchedulingIgnoredDuringExecution"] = [preferred]
        if self.random.random() < 0.5:
            operator = self.random.choice(("In", "NotIn"))
            expression = {"key": self._key(), "operator": operator, "values": [self._value()]}
            terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            found["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        if self.random.random() < 0.4:
            expression = {"key": self._key(), "operator": "In", "values": [self._value()]}
            wish = {"weight": self.random.randint(1, 100), "preference": {"matchExpressions": [expression]}}
            found.setdefault("nodeAffinity", {})["preferredDuringSchedulingIgnoredDuringExecution"] = [wish]
        return found

    def _term(self) -> Manifest:
        selector = {"matchLabels": {"app": self.random.choice(APPS)}}
        return {"topologyKey": self.random.choice((ZONE, HOSTNAME)), "labelSelector": selector}

    def _spread(self, key: str) -> Manifest:
        return {
            "maxSkew": self.random.randint(1, 2),
            "topologyKey": key,
            "whenUnsatisfiable": self.random.choice(("DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": {"matchLabels": {"app": self.random.choice(APPS)}},
        }

    def _some(self, choices: Sequence[Any], share: float) -> list[Any]:
        return [choice for choice in dict.fromkeys(choices) if self.random.random() < share]

    def _key(self) -> str:
        return self.random.choice(list(self._keys))

    def _value(self) -> str:
        return self.random.choice(list(self._values))


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
