"""Part of a handle for tests of plugins: no pod waits at permit, and asking for another attempt comes to nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubesched.framework.handle import HeldPod
from kubesched.framework.pod_info import PodInfo


class QuietHandle:
    """Inherit it, and add what the plugin looks at."""

    def waiting_pods(self) -> Sequence[HeldPod]:
        return ()

    def allow(self, uid: str, plugin_name: str) -> bool:
        return False

    def reject(self, uid: str, plugin_name: str, message: str) -> bool:
        return False

    def activate(self, pods: Iterable[PodInfo]) -> None:
        pass
