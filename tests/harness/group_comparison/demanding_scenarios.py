"""Scenarios whose members demand more than room: host ports, to be spread, volumes, each other; and how all are drawn.

Next: `playing`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from harness.group_comparison.composite_scenarios import CompositeDraw
from harness.group_comparison.scenarios import HOSTNAME, Manifest, Scenario, Step, rack_key


def draw(set_name: str, count: int, seed: int) -> list[Scenario]:
    """The same for the same arguments."""
    return [
        DemandingDraw(f"{set_name}{number:02d}", random.Random(f"{seed}/{set_name}/{number}")).of(set_name)
        for number in range(count)
    ]


class DemandingDraw(CompositeDraw):
    def kinds(self) -> dict[str, Sequence[Callable[[], None]]]:
        return {
            **super().kinds(),
            "demands": (
                self._ports, self._ports, self._spread, self._spread, self._spread_in_racks, self._volume, self._volume,
                self._together, self._beside_others, self._two_with_ports, self._ports_are_freed,
            ),
        }  # fmt: skip

    def _ports(self) -> None:
        """Some or all members want the same port of their node."""
        self._nodes(self._int(2, 4), cpu=4)
        self._others(self._int(0, 3))
        self._members(self._int(2, 6), rack=self._chance.random() < 0.3)
        self._want_port(self._pods()[: self._int(1, 6)])

    def _spread(self) -> None:
        self._nodes(self._int(2, 4), cpu=self._chance.choice((1, 2, 4)))
        self._others(self._int(0, 2))
        self._members(self._int(2, 6))
        self._be_spread(HOSTNAME)

    def _spread_in_racks(self) -> None:
        """Over racks, or over the nodes of one."""
        self._racked_nodes(cpu=2)
        is_in_one = self._chance.random() < 0.5
        self._members(self._int(2, 5), rack=is_in_one)
        self._be_spread(HOSTNAME if is_in_one else rack_key(self._name))

    def _volume(self) -> None:
        """All use one claim, whose volume is on some of the nodes; or only one pod at a time may use it."""
        n_nodes = self._int(2, 4)
        self._nodes(n_nodes, cpu=2)
        reachable = [f"{self._name}-{number}" for number in range(self._int(1, n_nodes))]
        mode = self._chance.choice(("ReadWriteMany", "ReadWriteMany", "ReadWriteOncePod"))
        self._steps[0].created += self._bound_claim("shared", reachable, mode)
        self._members(self._int(2, 5))
        for pod in self._pods():
            pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}]

    def _together(self) -> None:
        """Members must be where another one is."""
        self._racked_nodes(cpu=2)
        self._members(self._int(2, 5))
        term = {"labelSelector": {"matchLabels": {"app": "m"}}, "topologyKey": rack_key(self._name)}
        for pod in self._pods():
            pod["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    def _beside_others(self) -> None:
        """Members keep away from pods that are there, or these from members."""
        self._nodes(self._int(2, 4), cpu=4)
        self._others(self._int(1, 3))
        self._members(self._int(1, 4))
        others = [one for one in self._steps[0].created if one["kind"] == "Pod"]
        who, whom = (self._pods(), "f") if self._chance.random() < 0.5 else (others, "m")
        term = {"labelSelector": {"matchLabels": {"app": whom}}, "topologyKey": HOSTNAME}
        for pod in who:
            pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    def _two_with_ports(self) -> None:
        """A second gang wants the port that the first has taken."""
        self._nodes(self._int(2, 4), cpu=4)
        self._members(self._int(1, 3))
        self._want_port(self._pods())
        size = self._int(1, 3)
        late = [self._pod("n", number, group="h") for number in range(size)]
        self._want_port(late)
        self._steps.append(Step([self._group("h", self._int(1, size)), *late]))

    def _ports_are_freed(self) -> None:
        n_nodes = self._int(1, 3)
        self._nodes(n_nodes, cpu=4)
        self._others(n_nodes)
        self._want_port([one for one in self._steps[0].created if one["kind"] == "Pod"])
        size = self._int(1, n_nodes)
        self._members(size, minimum=size)
        self._want_port(self._pods())
        self._steps.append(Step(deleted=[f"f-{number}" for number in range(self._int(1, n_nodes))]))

    # -- their parts ---------------------------------------------------------------------------------------------------

    def _pods(self) -> list[Manifest]:
        """The members."""
        return [one for one in self._steps[1].created if one["kind"] == "Pod"]

    def _want_port(self, pods: Sequence[Manifest]) -> None:
        for pod in pods:
            pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]

    def _be_spread(self, key: str) -> None:
        constraint = {
            "maxSkew": self._int(1, 2),
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "m"}},
        }
        for pod in self._pods():
            pod["spec"]["topologySpreadConstraints"] = [constraint]

    def _bound_claim(self, name: str, nodes: Sequence[str], mode: str) -> list[Manifest]:
        volume = f"{self._name}-{name}"
        selected = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": list(nodes)}]}
        size = {"storage": "1Gi"}
        done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        return [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": self._meta(volume),
                "spec": {
                    "capacity": size,
                    "accessModes": [mode],
                    "local": {"path": "/data"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [selected]}},
                    "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": name},
                },
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {**self._meta(name), **done},
                "spec": {
                    "accessModes": [mode],
                    "resources": {"requests": size},
                    "storageClassName": "",
                    "volumeName": volume,
                },
            },
        ]
