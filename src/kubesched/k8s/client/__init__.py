"""Any API server: kubeconfig and authentication, REST, informers, leases, events. Knows objects, not scheduling.

    from kubesched.k8s.client import Informers, RestClient, load_target

A library of its own: docs/guides/write-a-controller.md shows how it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesched.k8s.client.errors import REQUEST_FAILURES, AnswerLost, ApiError, ClientConfigError, Unreachable
    from kubesched.k8s.client.kubeconfig import load_target
    from kubesched.k8s.client.list_watch import EventHandlerFuncs, Informers, InformerSettings, ListOptions
    from kubesched.k8s.client.requester import APPLY_PATCH, MERGE_PATCH, STRATEGIC_PATCH
    from kubesched.k8s.client.resources import Resource
    from kubesched.k8s.client.rest import RestClient
    from kubesched.k8s.client.target import ServerTarget
    from kubesched.k8s.client.work_queue import WorkQueue

__all__ = [
    "APPLY_PATCH",
    "MERGE_PATCH",
    "REQUEST_FAILURES",
    "STRATEGIC_PATCH",
    "AnswerLost",
    "ApiError",
    "ClientConfigError",
    "EventHandlerFuncs",
    "InformerSettings",
    "Informers",
    "ListOptions",
    "Resource",
    "RestClient",
    "ServerTarget",
    "Unreachable",
    "WorkQueue",
    "load_target",
]

_HOMES = {
    "APPLY_PATCH": "requester",
    "MERGE_PATCH": "requester",
    "REQUEST_FAILURES": "errors",
    "STRATEGIC_PATCH": "requester",
    "AnswerLost": "errors",
    "ApiError": "errors",
    "ClientConfigError": "errors",
    "EventHandlerFuncs": "list_watch",
    "InformerSettings": "list_watch",
    "Informers": "list_watch",
    "ListOptions": "list_watch",
    "Resource": "resources",
    "RestClient": "rest",
    "ServerTarget": "target",
    "Unreachable": "errors",
    "WorkQueue": "work_queue",
    "load_target": "kubeconfig",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for, when it is asked for: who needs one module does not load all."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
