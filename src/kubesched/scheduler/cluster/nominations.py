"""Which pods are nominated to which node: pods that waited for evictions there, and must not be overtaken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubesched.framework.pod_info import PodInfo
from kubesched.scheduler.cluster.journal import ChangeLog


class Nominations:
    """Nominated pods by node name. A pod is nominated to one node at a time."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self.node_by_uid: dict[str, str] = {}
        """To look at; mostly empty, which is asked for every pod."""
        self.changed: ChangeLog[str] = ChangeLog()
        """The nodes whose nominations changed."""

    def __len__(self) -> int:
        """How many pods are nominated to a node."""
        return len(self.node_by_uid)

    def add(self, info: PodInfo, node_name: str) -> None:
        self.remove(info)
        self._by_node.setdefault(node_name, {})[info.uid] = info
        self.node_by_uid[info.uid] = node_name
        self.changed.append(node_name)

    def remove(self, info: PodInfo) -> None:
        node_name = self.node_by_uid.pop(info.uid, None)
        if node_name is not None:
            del self._by_node[node_name][info.uid]
            if not self._by_node[node_name]:
                del self._by_node[node_name]
            self.changed.append(node_name)

    def on(self, node_name: str) -> Sequence[PodInfo]:
        found = self._by_node.get(node_name)
        return tuple(found.values()) if found else ()

    def node_for(self, info: PodInfo) -> str:
        """The node that the pod is nominated to: by its status, or by what was decided and is perhaps not written yet.
        Empty if there is none."""
        return info.pod.status.nominated_node_name or self.node_by_uid.get(info.uid, "")

    def node_of(self, info: PodInfo) -> str:
        """Empty if the pod is nominated to none."""
        return self.node_by_uid.get(info.uid, "")

    def node_names(self) -> Iterable[str]:
        return self._by_node.keys()

    def has(self, info: PodInfo) -> bool:
        """Whether this pod is nominated to a node."""
        return info.uid in self.node_by_uid
