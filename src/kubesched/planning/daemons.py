"""The daemons of a node that is not there yet: what DaemonSets would put on it."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.model.apps import DaemonSet
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.workloads.daemon_sets import DaemonRules, tied_to_node, with_daemon_tolerations
from kubesched.k8s.workloads.templates import EMPTY_TEMPLATE, pod_from_template


def daemons_for(node: Node, workloads: Iterable[KubeObject]) -> list[Pod]:
    """By the rules of the DaemonSet controller; an API server has yet to complete them."""
    found = []
    for owner in workloads:
        if isinstance(owner, DaemonSet):
            template = owner.spec.template or EMPTY_TEMPLATE
            spec = with_daemon_tolerations(template.spec)
            if DaemonRules.of(spec).should_run_on(node):
                name = f"{owner.name}-on-{node.name}"[:253]
                found.append(pod_from_template(template, owner, name, spec=tied_to_node(spec, node.name)))
    return found
