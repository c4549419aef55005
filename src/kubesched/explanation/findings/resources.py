"""Behind NodeResourcesFit: of which resources there is not enough, and how much there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubesched.explanation.failing import Failures
from kubesched.explanation.findings.finding import Shortage
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.requests import PODS
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubesched.scheduler.plugins.node_resources_fit.filtering import TOO_MANY_PODS

INSUFFICIENT = "Insufficient "


class ResourceShortages:
    """Shortages by row. `lacking` reads the plugin's own reasons, so that what it ignores is not told as missing."""

    def __init__(
        self, cluster: Cluster, pod: PodInfo, failures: Failures, nominated_pods: Mapping[int, Sequence[PodInfo]]
    ) -> None:
        self._table = cluster.table
        self._nodes = cluster.nodes
        self._wanted = pod.resources.wanted
        self._failures = failures
        self._nominated_pods = nominated_pods

    def of(self, row: int) -> tuple[Shortage, ...]:
        for status in self._failures.statuses(row):
            if status.plugin == NodeResourcesFit.name:
                return tuple(self.shortage(row, resource) for resource in lacking(status.reasons))
        return ()

    def shortage(self, row: int, resource: str) -> Shortage:
        nominated_pods = self._nominated_pods.get(row, ())
        if resource == PODS:
            n_pods = int(self._table.pod_counts.data[row]) + len(nominated_pods)
            allowed = int(self._table.allowed_pods.data[row])
            return Shortage(NodeResourcesFit.name, PODS, 1, n_pods, allowed, len(nominated_pods))
        nominated = sum(nominated_pod.resources.requests.get(resource, 0) for nominated_pod in nominated_pods)
        node = self._nodes.at(row)
        return Shortage(
            NodeResourcesFit.name,
            resource,
            self._wanted.get(resource, 0),
            node.requested(resource) + nominated,
            node.allocatable(resource),
            nominated,
        )


def lacking(reasons: Sequence[str]) -> list[str]:
    """The resources that NodeResourcesFit's reasons speak of; `pods` for their number."""
    found = [PODS] if TOO_MANY_PODS in reasons else []
    found.extend(reason.removeprefix(INSUFFICIENT) for reason in reasons if reason.startswith(INSUFFICIENT))
    return found
