"""Which kinds are read from a server: all that a decision can depend on, and what new pods of a simulation name.

Next: `reader`.
"""

from __future__ import annotations

from kubesched.k8s.client.resources import RESOURCES, Resource
from kubesched.k8s.model.core import Node, Pod, PriorityClass
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import ResourceClaimTemplate

READ_RESOURCES: tuple[Resource, ...] = (
    *RESOURCES,
    Resource(PriorityClass, "scheduling.k8s.io", "v1", "priorityclasses", False),
    Resource(ResourceClaimTemplate, "resource.k8s.io", "v1", "resourceclaimtemplates", True, ("v1beta2",)),
)

INDISPENSABLE: tuple[type[KubeObject], ...] = (Node, Pod)
"""Without these an answer would be about another cluster."""

FIELD_SELECTORS: dict[type[KubeObject], str] = {Pod: "status.phase!=Succeeded,status.phase!=Failed"}
"""Finished pods hold nothing, and there may be many."""

API_VERSIONS: dict[type[KubeObject], str] = {known.type: known.api_version for known in READ_RESOURCES}
