"""What a pod has when nothing is said: defaults of a pod, and of the pod spec in every template.

``set_pod_defaults`` is for pods only (requests from limits, service links, host ports); ``set_pod_spec_defaults`` for
templates too. Priority, tolerations and the like are set later, by ``admission.py``.
"""

from __future__ import annotations

import re
from typing import Any

from kubesched.k8s.model.requests import container_totals
from kubesched.playground.apiserver.kinds.amounts import is_huge_page, round_up_to_milli
from kubesched.playground.apiserver.kinds.pods.projections import drop_disabled_sources
from kubesched.playground.apiserver.kinds.volume_sources import set_source_defaults
from kubesched.playground.apiserver.openapi.decoding import put_in_order
from kubesched.playground.apiserver.served_resource import Object

_CONTAINER = "io.k8s.api.core.v1.Container"
_CONTAINER_SCHEMAS = {
    "initContainers": _CONTAINER,
    "containers": _CONTAINER,
    "ephemeralContainers": "io.k8s.api.core.v1.EphemeralContainer",
}
POD_SPEC = "io.k8s.api.core.v1.PodSpec"
_PATH_PART = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = rf"{_PATH_PART}(/{_PATH_PART})*"
_DOMAIN_PART = r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
_DOMAIN = rf"{_DOMAIN_PART}(\.{_DOMAIN_PART})*(:[0-9]+)?"
_LONGEST_REPOSITORY = 255
_DEFAULT_MODE = 0o644
_SECONDS_PER_HOUR = 3600


def set_pod_defaults(pod: Object) -> None:
    spec = pod["spec"]
    set_pod_spec_defaults(spec)
    for sort in ("containers", "initContainers"):
        for container in spec.get(sort) or []:
            _request_what_is_limited(container["resources"])
    if spec.get("resources"):
        _set_pod_level_defaults(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        _open_host_ports(spec)


def set_pod_spec_defaults(spec: Object) -> None:
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    spec.setdefault("schedulerName", "default-scheduler")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in spec.get("volumes", []):
        _set_volume_defaults(volume)
    for sort, schema in _CONTAINER_SCHEMAS.items():
        for container in spec.get(sort) or []:
            _set_container_defaults(container)
            put_in_order(container, schema)
    round_up_to_milli(spec.get("overhead", {}))


def set_template_defaults(template: Object) -> None:
    """The pod template within a workload."""
    set_pod_spec_defaults(template["spec"])
    put_in_order(template["spec"], POD_SPEC)


def _is_repository(name: str) -> bool:
    first, slash, rest = name.partition("/")
    has_domain = slash and ("." in first or ":" in first or first == "localhost" or first != first.lower())
    if has_domain and not re.fullmatch(_DOMAIN, first):
        return False
    path = rest if has_domain else name
    return len(path) <= _LONGEST_REPOSITORY and bool(re.fullmatch(_REPOSITORY, path))


def image_tag(image: str) -> str:
    """The tag of an image, "latest" if it names neither tag nor digest, "" if only a digest or if it is malformed."""
    name, at, _ = image.partition("@")
    path, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        path, tag = name, ""
    if not _is_repository(path) or re.fullmatch("[0-9a-f]{64}", image):
        return ""
    return tag or ("" if at else "latest")


def pull_policy(image: str) -> str:
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"


def _set_container_defaults(container: Object) -> None:
    container.setdefault("imagePullPolicy", pull_policy(container.get("image", "")))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container.get("resources", {})
    for sort in ("limits", "requests"):
        round_up_to_milli(resources.get(sort, {}))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _set_probe_defaults(container[name])
    for hook in container.get("lifecycle", {}).values():
        if isinstance(hook, dict):
            _set_http_defaults(hook)
    for variable in container.get("env", []):
        if "fieldRef" in variable.get("valueFrom", {}):
            variable["valueFrom"]["fieldRef"].setdefault("apiVersion", "v1")


def _set_probe_defaults(probe: Object) -> None:
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        probe.setdefault(name, value)
    _set_http_defaults(probe)
    if "grpc" in probe and probe["grpc"].get("service") is None:
        probe["grpc"]["service"] = ""


def _set_http_defaults(handler: Object) -> None:
    if "httpGet" in handler:
        handler["httpGet"].setdefault("path", "/")
        handler["httpGet"].setdefault("scheme", "HTTP")


def _set_volume_defaults(volume: Object) -> None:
    if volume.keys() <= {"name"}:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if source in volume:
            volume[source].setdefault("defaultMode", _DEFAULT_MODE)
    set_source_defaults(volume)
    drop_disabled_sources(volume.get("projected", {}))
    if "image" in volume:
        volume["image"].setdefault("pullPolicy", pull_policy(volume["image"].get("reference", "")))
    items = list(volume.get("downwardAPI", {}).get("items", []))
    for source in volume.get("projected", {}).get("sources") or []:
        items += source.get("downwardAPI", {}).get("items", [])
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", _SECONDS_PER_HOUR)
    for item in items:
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")
    claim = volume.get("ephemeral", {}).get("volumeClaimTemplate")
    if claim is not None:
        claim["spec"].setdefault("volumeMode", "Filesystem")


def _request_what_is_limited(resources: Object) -> None:
    if resources.get("limits"):
        requests: dict[str, Any] = resources.setdefault("requests", {})
        for name, amount in resources["limits"].items():
            requests.setdefault(name, amount)


def _open_host_ports(spec: Object) -> None:
    for sort in ("containers", "initContainers"):
        for container in spec.get(sort) or []:
            for port in container.get("ports", []):
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]


def _set_pod_level_defaults(spec: Object) -> None:
    resources = spec["resources"]
    for sort in ("limits", "requests"):
        round_up_to_milli(resources.get(sort, {}))
    if resources.get("limits") or resources.get("requests"):
        limits = resources.setdefault("limits", {})
        for name, amount in container_totals(spec, "limits").items():
            if is_huge_page(name) and name not in resources.get("requests", {}):
                limits.setdefault(name, str(amount))
    if resources.get("limits"):
        requests = resources.setdefault("requests", {})
        for name, amount in container_totals(spec, "requests").items():
            if name in ("cpu", "memory"):
                requests.setdefault(name, str(amount))
        for name, limit in resources["limits"].items():
            if name in ("cpu", "memory") or is_huge_page(name):
                requests.setdefault(name, limit)
    for sort in ("limits", "requests"):
        if not resources.get(sort, True):
            del resources[sort]
