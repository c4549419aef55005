"""A scenario file: kind `Scenario`, API version `kubesched.dev/v1alpha1`, a list of events with their times.

Next: `reading`, which checks one.
"""

from __future__ import annotations

from typing import Any

from kubesched.k8s.model.core import NodeSpec, NodeStatus
from kubesched.k8s.model.meta import KubeObject, KubeStruct, ObjectMeta

SCENARIO_GROUP = "kubesched.dev"
SCENARIO_VERSION = f"{SCENARIO_GROUP}/v1alpha1"

OneOrMore = str | tuple[str, ...]


class NodeTemplate(KubeStruct, frozen=True, forbid_unknown_fields=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NodeBatch(KubeStruct, frozen=True, forbid_unknown_fields=True):
    """So many nodes alike; they are numbered on from the template's name."""

    template: NodeTemplate
    count: int = 1


class ObjectName(KubeStruct, frozen=True, forbid_unknown_fields=True):
    kind: str
    name: str
    namespace: str = ""


class ScenarioEvent(KubeStruct, frozen=True, forbid_unknown_fields=True):
    """One thing that happens at a time. Exactly one of the fields beside `at` is set."""

    at: str
    add_nodes: NodeBatch | None = None
    drain: OneOrMore | None = None
    cordon: OneOrMore | None = None
    uncordon: OneOrMore | None = None
    fail: OneOrMore | None = None
    recover: OneOrMore | None = None
    apply: tuple[dict[str, Any], ...] | None = None
    delete: tuple[ObjectName, ...] | None = None


class Scenario(KubeObject, frozen=True, forbid_unknown_fields=True):
    api_version: str = ""
    kind: str = ""
    events: tuple[ScenarioEvent, ...] = ()
