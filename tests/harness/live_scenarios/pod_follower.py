"""Follows the pods of one namespace by a watch, and remembers what a look at the end could not tell: when a pod was
bound, to how many nodes, and which conditions it ever had.

Next: `site`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kubesched.k8s.client.list_watch import Informers, InformerSettings
from kubesched.k8s.client.list_watch.exchange import ListOptions
from kubesched.k8s.client.resources import resource_of
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.model.core import Pod, PodCondition
from kubesched.k8s.model.meta import KubeObject


@dataclass(slots=True)
class FollowedPod:
    name: str
    sent_at_s: float
    """When its creation was sent."""
    pod: Pod | None = None
    """As last seen, also when it is gone."""
    bound_at_s: float | None = None
    nodes: set[str] = field(default_factory=set)
    conditions: list[PodCondition] = field(default_factory=list)
    """All that were ever seen, the latest last."""
    is_gone: bool = False

    @property
    def is_bound(self) -> bool:
        return self.bound_at_s is not None

    @property
    def node_name(self) -> str:
        return "" if self.pod is None else self.pod.spec.node_name

    def had(self, condition_type: str, status: str) -> list[PodCondition]:
        return [one for one in self.conditions if (one.type, one.status) == (condition_type, status)]


class PodFollower:
    def __init__(self, client: RestClient, namespace: str) -> None:
        options = ListOptions(namespace=namespace)
        self._informers = Informers(client, [resource_of(Pod)], InformerSettings(list_options={Pod: options}))
        self._informers.add_handler(self)
        self._changed = asyncio.Event()
        self._followed: dict[str, FollowedPod] = {}
        self.n_bound = 0

    async def start(self) -> None:
        self._informers.start()
        await self._informers.wait_for_sync("the scenario")

    async def stop(self) -> None:
        await self._informers.stop()

    def expect(self, name: str) -> None:
        """It is about to be created."""
        self._followed[name] = FollowedPod(name, time.monotonic())

    def __getitem__(self, name: str) -> FollowedPod:
        return self._followed[name]

    def __iter__(self) -> Iterator[FollowedPod]:
        return iter(self._followed.values())

    async def until(self, condition: Callable[[], object], within_s: float) -> bool:
        try:
            async with asyncio.timeout(within_s):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def describe(self) -> str:
        """How far it is, and what one of those that wait is told."""
        waiting = [one for one in self if not one.is_bound and not one.is_gone]
        text = f"{self.n_bound} of {len(self._followed)} pods were bound"
        if not waiting:
            return text
        told = [one.message for one in waiting[0].conditions]
        return f"{text}, {waiting[0].name} was not" + (f": {told[-1]}" if told else "")

    # -- for the informer ----------------------------------------------------------------------------------------------

    def put(self, item: KubeObject) -> None:
        assert isinstance(item, Pod)
        known = self._followed.get(item.metadata.name)
        if known is None:
            return
        known.pod = item
        node_name = item.spec.node_name
        if node_name:
            known.nodes.add(node_name)
            if known.bound_at_s is None:
                known.bound_at_s = time.monotonic()
                self.n_bound += 1
        known.conditions += [one for one in item.status.conditions or () if one not in known.conditions]
        self._changed.set()

    def remove(self, item: KubeObject) -> None:
        self.put(item)
        known = self._followed.get(item.metadata.name)
        if known is not None:
            known.is_gone = True
