"""Scenarios drawn from a seed: nodes, groups and pods that come and go in steps.

Each has nodes of its own, which only its pods may use, so that many can be played at a time in one cluster. Pods are
named after what they are (`m` and `n` members, `f` others in the way, `low` and `mid` those that may be evicted) and a
number: which of them is taken where all are equal is left to chance.

Next: `composite_scenarios`, for those of v1.37 alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Manifest = dict[str, Any]

CALM = "calm"
"""The class of pods that preempt nobody."""
SCENARIO, HOSTNAME = "scenario", "kubernetes.io/hostname"
PRIORITIES = {"low": 10, "mid": 50, "high": 1000, CALM: 1000}
DEVICE_CLASS, DRIVER = "compared-devices", "devices.example.com"


def rack_key(name: str) -> str:
    """Of a scenario's own: its groups are not tried in the racks of others."""
    return f"rack-{name}"


@dataclass(frozen=True, slots=True)
class Version:
    """A version of Kubernetes: where its groups are, and the feature gates of a scheduler for each set of scenarios."""

    groups: str
    gates: Mapping[str, tuple[str, ...]]
    composites: tuple[str, ...] = ()
    """The kinds of groups of groups."""


_GANGS = ("GenericWorkload", "GangScheduling")
_RACKS = "TopologyAwareWorkloadScheduling"
_WHOLE = "WorkloadAwarePreemption"
_CLAIMS = "DRAWorkloadResourceClaims"
VERSIONS = {
    "1.36": Version(
        "v1alpha2",
        {
            "gang": _GANGS,
            "topology": (*_GANGS, _RACKS),
            "preempt": (*_GANGS, _WHOLE),
            "all": (*_GANGS, _RACKS, _WHOLE, _CLAIMS),
            "demands": (*_GANGS, _RACKS),
        },
    ),
    "1.37": Version(
        "v1beta1",
        {
            "gang": ("GenericWorkload",),
            "topology": ("GenericWorkload", _RACKS),
            "preempt": ("GenericWorkload",),
            "all": ("GenericWorkload", _RACKS, _CLAIMS),
            "demands": ("GenericWorkload", _RACKS),
            "composite": ("GenericWorkload", _RACKS, "CompositePodGroup"),
            "policy": ("GenericWorkload", _RACKS, "CompositePodGroup", "PodGroupPreemptionPolicy"),
        },
        ("CompositePodGroup",),
    ),
}
SETS = tuple(dict.fromkeys(name for version in VERSIONS.values() for name in version.gates))


def written_for(manifest: Manifest, version: Version) -> Manifest:
    """A PodGroup, which is drawn as v1.36 has it, in the fields of this version; all else as it is."""
    if manifest["kind"] != "PodGroup":
        return manifest
    spec = dict(manifest["spec"])
    if version.groups != "v1alpha2" and "disruptionMode" in spec:
        spec["disruptionMode"] = {"all": {}}
    return {**manifest, "apiVersion": f"scheduling.k8s.io/{version.groups}", "spec": spec}


@dataclass(slots=True)
class Step:
    """What happens at once; `deleted` and `opened` are names of pods, the latter lose their scheduling gates.
    `dissolved` are names of composite pod groups, which go first."""

    created: list[Manifest] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    dissolved: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.created or self.deleted or self.opened or self.dissolved)


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    steps: tuple[Step, ...]
    """The first is there before the scheduler starts."""


class ScenarioDraw:
    def __init__(self, name: str, chance: random.Random) -> None:
        self._name = name
        self._chance = chance
        self._steps = [Step(), Step()]

    def kinds(self) -> dict[str, Sequence[Callable[[], None]]]:
        """By set, what a scenario may be."""
        return {
            "gang": (self._plain, self._plain, self._apart, self._incomplete, self._two_gangs, self._room_comes,
                     self._gated, self._replaced, self._several_gangs, self._closed_nodes, self._of_two_sizes,
                     self._leaves, self._in_waves),
            "topology": (self._racks, self._racks, self._racks_apart, self._late_member, self._two_on_racks,
                         self._uneven_racks, self._uneven_racks, self._several_on_racks, self._rack_is_freed,
                         self._closed_racks),
            "preempt": (self._evicts, self._evicts, self._evicts_groups, self._budget, self._never, self._by_priority,
                        self._guarded_groups, self._evicts_behind_taints, self._two_evict, self._grows),
            "all": (self._shared_devices, self._shared_devices, self._racks, self._evicts_groups, self._room_comes,
                    self._devices_of_two, self._uneven_racks, self._several_gangs, self._evicts_beside_racks),
        }  # fmt: skip

    def of(self, set_name: str) -> Scenario:
        self._chance.choice(self.kinds()[set_name])()
        return Scenario(self._name, tuple(step for step in self._steps if not step.is_empty))

    # -- kinds of scenarios --------------------------------------------------------------------------------------------

    def _plain(self) -> None:
        cpu = self._nodes(self._int(2, 4))
        self._others(self._int(0, 3))
        self._members(self._int(1, 7), cpu=self._chance.choice(("1", "1500m", str(cpu))))

    def _apart(self) -> None:
        """No two members on one node."""
        n_nodes = self._int(2, 4)
        self._nodes(n_nodes)
        self._members(self._int(2, 5), apart=True)

    def _incomplete(self) -> None:
        """Some members come later, or never."""
        self._nodes(self._int(2, 4))
        size = self._int(2, 5)
        first = self._int(1, size - 1)
        self._members(first, minimum=size)
        if self._chance.random() < 0.7:
            self._steps.append(Step([self._pod("m", number, group="g") for number in range(first, size)]))

    def _two_gangs(self) -> None:
        """The pods of two gangs that fit one at a time, in turn."""
        self._nodes(self._int(2, 3), cpu=2)
        size = self._int(2, 4)
        late = self._steps[1].created
        for number in range(size):
            late += [self._pod("m", number, group="g"), self._pod("n", number, group="h")]
        late += [self._group("g", size), self._group("h", size)]

    def _room_comes(self) -> None:
        """What was in the way goes, or a node comes."""
        n_nodes = self._int(1, 3)
        cpu = self._nodes(n_nodes)
        n_others = self._int(1, n_nodes)  # of which none waits for another to go
        self._others(n_others, cpu=str(cpu))
        self._members(self._int(2, 4))
        gone = [f"f-{number}" for number in range(n_others)]
        if self._chance.random() < 0.3:
            self._steps.append(Step([self._node("new", 8, "r0")]))
        else:
            self._steps.append(Step(deleted=gone))

    def _gated(self) -> None:
        """Some members have scheduling gates, which are opened later, or stay."""
        self._nodes(self._int(2, 3), cpu=4)
        size = self._int(2, 4)
        self._members(size)
        shut = [pod for pod in self._steps[1].created if pod["kind"] == "Pod"][: self._int(1, size)]
        for pod in shut:
            pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        if self._chance.random() < 0.7:
            self._steps.append(Step(opened=[pod["metadata"]["name"] for pod in shut]))

    def _replaced(self) -> None:
        """A bound member is deleted, and another comes."""
        self._nodes(self._int(2, 3), cpu=4)
        size = self._int(2, 4)
        self._members(size, minimum=size)
        self._steps.append(Step(deleted=["m-0"]))
        self._steps.append(Step([self._pod("m", size, group="g")]))

    def _racks(self) -> None:
        cpu = self._racked_nodes()
        self._others(self._int(0, 4))
        self._members(self._int(1, 6), cpu=self._chance.choice(("1", "1500m", str(cpu))), rack=True)

    def _racks_apart(self) -> None:
        self._racked_nodes()
        self._members(self._int(2, 5), apart=True, rack=True)

    def _late_member(self) -> None:
        """Where the others are is where it has to go."""
        self._racked_nodes(cpu=2)
        size = self._int(2, 3)
        self._members(size, minimum=size, rack=True)
        late = [self._pod("n", number, group="g") for number in range(self._int(1, 3))]
        self._steps.append(Step(late))

    def _two_on_racks(self) -> None:
        self._racked_nodes(cpu=2)
        size = self._int(2, 3)
        self._steps[1].created += [self._pod("m", number, group="g") for number in range(size)]
        self._steps[1].created.append(self._group("g", size, rack=True))
        later = [self._pod("n", number, group="h") for number in range(size)]
        self._steps.append(Step([*later, self._group("h", size, rack=True)]))

    def _evicts(self) -> None:
        cpu = self._nodes(self._int(2, 4))
        self._victims("low", self._int(2, 8))
        self._members(self._int(2, 5), cpu=self._chance.choice(("1", "1500m", str(cpu))), priority="high")

    def _evicts_groups(self) -> None:
        """Groups that leave as a whole, or one by one, and pods without a group."""
        self._nodes(self._int(2, 3), cpu=2)
        first = self._steps[0].created
        for name, kind in (("v", "low"), ("w", "mid")):
            mode = self._chance.choice(("Pod", "PodGroup"))
            size = self._int(1, 3)
            first.append(self._group(name, size, priority=kind, mode=mode))
            first += [self._pod(kind, number, group=name, priority=kind) for number in range(size)]
        self._members(self._int(1, 4), priority="high")

    def _budget(self) -> None:
        self._nodes(self._int(2, 3), cpu=2)
        self._victims("low", self._int(2, 4))
        self._victims("mid", self._int(1, 2))
        guarded = self._chance.choice(("low", "mid"))
        self._steps[0].created.append(self._disruption_budget(guarded, allowed=self._int(0, 1)))
        self._members(self._int(1, 3), priority="high")

    def _never(self) -> None:
        """Members of which some preempt nobody."""
        self._nodes(2, cpu=2)
        self._victims("low", self._int(2, 4))
        size = self._int(1, 3)
        self._members(size, priority="high")
        members = [pod for pod in self._steps[1].created if pod["kind"] == "Pod"]
        for pod in members[: self._int(1, size)]:
            pod["spec"]["priorityClassName"] = CALM

    def _by_priority(self) -> None:
        """The group's priority counts, not that of its pods."""
        self._nodes(2, cpu=2)
        self._victims("low", 2)
        self._victims("mid", 2)
        size = self._int(1, 3)
        self._members(size, priority="mid", of_pods=self._chance.choice(("mid", "high", "low")))

    def _shared_devices(self) -> None:
        """One claim for all members, named by the group or by its pods alone; devices on some of the nodes."""
        n_nodes = self._int(2, 3)
        self._nodes(n_nodes, cpu=4)
        first = self._steps[0].created
        for number in range(n_nodes):
            if number == 0 or self._chance.random() < 0.5:
                first.append(self._slice(f"{self._name}-{number}", self._int(1, 2)))
        first.append(self._claim("shared", self._int(1, 2)))
        size = self._int(2, 5)
        entry = {"name": "devices", "resourceClaimName": "shared"}
        self._members(size)
        for one in self._steps[1].created:
            if one["kind"] == "Pod":
                one["spec"]["resourceClaims"] = [entry]
                one["spec"]["containers"][0]["resources"]["claims"] = [{"name": "devices"}]
            elif self._chance.random() < 0.7:
                one["spec"]["resourceClaims"] = [entry]

    # -- the same with more that plays a part --------------------------------------------------------------------------

    def _several_gangs(self) -> None:
        """One after the other, of different sizes, more pods than room; some need fewer than they have."""
        n_nodes = self._int(2, 4)
        self._nodes(n_nodes, cpu=2)
        for name, kind in (("g", "m"), ("h", "n"), ("i", "o")):
            size = self._int(1, 4)
            created = self._steps[-1].created
            created.append(self._group(name, self._int(1, size)))
            created += [self._pod(kind, number, group=name) for number in range(size)]
            self._steps.append(Step())

    def _closed_nodes(self) -> None:
        """Some nodes have a taint, which some of the members tolerate; others may only go to some of the nodes."""
        n_nodes = self._int(2, 4)
        self._nodes(n_nodes, cpu=2)
        nodes = [one for one in self._steps[0].created if one["kind"] == "Node"]
        self._close(nodes[: self._int(1, n_nodes - 1)])
        nodes[-1]["metadata"]["labels"]["disk"] = "ssd"
        self._members(self._int(2, 5))
        self._let_some_in(tolerate=True, select=self._chance.random() < 0.4)

    def _of_two_sizes(self) -> None:
        """Larger members are of higher priority, so that they come first."""
        self._nodes(self._int(2, 3), cpu=4)
        self._others(self._int(0, 3))
        large, small = self._int(1, 2), self._int(1, 4)
        created = self._steps[1].created
        created.append(self._group("g", self._int(1, large + small)))
        created += [self._pod("n", number, group="g", cpu="3", priority="high") for number in range(large)]
        created += [self._pod("m", number, group="g", cpu="1", priority="mid") for number in range(small)]

    def _leaves(self) -> None:
        """What waits is deleted: a member, the group, or all; and perhaps comes again."""
        self._nodes(2, cpu=2)
        size = self._int(3, 5)
        self._members(size, minimum=self._chance.choice((size, max(size, 5))))
        self._steps.append(Step(deleted=[f"m-{number}" for number in range(self._int(1, size))]))
        if self._chance.random() < 0.6:
            self._steps.append(Step([self._pod("n", number, group="g") for number in range(self._int(1, 3))]))

    def _in_waves(self) -> None:
        """Members come in three steps; with the second or the third there are enough, or never."""
        self._nodes(self._int(2, 3), cpu=2)
        self._members(self._int(1, 2), minimum=self._int(3, 6))
        for kind in ("n", "o"):
            self._steps.append(Step([self._pod(kind, number, group="g") for number in range(self._int(1, 3))]))

    def _uneven_racks(self) -> None:
        """Racks of different sizes, of nodes of different sizes, some of them partly taken."""
        created = self._steps[0].created
        for rack in range(self._int(2, 4)):
            for number in range(self._int(1, 3)):
                created.append(self._node(f"{rack}-{number}", self._int(1, 4), f"r{rack}"))
        nodes = [one["metadata"]["name"] for one in created]
        for number, name in enumerate(self._chance.sample(nodes, self._int(0, len(nodes)))):
            pod = self._pod("f", number)
            pod["spec"]["nodeSelector"][HOSTNAME] = name
            created.append(pod)
        self._members(self._int(2, 7), rack=True)

    def _several_on_racks(self) -> None:
        """One after the other; those that come last may find no rack."""
        self._racked_nodes(cpu=2)
        for name, kind in (("g", "m"), ("h", "n"), ("i", "o")):
            size = self._int(1, 4)
            created = self._steps[-1].created
            created.append(self._group(name, self._int(1, size), rack=True))
            created += [self._pod(kind, number, group=name) for number in range(size)]
            self._steps.append(Step())

    def _rack_is_freed(self) -> None:
        """All racks are full; then the pods of one of them go."""
        created, full = self._steps[0].created, list[tuple[int, str]]()
        n_racks, per_rack = self._int(1, 3), self._int(1, 2)
        for rack in range(n_racks):
            for number in range(per_rack):
                node = self._node(f"{rack}-{number}", 2, f"r{rack}")
                pod = self._pod("f", len(full), cpu="2")
                pod["spec"]["nodeSelector"][HOSTNAME] = node["metadata"]["name"]
                created += [node, pod]
                full.append((rack, pod["metadata"]["name"]))
        size = self._int(1, 2 * per_rack)
        self._members(size, minimum=size, rack=True)
        freed = self._int(0, n_racks - 1)
        self._steps.append(Step(deleted=[name for rack, name in full if rack == freed]))

    def _closed_racks(self) -> None:
        self._racked_nodes()
        nodes = [one for one in self._steps[0].created if one["kind"] == "Node"]
        self._close(self._chance.sample(nodes, self._int(1, len(nodes))))
        self._members(self._int(2, 4), rack=True)
        self._let_some_in(tolerate=self._chance.random() < 0.7, select=False)

    def _guarded_groups(self) -> None:
        """Groups of both modes under a budget."""
        self._nodes(self._int(2, 3), cpu=2)
        first = self._steps[0].created
        for name, kind in (("v", "low"), ("w", "mid")):
            size = self._int(1, 3)
            first.append(self._group(name, size, priority=kind, mode=self._chance.choice(("Pod", "PodGroup"))))
            first += [self._pod(kind, number, group=name, priority=kind) for number in range(size)]
        first.append(self._disruption_budget(self._chance.choice(("low", "mid")), allowed=self._int(0, 1)))
        self._members(self._int(1, 4), priority="high")

    def _evicts_behind_taints(self) -> None:
        n_nodes = self._int(2, 3)
        self._nodes(n_nodes, cpu=2)
        self._victims("low", self._int(2, 2 * n_nodes))
        closed = [one for one in self._steps[0].created if one["kind"] == "Node"][: self._int(1, n_nodes)]
        for pod in self._steps[0].created:
            if pod["kind"] == "Pod":
                pod["spec"]["tolerations"] = [{"operator": "Exists"}]
        self._close(closed)
        self._members(self._int(1, 4), priority="high")
        self._let_some_in(tolerate=self._chance.random() < 0.5, select=False)

    def _two_evict(self) -> None:
        """A second group of the same or a higher priority comes when the first has evicted whom it could."""
        self._nodes(self._int(2, 3), cpu=2)
        self._victims("low", self._int(3, 6))
        self._members(self._int(1, 3), priority="mid")
        size, priority = self._int(1, 3), self._chance.choice(("mid", "high"))
        late: list[Manifest] = [self._group("h", size, priority=priority)]
        self._steps.append(Step([*late, *(self._pod("n", one, group="h", priority=priority) for one in range(size))]))

    def _grows(self) -> None:
        """A bound group gets another member, for which somebody would have to leave."""
        self._nodes(2, cpu=2)
        self._victims("low", self._int(1, 3))
        size = self._int(1, 2)
        self._members(size, minimum=size, priority="high")
        self._steps.append(Step([self._pod("n", one, group="g", priority="high") for one in range(self._int(1, 2))]))

    def _devices_of_two(self) -> None:
        """Two groups with a claim each, and devices for one or both."""
        self._nodes(2, cpu=4)
        first = self._steps[0].created
        first += [self._slice(f"{self._name}-{number}", 1) for number in range(self._int(1, 2))]
        for name, kind in (("g", "m"), ("h", "n")):
            size = self._int(1, 3)
            first.append(self._claim(f"of-{name}", 1))
            entry = {"name": "devices", "resourceClaimName": f"of-{name}"}
            group = self._group(name, size)
            group["spec"]["resourceClaims"] = [entry]
            pods = [self._pod(kind, number, group=name) for number in range(size)]
            for pod in pods:
                pod["spec"]["resourceClaims"] = [entry]
                pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "devices"}]
            self._steps[-1].created += [group, *pods]
            self._steps.append(Step())

    def _evicts_beside_racks(self) -> None:
        """A group with a constraint, which evicts nobody, and one without, which does."""
        self._racked_nodes(cpu=2)
        self._victims("low", self._int(2, 6))
        self._members(self._int(1, 3), priority="high", rack=True)
        size = self._int(1, 3)
        late = [self._pod("n", number, group="h", priority="high") for number in range(size)]
        self._steps.append(Step([self._group("h", size, priority="high"), *late]))

    # -- their parts ---------------------------------------------------------------------------------------------------

    def _int(self, low: int, high: int) -> int:
        return self._chance.randint(low, high)

    def _nodes(self, count: int, cpu: int = 0) -> int:
        cpu = cpu or self._chance.choice((2, 4))
        self._steps[0].created += [self._node(str(number), cpu, "r0") for number in range(count)]
        return cpu

    def _racked_nodes(self, cpu: int = 0) -> int:
        cpu = cpu or self._chance.choice((2, 4))
        for rack in range(self._int(1, 3)):
            nodes = [self._node(f"{rack}-{number}", cpu, f"r{rack}") for number in range(self._int(1, 3))]
            self._steps[0].created += nodes
        if self._chance.random() < 0.3:
            self._steps[0].created.append(self._node("out", cpu, ""))
        return cpu

    def _close(self, nodes: Sequence[Manifest]) -> None:
        for node in nodes:
            node["spec"] = {"taints": [{"key": "closed", "effect": "NoSchedule"}]}

    def _let_some_in(self, *, tolerate: bool, select: bool) -> None:
        """All members may go where a taint is, if they are to tolerate it; the first only to nodes with a fast disk."""
        members = [one for one in self._steps[1].created if one["kind"] == "Pod"]
        for number, pod in enumerate(members):
            if tolerate:
                pod["spec"]["tolerations"] = [{"key": "closed", "operator": "Exists"}]
            if select and number == 0:
                pod["spec"]["nodeSelector"]["disk"] = "ssd"
                pod["spec"]["priorityClassName"] = "high"  # it comes first

    def _others(self, count: int, cpu: str = "1") -> None:
        self._steps[0].created += [self._pod("f", number, cpu=cpu) for number in range(count)]

    def _victims(self, kind: str, count: int) -> None:
        self._steps[0].created += [self._pod(kind, number, priority=kind) for number in range(count)]

    def _members(
        self,
        count: int,
        *,
        minimum: int = 0,
        cpu: str = "1",
        apart: bool = False,
        rack: bool = False,
        priority: str = "",
        of_pods: str = "",
    ) -> None:
        """With their group, which comes before or after them; it needs some of them, or is no gang."""
        chance = self._chance
        least: int | None = minimum or chance.choice((count, count, self._int(1, count), None))
        group = self._group("g", least, rack=rack, priority=priority, mode="Pod")
        pods = [
            self._pod("m", number, group="g", cpu=cpu, apart=apart, priority=of_pods or priority)
            for number in range(count)
        ]
        self._steps[1].created += [group, *pods] if chance.random() < 0.5 else [*pods, group]

    def _meta(self, name: str, **more: Any) -> Manifest:
        return {"name": name, "labels": {SCENARIO: self._name, **more}}

    def _node(self, name: str, cpu: int, rack: str) -> Manifest:
        whole = f"{self._name}-{name}"
        amounts = {"cpu": str(cpu), "memory": "16Gi", "pods": "20"}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": self._meta(whole, **{HOSTNAME: whole}, **({rack_key(self._name): rack} if rack else {})),
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }

    def _pod(
        self, kind: str, number: int, *, group: str = "", cpu: str = "1", priority: str = "", apart: bool = False
    ) -> Manifest:
        requests = {"cpu": cpu, "memory": "100Mi"}
        spec: Manifest = {
            "nodeSelector": {SCENARIO: self._name},
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}],
        }
        if group:
            spec["schedulingGroup"] = {"podGroupName": group}
        if priority:
            spec["priorityClassName"] = priority
        if apart:
            term = {"labelSelector": {"matchLabels": {"app": kind}}, "topologyKey": HOSTNAME}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        metadata = self._meta(f"{kind}-{number}", app=kind)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _group(
        self, name: str, least: int | None, *, rack: bool = False, priority: str = "", mode: str = "Pod"
    ) -> Manifest:
        spec: Manifest = {"schedulingPolicy": {"basic": {}} if least is None else {"gang": {"minCount": least}}}
        if rack:
            spec["schedulingConstraints"] = {"topology": [{"key": rack_key(self._name)}]}
        if priority:
            spec["priorityClassName"] = priority
        if mode != "Pod":
            spec["disruptionMode"] = mode
        return {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": self._meta(name),
            "spec": spec,
        }

    def _disruption_budget(self, guarded: str, allowed: int) -> Manifest:
        counts = {"disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 2 - allowed, "expectedPods": 2}
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": self._meta("budget"),
            "spec": {"maxUnavailable": allowed, "selector": {"matchLabels": {"app": guarded}}},
            "status": counts,
        }

    def _slice(self, node: str, n_devices: int) -> Manifest:
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": self._meta(node),
            "spec": {
                "driver": DRIVER,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"device-{number}"} for number in range(n_devices)],
            },
        }

    def _claim(self, name: str, count: int) -> Manifest:
        request = {"name": "devices", "exactly": {"deviceClassName": DEVICE_CLASS, "count": count}}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": self._meta(name),
            "spec": {"devices": {"requests": [request]}},
        }
