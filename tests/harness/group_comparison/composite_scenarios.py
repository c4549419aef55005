"""Scenarios of v1.37 alone: groups of groups, and groups that say whether they preempt.

Groups are named in the order in which they are created, so that it does not matter whether that took a second.

Next: `demanding_scenarios`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.group_comparison.scenarios import CALM, Manifest, ScenarioDraw, Step


def zone_key(name: str) -> str:
    """Of a scenario's own."""
    return f"zone-{name}"


class CompositeDraw(ScenarioDraw):
    def kinds(self) -> dict[str, Sequence[Callable[[], None]]]:
        return {
            **super().kinds(),
            "composite": (
                self._nested, self._nested, self._deep, self._basic_over_gangs, self._two_levels, self._two_levels,
                self._groups_missing, self._tree_evicts, self._tree_evicts, self._whole_trees, self._member_goes,
                self._circle, self._late_pods, self._late_parent, self._two_trees, self._parent_goes, self._unlike,
            ),
            "policy": (self._calm_group, self._calm_group, self._calm_tree),
        }  # fmt: skip

    # -- kinds of scenarios --------------------------------------------------------------------------------------------

    def _nested(self) -> None:
        """Gangs below a gang, of which some may be enough."""
        self._nodes(self._int(2, 4), cpu=2)
        self._others(self._int(0, 2))
        n_groups = self._int(2, 3)
        self._tree(n_groups, self._int(1, n_groups))

    def _deep(self) -> None:
        """Three levels."""
        self._nodes(self._int(2, 4), cpu=2)
        created = self._steps[1].created
        created.append(self._composite("a", self._chance.choice((1, 2, None))))
        for name in ("b", "c"):
            created.append(self._composite(name, self._chance.choice((1, 2, None)), parent="a"))
            for leaf in ("x", "y"):
                self._leaf(created, f"{name}{leaf}", self._int(1, 2), parent=name)

    def _basic_over_gangs(self) -> None:
        """As many of the gangs as fit."""
        self._nodes(self._int(1, 3), cpu=2)
        self._tree(self._int(2, 4), None)

    def _two_levels(self) -> None:
        """All in one zone, each group in one rack of it."""
        self._zones()
        self._others(self._int(0, 2))
        n_groups = self._int(1, 3)
        racks = self._chance.random() < 0.8
        self._tree(n_groups, self._chance.choice((n_groups, 1, None)), topology=zone_key(self._name), racks=racks)

    def _groups_missing(self) -> None:
        """One group too few, or a group without its pods; what is missing comes later, or never."""
        self._nodes(3, cpu=4)
        created, late = self._steps[1].created, Step()
        n_groups = self._int(2, 3)
        created.append(self._composite("a", n_groups))
        for number in range(n_groups - 1):
            self._leaf(created, f"g{number}", self._int(1, 2), parent="a")
        if self._chance.random() < 0.5:
            self._leaf(late.created, "gz", self._int(1, 2), parent="a")
        else:
            created.append(self._child("gz", 2, parent="a"))
            late.created += [self._pod("gzp", number, group="gz") for number in range(2)]
        if self._chance.random() < 0.7:
            self._steps.append(late)

    def _tree_evicts(self) -> None:
        """Pods and groups of lower priority are in the way."""
        self._nodes(self._int(2, 4), cpu=2)
        self._victims("low", self._int(1, 5))
        self._victims("mid", self._int(0, 2))
        if self._chance.random() < 0.4:
            self._steps[0].created.append(self._disruption_budget("low", allowed=self._int(0, 1)))
        n_groups = self._int(1, 3)
        self._tree(n_groups, self._chance.choice((n_groups, 1, None)), priority="high")

    def _whole_trees(self) -> None:
        """Trees of lower priority leave as a whole, or one by one."""
        self._nodes(self._int(2, 3), cpu=4)
        first = self._steps[0].created
        for name, kind in (("v", "low"), ("w", "mid")):
            first.append(self._composite(name, None, priority=kind, mode=self._chance.choice(("Pod", "PodGroup"))))
            for leaf in ("x", "y")[: self._int(1, 2)]:
                mode = self._chance.choice(("Pod", "PodGroup"))
                self._leaf(first, f"{name}{leaf}", self._int(1, 2), parent=name, priority=kind, mode=mode)
        if self._chance.random() < 0.5:
            self._members(self._int(1, 4), priority="high", cpu="2")
        else:
            self._tree(self._int(1, 2), None, priority="high")

    def _member_goes(self) -> None:
        """A bound member is deleted, and another comes."""
        self._nodes(3, cpu=4)
        n_groups = self._int(1, 2)
        self._tree(n_groups, n_groups)
        self._steps.append(Step(deleted=["g0p-0"]))
        self._steps.append(Step([self._pod("g0p", 9, group="g0")]))

    def _circle(self) -> None:
        """Two composites are each other's parents; later one is written anew."""
        self._nodes(2, cpu=4)
        created = self._steps[1].created
        created.append(self._composite("a", None, parent="b"))
        created.append(self._composite("b", None, parent="a"))
        self._leaf(created, "g0", 2, parent=self._chance.choice(("a", "b")))
        if self._chance.random() < 0.7:
            self._steps.append(Step([self._composite("a", None)], dissolved=["a"]))

    def _late_pods(self) -> None:
        """More pods come for groups that are bound, with room for them or without."""
        self._nodes(self._int(1, 3), cpu=4)
        n_groups = self._int(1, 2)
        self._tree(n_groups, self._chance.choice((n_groups, None)))
        late = [self._pod(f"g{number}q", 0, group=f"g{number}") for number in range(n_groups)]
        self._steps.append(Step(late))

    def _late_parent(self) -> None:
        """Pods and their groups wait for a composite that comes last."""
        self._nodes(self._int(1, 3), cpu=4)
        created = self._steps[1].created
        is_deep = self._chance.random() < 0.5
        if is_deep:
            created.append(self._composite("b", 1, parent="a"))
        for number in range(2):
            self._leaf(created, f"g{number}", self._int(1, 2), parent="b" if is_deep else "a")
        self._steps.append(Step([self._composite("a", self._int(1, 1 if is_deep else 2))]))

    def _two_trees(self) -> None:
        """Of different priority, of which only one may fit."""
        self._nodes(self._int(1, 3), cpu=2)
        created = self._steps[1].created
        for name, priority in (("a", "low"), ("b", "high")):
            created.append(self._composite(name, 2, priority=priority))
            for number in range(2):
                self._leaf(created, f"{name}{number}", self._int(1, 2), parent=name, priority=priority)

    def _parent_goes(self) -> None:
        """The composite is deleted while its pods wait, and comes back; room comes with it."""
        self._nodes(1, cpu=2)
        self._tree(2, 2, size=2)
        self._steps.append(Step(dissolved=["a"]))
        self._steps.append(Step([self._node("more", 4, "r0"), self._composite("a", 2)]))

    def _unlike(self) -> None:
        """A pod's priority is not that of the topmost group; or one of the groups has another."""
        self._nodes(2, cpu=4)
        self._tree(2, self._int(1, 2), priority="mid")
        pods = [one for one in self._steps[1].created if one["kind"] == "Pod"]
        groups = [one for one in self._steps[1].created if one["kind"] == "PodGroup"]
        if self._chance.random() < 0.5:
            self._chance.choice(pods)["spec"]["priorityClassName"] = "high"
        else:
            self._chance.choice(groups)["spec"]["priorityClassName"] = "low"

    def _calm_group(self) -> None:
        """Groups that preempt nobody, and pods that say something else."""
        self._nodes(2, cpu=2)
        self._victims("low", self._int(2, 4))
        of_group, of_pods = (self._chance.choice((CALM, "high")) for _ in range(2))
        if self._chance.random() < 0.6:
            of_pods = of_group
        self._members(self._int(1, 3), priority=of_group, of_pods=of_pods)
        self._say_it()

    def _calm_tree(self) -> None:
        self._nodes(2, cpu=2)
        self._victims("low", self._int(2, 4))
        self._tree(self._int(1, 2), None, priority=self._chance.choice((CALM, "high")))
        self._say_it()

    def _say_it(self) -> None:
        """A group has to say what its class does, if that is not the default."""
        for one in self._steps[1].created:
            if one["kind"] != "Pod" and one["spec"].get("priorityClassName") == CALM:
                one["spec"]["preemptionPolicy"] = "Never"

    # -- their parts ---------------------------------------------------------------------------------------------------

    def _tree(
        self,
        n_groups: int,
        least: int | None,
        *,
        topology: str = "",
        racks: bool = False,
        priority: str = "",
        size: int = 0,
    ) -> None:
        """One composite over some groups, which comes before or after them."""
        mode = self._chance.choice(("Pod", "PodGroup"))
        parent = self._composite("a", least, topology=topology, priority=priority, mode=mode)
        below: list[Manifest] = []
        for number in range(n_groups):
            n_pods = size or self._int(1, 3)
            self._leaf(below, f"g{number}", n_pods, parent="a", racks=racks, priority=priority)
        self._steps[1].created += [parent, *below] if self._chance.random() < 0.5 else [*below, parent]

    def _leaf(
        self,
        created: list[Manifest],
        name: str,
        size: int,
        *,
        parent: str,
        racks: bool = False,
        priority: str = "",
        mode: str = "Pod",
    ) -> None:
        """A group, most often a gang, and its pods."""
        least = self._chance.choice((size, size, size, self._int(1, size), None))
        created.append(self._child(name, least, parent=parent, racks=racks, priority=priority, mode=mode))
        created += [self._pod(f"{name}p", number, group=name, priority=priority) for number in range(size)]

    def _child(
        self,
        name: str,
        least: int | None,
        *,
        parent: str,
        racks: bool = False,
        priority: str = "",
        mode: str = "Pod",
    ) -> Manifest:
        group = self._group(name, least, rack=racks, priority=priority, mode=mode)
        spec = {**group["spec"], "parentCompositePodGroupName": parent, "workloadRef": _reference(name)}
        return {**group, "spec": spec}

    def _composite(
        self,
        name: str,
        least: int | None,
        *,
        parent: str = "",
        topology: str = "",
        priority: str = "",
        mode: str = "Pod",
    ) -> Manifest:
        policy: Manifest = {"basic": {}} if least is None else {"gang": {"minGroupCount": least}}
        spec: Manifest = {"schedulingPolicy": policy, "workloadRef": _reference(name)}
        spec["disruptionMode"] = {"single": {}} if mode == "Pod" else {"all": {}}
        if parent:
            spec["parentCompositePodGroupName"] = parent
        if topology:
            spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
        if priority:
            spec["priorityClassName"] = priority
        return {
            "apiVersion": "scheduling.k8s.io/v1alpha3",
            "kind": "CompositePodGroup",
            "metadata": self._meta(name),
            "spec": spec,
        }

    def _zones(self) -> None:
        """Each with a rack or two, and in these a node or two."""
        for zone in range(self._int(1, 2)):
            for rack in range(self._int(1, 2)):
                for number in range(self._int(1, 2)):
                    node = self._node(f"{zone}-{rack}-{number}", self._chance.choice((2, 4)), f"r{zone}{rack}")
                    node["metadata"]["labels"][zone_key(self._name)] = f"z{zone}"
                    self._steps[0].created.append(node)


def _reference(name: str) -> dict[str, Any]:
    """Nobody looks for the workload."""
    return {"workloadName": "w", "templateName": name}
