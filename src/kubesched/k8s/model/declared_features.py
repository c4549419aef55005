"""Features that a node must declare before a pod that uses them may go there.

Kubelets list in `status.declaredFeatures` what they can do beyond what every supported kubelet can. Kubernetes 1.36
knows five such features. Two of them follow from a pod's spec and so decide where it may be scheduled; the others
concern changes to pods that already run, or the kubelet alone. None has a last version: each is asked for by every
scheduler of this generation.

Next: `kubesched.scheduler.plugins.node_declared_features`, which holds nodes against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubesched.k8s.model.core import PodSpec


def _restarts_all_containers(spec: PodSpec) -> bool:
    """A container's restart rule may restart the whole pod in place."""
    return any(
        rule.action == "RestartAllContainers"
        for container in (*spec.containers, *(spec.init_containers or ()))
        for rule in container.restart_policy_rules or ()
    )


def _has_user_namespace_on_host_network(spec: PodSpec) -> bool:
    return spec.host_network and spec.host_users is False


def _never(_spec: PodSpec) -> bool:
    """Not a matter of scheduling."""
    return False


DECLARED_FEATURES: Final[Mapping[str, Callable[[PodSpec], bool]]] = {
    "ExtendWebSocketsToKubelet": _never,
    "InPlacePodLevelResourcesVerticalScaling": _never,
    "InPlacePodVerticalScalingInitContainers": _never,
    "RestartAllContainersOnContainerExits": _restarts_all_containers,
    "UserNamespacesHostNetworkSupport": _has_user_namespace_on_host_network,
}
"""The features by name, and whether a pod with this spec needs the feature where it is scheduled."""


def required_features(spec: PodSpec) -> frozenset[str]:
    return frozenset(name for name, is_needed in DECLARED_FEATURES.items() if is_needed(spec))
