"""How two pod specs differ, as the API server tells it: by the lines of their internal form.

There host namespaces lie within the security context.
"""

from __future__ import annotations

from kubesched.playground.apiserver.kinds.internal_form import internal_form, line_difference
from kubesched.playground.apiserver.served_resource import Object

_HOST_FIELDS = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


def spec_difference(old: Object, new: Object) -> str:
    return line_difference(internal_spec(old), internal_spec(new))


def internal_spec(spec: Object) -> Object:
    moved = {name: spec[name] for name in _HOST_FIELDS if name in spec}
    context = {**spec.get("securityContext", {}), **moved}
    return internal_form({**spec, "securityContext": context}, "PodSpec")
