"""What the expressions of a policy see of a request, and what evaluating them may cost.

Variables are computed when an expression first asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kubesched.k8s.cel import Expression
from kubesched.k8s.cel.operations import LazyMap
from kubesched.k8s.cel.steps import CostMeter
from kubesched.playground.apiserver.admission.matching import Attributes
from kubesched.playground.apiserver.kinds.kind import Object

COST_BUDGET = 10_000_000
"""What all expressions of a policy together may cost for one request."""

MATCH_BUDGET = 2_500_000
"""What all match conditions of a policy together may cost for one request."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The values that a policy's expressions see for one request, and what they have cost so far."""

    values: Mapping[str, Any]
    meter: CostMeter

    def run(self, expression: Expression) -> object:
        """Raises CelEvaluationError."""
        return expression.evaluate(self.values, self.meter)

    def with_object(self, obj: Object) -> Evaluation:
        """The same after a mutation."""
        return Evaluation({**self.values, "object": obj}, self.meter)


def evaluation(
    request: Attributes, params: Object | None, variables: Mapping[str, Expression], budget: int = COST_BUDGET
) -> Evaluation:
    """What the expressions of a policy see of a request."""
    values: dict[str, Any] = {
        "object": _with_type(request.new, request),
        "oldObject": _with_type(request.old, request),
        "request": _request_object(request),
        "namespaceObject": request.namespace_object if request.resource.namespaced else None,
        "params": params,
    }
    meter = CostMeter(budget)
    values["variables"] = LazyMap(
        {name: partial(compiled.evaluate, values, meter) for name, compiled in variables.items()}
    )
    return Evaluation(values, meter)


def _with_type(obj: Object | None, request: Attributes) -> Object | None:
    if obj is None:
        return None
    return {"apiVersion": request.resource.api_version, "kind": request.resource.kind, **obj}


def _request_object(request: Attributes) -> dict[str, Any]:
    resource, user = request.resource, request.user
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    named = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    extra = {name: list(values) for name, values in user.extra.items()}
    return {
        "kind": kind,
        "resource": named,
        "subResource": request.subresource,
        "requestKind": kind,
        "requestResource": named,
        "requestSubResource": request.subresource,
        "name": request.name,
        "namespace": request.namespace,
        "operation": request.operation,
        "userInfo": {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra},
        "dryRun": request.dry_run,
    }
