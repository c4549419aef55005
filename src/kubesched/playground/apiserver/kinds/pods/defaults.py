"""What a pod has when nothing is said, and what the API server sets on it itself.

``set_pod_defaults`` is for pods only (requests from limits, service links, host ports); ``set_pod_spec_defaults`` for
templates too. Priority, tolerations and the like are set later, by ``admission.py``. Then: the status at creation,
gates, selectors from matchLabelKeys, and what a status write may not touch.
"""

from __future__ import annotations

import re
from typing import Any

from kubesched.k8s.model.requests import container_totals, qos_class
from kubesched.playground.apiserver.kinds.amounts import is_huge_page, round_up_to_milli
from kubesched.playground.apiserver.kinds.pods import admission
from kubesched.playground.apiserver.kinds.pods.changes import keep_all_but_ephemeral, keep_all_but_resources
from kubesched.playground.apiserver.kinds.pods.volumes import drop_disabled_sources
from kubesched.playground.apiserver.kinds.volume_sources import set_source_defaults
from kubesched.playground.apiserver.openapi.decoding import put_in_order
from kubesched.playground.apiserver.served_resource import Object, WriteContext

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


_GATED = "Scheduling is blocked due to non-empty scheduling gates"


def prepare_create(pod: Object, ctx: WriteContext) -> None:
    admission.admit_new(pod, ctx)
    pod["status"] = {"phase": "Pending"}
    if pod["spec"].get("schedulingGates"):
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": ctx.now,
            "reason": "SchedulingGated",
            "message": _GATED,
        }
        pod["status"]["conditions"] = [condition]
    pod["status"]["qosClass"] = qos_class(pod)
    _narrow_affinity(pod)
    _narrow_spread(pod)
    put_in_order(pod["spec"], POD_SPEC)


def prepare_update(pod: Object, old: Object, ctx: WriteContext) -> None:
    if ctx.subresource == "status":
        _keep_what_status_may_not_change(pod, old)
    elif ctx.subresource == "ephemeralcontainers":
        keep_all_but_ephemeral(pod, old)
    elif ctx.subresource == "resize":
        keep_all_but_resources(pod, old)
    elif ctx.subresource == "":
        admission.admit_changed(pod, old)


def _keep_what_status_may_not_change(pod: Object, old: Object) -> None:
    meta, before = pod["metadata"], old["metadata"]
    meta.pop("ownerReferences", None)
    if "ownerReferences" in before:
        meta["ownerReferences"] = before["ownerReferences"]
    status, old_status = pod["status"], old.get("status", {})
    for name in ("qosClass", "observedGeneration"):
        if not status.get(name) and name in old_status:
            status[name] = old_status[name]
    generations: dict[str, list[int]] = {}
    for condition in old_status.get("conditions", []):
        generations.setdefault(condition["type"], []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions", []):
        known = generations.get(condition["type"])
        before_it = known.pop(0) if known else 0
        if before_it and not condition.get("observedGeneration"):
            condition["observedGeneration"] = before_it


def _narrow_affinity(pod: Object) -> None:
    labels = pod["metadata"].get("labels", {})
    for sort in ("podAffinity", "podAntiAffinity"):
        affinity = pod["spec"].get("affinity", {}).get(sort, {})
        preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])
        terms = [weighted["podAffinityTerm"] for weighted in preferred]
        terms += affinity.get("requiredDuringSchedulingIgnoredDuringExecution", [])
        for term in terms:
            _narrow(term, "matchLabelKeys", "In", labels)
            _narrow(term, "mismatchLabelKeys", "NotIn", labels)


def _narrow_spread(pod: Object) -> None:
    labels = pod["metadata"].get("labels", {})
    for constraint in pod["spec"].get("topologySpreadConstraints", []):
        _narrow(constraint, "matchLabelKeys", "In", labels)


def _narrow(term: Object, keys: str, operator: str, labels: dict[str, str]) -> None:
    """The pod's own values of these labels become part of the selector."""
    selector = term.get("labelSelector")
    if selector is None:
        return
    for key in term.get(keys, []):
        if key in labels:
            requirement = {"key": key, "operator": operator, "values": [labels[key]]}
            selector.setdefault("matchExpressions", []).append(requirement)
