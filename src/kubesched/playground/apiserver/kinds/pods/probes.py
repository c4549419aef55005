"""What is wrong with probes and lifecycle hooks."""

from __future__ import annotations

import re
from typing import Any

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.name_syntax import port_name_errors, port_number_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_HEADER = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    "regex used for validation is '[-A-Za-z0-9]+')"
)
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SECONDS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def probe_errors(probe: Object, path: str, must_succeed_once: bool) -> list[InvalidField]:
    found = hook_errors(probe, path)
    found += [
        errors.invalid(f"{path}.{name}", probe[name], "must be greater than or equal to 0")
        for name in _SECONDS
        if probe.get(name, 0) < 0
    ]
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        found.append(errors.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    if must_succeed_once and probe["successThreshold"] != 1:
        found.append(errors.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))
    return found


def hook_errors(handler: Object, path: str) -> list[InvalidField]:
    given = [name for name in _HANDLERS if name in handler]
    if not given:
        return [errors.required(path, "must specify a handler type")]
    found = _action_errors(given[0], handler[given[0]], f"{path}.{given[0]}")
    return found + [
        errors.forbidden(f"{path}.{name}", "may not specify more than 1 handler type") for name in given[1:]
    ]


def _action_errors(sort: str, action: Object, path: str) -> list[InvalidField]:
    if sort == "exec":
        return [] if action.get("command") else [errors.required(f"{path}.command")]
    if sort == "grpc":
        port = action.get("port", 0)
        return errors.all_invalid(f"{path}.port", port, port_number_errors(port))
    if sort == "sleep":
        return []
    found = port_or_name_errors(action.get("port", 0), f"{path}.port")
    if sort == "httpGet":
        found += [
            errors.invalid(f"{path}.httpHeaders", header.get("name", ""), _HEADER)
            for header in (action.get("httpHeaders") or [])
            if not re.fullmatch("[-A-Za-z0-9]+", header.get("name", ""))
        ]
    if sort == "httpGet" and action.get("scheme") not in ("HTTP", "HTTPS"):
        found.append(errors.unsupported(f"{path}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS")))
    return found


def port_or_name_errors(port: Any, path: str) -> list[InvalidField]:
    problems = port_number_errors(port) if isinstance(port, int) else port_name_errors(port)
    return errors.all_invalid(path, port, problems)
