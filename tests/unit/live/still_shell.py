"""A live shell whose clock stands still until it is moved, and whose writes are answered at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from kubesched.framework.effects import BindPod, Done, Effect
from kubesched.k8s.client.list_watch.exchange import SetAside
from kubesched.k8s.model import manifests
from kubesched.live.shell import LiveShell
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import default
from kubesched.scheduler.engine.score import ByName
from kubesched.testing.make import Manifest


class StillShell:
    """`bound` is what was written. A write for the pod `breaks_at` fails in a way that nobody foresaw."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.bound: dict[str, str] = {}
        self.breaks_at = ""
        self.aside = SetAside()
        self.shell = LiveShell(build_loop(default(), ByName()), self, lambda: self.now_s, set_aside=self.aside)

    def send(self, effects: Sequence[Effect], answer: Callable[[int, object], None]) -> None:
        for effect in effects:
            if isinstance(effect.action, BindPod):
                if effect.action.pod == self.breaks_at:
                    raise OSError("no file handles")
                self.bound[effect.action.pod] = effect.action.node_name
                answer(effect.id, Done())

    def resume(self) -> None:
        pass

    def put(self, *items: Manifest) -> None:
        for item in manifests.from_dicts(items).objects:
            self.shell.put(item)

    def forget(self, *items: Manifest) -> None:
        for item in manifests.from_dicts(items).objects:
            self.shell.remove(item)

    def run(self, *items: Manifest, at_s: float = 0.0) -> None:
        """Tells of these, and takes turns until nothing is left to do."""
        self.now_s = at_s
        asyncio.run(self.story(*items))

    async def story(self, *items: Manifest) -> None:
        self.shell.lead()
        self.put(*items)
        for _ in range(20):
            await asyncio.sleep(0)
        self.shell.stop()
