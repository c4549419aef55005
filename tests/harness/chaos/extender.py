"""An extender that lets every node pass, likes some more than others, and binds through the API server if it is to.

What makes it hard to live with is the way to it: calls are requests on the wire like any other, and may be slow, fail
or time out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import msgspec

from kubesched.framework.effects import BindPod, CallExtender, Failed, FindOut
from kubesched.k8s.model.meta import PodKey

Bind = Callable[[BindPod], object]

_BIND = "bind"

BOUND_BY_EXTENDER = b"{}"
"""The answer to a call that bound a pod."""


def extender_settings(*, binds: bool) -> dict[str, Any]:
    """Its entry in the scheduler's configuration."""
    verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize"}
    if binds:
        verbs["bindVerb"] = _BIND
    return {"urlPrefix": "http://extender.example", "weight": 1, "nodeCacheCapable": True, **verbs}


def answer_call(call: CallExtender, bind: Bind) -> object:
    said = msgspec.json.decode(call.body)
    if call.verb == _BIND:
        binding = binding_in(call)
        assert binding is not None
        answer = bind(binding)
        return _encoded({"Error": answer.message}) if isinstance(answer, Failed) else BOUND_BY_EXTENDER
    names = said["NodeNames"]
    if call.verb == "filter":
        return _encoded({"NodeNames": names})
    return _encoded([{"Host": name, "Score": crc32(f"{name} {pod_name_in(call)}".encode()) % 11} for name in names])


def binding_in(action: object) -> BindPod | None:
    """The binding that an action asks for, or asks about, be it of the API server or of the extender."""
    if isinstance(action, BindPod):
        return action
    if isinstance(action, FindOut):
        return binding_in(action.action)
    if not isinstance(action, CallExtender) or action.verb != _BIND:
        return None
    said = msgspec.json.decode(action.body)
    return BindPod(PodKey(f"{said['PodNamespace']}/{said['PodName']}"), said["PodUID"], said["Node"])


def pod_name_in(call: CallExtender) -> str:
    said = msgspec.json.decode(call.body)
    name: str = said["PodName"] if call.verb == _BIND else said["Pod"]["metadata"]["name"]
    return name


def _encoded(answer: object) -> bytes:
    return msgspec.json.encode(answer)
