"""Filter: extenders are asked one after another, each about the nodes that the ones before left.

Next: `diagnosis` for what the pod is told about the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.k8s.model.core import Node
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.extender import wire
from kubesched.scheduler.engine.extender.http_extender import Consultation, ExtenderError, HTTPExtender, body_of


@dataclass(slots=True)
class ExtenderVerdicts:
    """The nodes that all extenders let pass, and why others did not."""

    names: Sequence[str]
    statuses: dict[str, Status] = field(default_factory=dict)
    """Reasons by node. A node may have been dropped without one."""
    was_asked: bool = False
    """Whether any extender was called: time has passed."""


def ask_to_filter(
    extenders: Sequence[HTTPExtender], cluster: Cluster, pod: PodInfo, names: Sequence[str]
) -> Consultation[ExtenderVerdicts]:
    """Raises ExtenderError when an extender fails that the pod cannot do without."""
    found = ExtenderVerdicts(names)
    for extender in extenders:
        verb = extender.config.filter_verb
        if not verb or not found.names:
            continue
        found.was_asked = True
        nodes = nodes_called(cluster, found.names)
        body = wire.node_args(pod.pod, nodes, names_only=extender.config.node_cache_capable)
        (answer,) = yield [extender.call(verb, body)]
        try:
            result = wire.filter_result(body_of(answer))
            found.names = _passed(extender, result, found.names)
        except ExtenderError:
            if extender.is_ignorable:
                continue
            raise
        found.statuses.update({name: Status.unschedulable(why) for name, why in result.failed.items()})
        found.statuses.update({name: Status.unresolvable(why) for name, why in result.failed_and_unresolvable.items()})
    return found


def nodes_called(cluster: Cluster, names: Sequence[str]) -> list[Node]:
    """Those that are still there."""
    table = cluster.table
    return [table.nodes[row] for name in names if (row := table.rows.get(name)) is not None]


def _passed(extender: HTTPExtender, result: wire.ExtenderFilterResult, sent: Sequence[str]) -> list[str]:
    if result.error:
        raise ExtenderError(result.error)
    known = set(sent)
    if extender.config.node_cache_capable and result.node_names is not None:
        for name in result.node_names:
            if name not in known:
                raise ExtenderError(
                    f'extender "{extender.name}" claims a filtered node "{name}" which is not found in the input '
                    "node list"
                )
        return list(dict.fromkeys(result.node_names))
    return [name for name in dict.fromkeys(result.nodes or ()) if name in known]
