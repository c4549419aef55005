"""Cluster roles that are made of others: the rules of all that their selectors choose, joined.

So `view`, `edit` and `admin` take in what somebody labels for them. Every change of a cluster role makes all aggregated
ones be looked at again: one may be part of another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubesched.k8s.model import selectors
from kubesched.k8s.model.meta import KubeObject
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.kinds import ClusterRole


class RoleAggregationController:
    """Keys are names of cluster roles."""

    name = "clusterrole-aggregation-controller"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if not isinstance(before if after is None else after, ClusterRole):
            return ()
        return [key for key, role in self._context.view.of(ClusterRole).items() if role.aggregation_rule is not None]

    async def reconcile(self, key: str) -> float | None:
        role = self._context.view.find(ClusterRole, key)
        if role is None or role.aggregation_rule is None:
            return None
        rules = self._joined(role)
        if rules != list(role.rules or ()):
            version = role.metadata.resource_version
            await self._context.writer.patch(role, {"metadata": {"resourceVersion": version}, "rules": rules})
        return None

    def _joined(self, role: ClusterRole) -> list[dict[str, Any]]:
        """In the order of the selectors, then of the names; no rule twice."""
        assert role.aggregation_rule is not None
        found: list[dict[str, Any]] = []
        others = sorted(self._context.view.of(ClusterRole).values(), key=lambda other: other.name)
        for label_selector in role.aggregation_rule.cluster_role_selectors or ():
            chosen = selectors.from_label_selector(label_selector)
            for other in others:
                if other.name == role.name or not chosen.matches(other.metadata.labels or {}):
                    continue
                found.extend(rule for rule in other.rules or () if rule not in found)
        return found
