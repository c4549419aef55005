"""All pods that wait, each with its verdict in one line.

Each pod is judged on the cluster as it is: the line says where this pod would go if it were the next one.

Next: `kubesched.explanation`, for the whole story of one pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubesched.explanation.explain import COMPLETE_SEARCH, Explanation, build_cluster, explain_pending
from kubesched.framework.handle import Registry
from kubesched.k8s.model.manifests import Manifests
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.engine.postfilter import for_event
from kubesched.scheduler.engine.score import ByName


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """`node` is where the pod would go, or empty; `text` says so, or why not, in kube-scheduler's words."""

    namespace: str
    name: str
    node: str
    text: str


def judge_pending(
    found: Manifests,
    namespace: str | None,
    config: KubeSchedulerConfiguration,
    source: str = "",
    registry: Registry | None = None,
) -> Iterator[PodVerdict]:
    """The pods of a namespace (or of all) that wait for a node, by name. Those that are being deleted wait for nothing.

    `source` is where the configuration came from, `registry` has the plugins if there are others than the in-tree ones.
    """
    cluster = build_cluster(found)
    schedulers = build_schedulers(
        cluster, config, ByName(), registry=registry, percentage=COMPLETE_SEARCH, source=source
    )
    stand_in = next(iter(schedulers.values()))
    for _, info in sorted(cluster.pending.items()):
        metadata = info.pod.metadata
        if namespace not in (None, metadata.namespace) or info.pod.is_terminating:
            continue
        scheduler = schedulers.get(info.spec.scheduler_name) or stand_in
        yield _verdict(explain_pending(cluster, scheduler, info, config))


def _verdict(explanation: Explanation) -> PodVerdict:
    metadata, decision, gate = explanation.pod.pod.metadata, explanation.decision, explanation.gate
    if gate is not None:
        return PodVerdict(metadata.namespace, metadata.name, "", f"gated: {', '.join(gate.reasons)}")
    assert decision is not None
    node = decision.node_name
    text = f"fits and would go to {node}" if node else for_event(decision.message)
    return PodVerdict(metadata.namespace, metadata.name, node, " ".join(text.split()))
