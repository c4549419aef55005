"""What happens when: pods of all kinds come and go, nodes change; then there are more pods than room."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from harness.agreement.cluster import Nodes, Server, accounts, fixtures, path_of
from harness.agreement.pods import N_APPS, PRIORITIES, PodMaker, Wanted
from harness.agreement.stand_ins import PodStates

_FIRST_LOOK_S = 0.05
_MOST_UNTRIED = 25
"""So many pods may wait for their first try: the scheduler that is compared with sets the pace."""
_MOST_WAITING = 60
"""So many may wait in vain; then the oldest are given up."""
_FULL = 0.45
"""Of the pods that are made in the first part, so many stay for it."""


class Workload:
    """`tell` hears how far it is. Everything is decided by `seed`, except when it happens."""

    def __init__(self, server: Server, *, n_nodes: int, n_bindings: int, rate: float, seed: int) -> None:
        self._server = server
        self._n_nodes = n_nodes
        self._n_bindings = n_bindings
        self._rate = rate
        self._dice = Random(seed)
        self.states = PodStates(server, Random(seed + 1))
        self.nodes = Nodes(server, Random(seed + 2))
        self._maker = PodMaker(Random(seed + 3), lambda: self.nodes.names)
        self._made: list[Wanted] = []

    async def prepare(self) -> None:
        for manifest in fixtures():
            await self._server.create(manifest)
        await self._server.create_all(accounts())
        await self.nodes.add(self._n_nodes)

    async def run(self, tell: Callable[[str], None]) -> None:
        """Two thirds of the bindings with room for everybody, one third without."""
        self.states.informers.start()
        await self.states.informers.wait_for_sync("agreement")
        working = asyncio.create_task(self.states.later.run())
        try:
            await self._mixed(self._n_bindings * 2 // 3)
            tell(f"{self.states.n_bound} bound, {self.nodes.n_changes} changes of nodes; now there is no more room")
            await self._overfull(self._n_bindings)
            await self._settle()
            tell(f"{self.states.n_bound} bound, {self.states.n_nominated} nominated, {self.states.n_gone} gone")
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            await self.states.informers.stop()

    # -- parts ---------------------------------------------------------------------------------------------------------

    async def _mixed(self, n_bindings: int) -> None:
        while self.states.n_bound < n_bindings:
            await self._make(self._maker.make())
            chance = self._dice.random()
            if chance < 0.55 and len(self.states.bound) > 8 * self._n_nodes * _FULL:
                await self._end_one()
            if chance < 0.04:
                await self.nodes.change_one()
            elif chance < 0.07:
                await self._relabel_one()
            await self._give_up()

    async def _overfull(self, n_bindings: int) -> None:
        """Little ones until nothing fits any more, and then mostly those that have to evict them."""
        names = tuple(PRIORITIES)
        while self.states.n_bound < n_bindings:
            chance = self._dice.random()
            if len(self.states.waiting) < _MOST_WAITING // 3:
                await self._make(self._maker.make("plain", cpu=self._dice.choice(("900m", "1600m")), priority="low"))
            elif chance < 0.6:
                kind = self._dice.choice(("plain", "plain", "node-affinity", "spread-zone", "anti", "port"))
                cpu = self._dice.choice(("700m", "1200m", "2500m"))
                await self._make(self._maker.make(kind, cpu=cpu, priority=self._dice.choice(names[1:])))
            else:
                await self._make(self._maker.make(priority=self._dice.choice((*names, ""))))
            if chance < 0.25:
                await self._end_one()
            if chance > 0.98:
                await self.nodes.change_one()
            await self._give_up()

    async def _settle(self) -> None:
        """Until everybody has been tried."""
        for _ in range(200):
            if not self.states.untried:
                break
            await asyncio.sleep(_FIRST_LOOK_S)
        await asyncio.sleep(3)

    # -- steps ---------------------------------------------------------------------------------------------------------

    async def _make(self, wanted: Wanted) -> None:
        await asyncio.sleep(1 / self._rate)
        while len(self.states.untried) >= _MOST_UNTRIED:
            await asyncio.sleep(_FIRST_LOOK_S)
        made: dict[str, str] = {}
        for manifest in wanted.first:
            if "claimRef" in manifest["spec"]:
                manifest["spec"]["claimRef"] |= made
            made = {"uid": (await self._server.create(manifest))["metadata"]["uid"]}
        await self._server.create(wanted.pod)

    async def _end_one(self) -> None:
        """A pod that runs is deleted."""
        if self.states.bound:
            await self._delete(self._dice.choice(list(self.states.bound)))

    async def _relabel_one(self) -> None:
        if self.states.bound:
            namespace, _, name = self._dice.choice(list(self.states.bound)).partition("/")
            group = {"metadata": {"labels": {"group": f"g{self._dice.randrange(N_APPS)}"}}}
            await self._server.patch(path_of("Pod", name, namespace), group)

    async def _give_up(self) -> None:
        if len(self.states.waiting) > _MOST_WAITING:
            for key in sorted(self.states.waiting, key=lambda key: key.partition("/")[2])[: _MOST_WAITING // 2]:
                await self._delete(key)

    async def _delete(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        await self._server.delete(path_of("Pod", name, namespace))
