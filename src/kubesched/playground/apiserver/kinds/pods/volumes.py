"""What is wrong with the volumes of a pod spec, and with the files that some are made of.

References to keys, fields and amounts of the pod are looked at alike in configMap, secret, downwardAPI and projected
volumes, and in environment variables (``containers.py``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubesched.k8s.model import quantity
from kubesched.k8s.model.selectors import label_key_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors, dns_subdomain_errors, driver_name_errors
from kubesched.playground.apiserver.kinds.metadata import template_metadata_errors
from kubesched.playground.apiserver.kinds.volume_sources import (
    claim_spec_errors,
    no_step_back_errors,
    second_source_error,
    source_errors,
)
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_KEY = "[-._a-zA-Z0-9]+"
_LONGEST_KEY = 253
_RESOURCES = tuple(
    f"{sort}.{name}" for sort in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_MEASURED = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}
_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SUBSCRIPTED = ("metadata.annotations", "metadata.labels")
_IN_FILES = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_IN_VARIABLES = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
_KNOWN = frozenset((*_IN_FILES, *_IN_VARIABLES, "spec.schedulerName", "spec.restartPolicy", "status.phase"))


def mode_errors(mode: int | None, path: str) -> list[InvalidField]:
    return [] if mode is None or 0 <= mode <= 0o777 else [errors.invalid(path, mode, _MODE)]


def item_errors(items: Sequence[Object], path: str) -> list[InvalidField]:
    """Keys of a config map or secret and the paths that they get."""
    found: list[InvalidField] = []
    for position, item in enumerate(items):
        found += one_item_errors(item, errors.index(path, position))
    return found


def one_item_errors(item: Object, path: str) -> list[InvalidField]:
    found = [errors.required(f"{path}.{name}") for name in ("key", "path") if not item.get(name)]
    found += local_path_errors(item.get("path", ""), f"{path}.path")
    return found + mode_errors(item.get("mode"), f"{path}.mode")


def local_path_errors(where: str, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if where.startswith("/"):
        found.append(errors.invalid(path, where, "must be a relative path"))
    if ".." in where.split("/"):
        found.append(errors.invalid(path, where, "must not contain '..'"))
    if where.startswith("..") and not where.startswith("../") and where != "..":
        found.append(errors.invalid(path, where, "must not start with '..'"))
    return found


def downward_errors(files: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for file in files:
        if not file.get("path"):
            found.append(errors.required(f"{path}.path"))
        found += local_path_errors(file.get("path", ""), f"{path}.path")
        if "fieldRef" in file:
            found += field_errors_of(file["fieldRef"], f"{path}.fieldRef", _IN_FILES)
            if "resourceFieldRef" in file:
                why = "fieldRef and resourceFieldRef can not be specified simultaneously"
                found.append(errors.invalid(path, "resource", why))
        elif "resourceFieldRef" in file:
            found += amount_reference_errors(file["resourceFieldRef"], f"{path}.resourceFieldRef", in_volume=True)
        else:
            found.append(errors.required(path, "one of fieldRef and resourceFieldRef is required"))
        found += mode_errors(file.get("mode"), f"{path}.mode")
    return found


def variable_field_errors(reference: Object, path: str) -> list[InvalidField]:
    return field_errors_of(reference, path, _IN_VARIABLES)


def field_errors_of(reference: Object, path: str, allowed: Sequence[str]) -> list[InvalidField]:
    """A reference to a field of the pod itself."""
    field = reference.get("fieldPath", "")
    if not reference.get("apiVersion"):
        return [errors.required(f"{path}.apiVersion")]
    if not field:
        return [errors.required(f"{path}.fieldPath")]
    if reference["apiVersion"] != "v1":
        why = f"error converting fieldPath: unsupported pod version: {reference['apiVersion']}"
        return [errors.invalid(f"{path}.fieldPath", field, why)]
    subscript = re.fullmatch(r"([^\[]+)\['(.*)'\]", field)
    if subscript:
        if subscript[1] not in _SUBSCRIPTED:
            return [errors.invalid(f"{path}.fieldPath", field, "does not support subscript")]
        return errors.all_invalid(path, subscript[2], label_key_errors(subscript[2].lower()))
    if field not in _KNOWN:
        why = f"error converting fieldPath: field label not supported: {field}"
        return [errors.invalid(f"{path}.fieldPath", field, why)]
    return [] if field in allowed else [errors.unsupported(f"{path}.fieldPath", field, sorted(allowed))]


def amount_reference_errors(reference: Object, path: str, in_volume: bool) -> list[InvalidField]:
    """A reference to a limit or request of a container."""
    name = reference.get("resource", "")
    found: list[InvalidField] = []
    if in_volume and not reference.get("containerName"):
        found.append(errors.required(f"{path}.containerName"))
    elif not name:
        found.append(errors.required(f"{path}.resource"))
    elif name not in _RESOURCES and not name.startswith(_HUGE_PAGES):
        found.append(errors.unsupported(f"{path}.resource", name, _RESOURCES))
    return found + _divisor_errors(name, reference.get("divisor", "0"), f"{path}.divisor")


def _divisor_errors(name: str, divisor: str, path: str) -> list[InvalidField]:
    if quantity.parse(divisor).nanos == 0:
        return []
    sort = name.partition(".")[2]
    if sort == "cpu" and name in _RESOURCES and divisor not in ("1m", "1"):
        return [errors.invalid(path, name, "only divisor's values 1m and 1 are supported with the cpu resource")]
    resource = "hugepages" if name.startswith(_HUGE_PAGES) else _MEASURED.get(sort) if name in _RESOURCES else None
    if resource is None or divisor in _DIVISORS:
        return []
    listed = ", ".join(_DIVISORS)
    why = f"only divisor's values {listed} are supported with the {resource} resource"
    return [errors.invalid(path, name, why)]


def key_reference_errors(reference: Object, path: str) -> list[InvalidField]:
    """A reference to a key of a config map or secret."""
    name, key = reference.get("name", ""), reference.get("key", "")
    found = errors.all_invalid(f"{path}.name", name, dns_subdomain_errors(name))
    if not key:
        return [*found, errors.required(f"{path}.key")]
    return found + errors.all_invalid(f"{path}.key", key, key_errors(key))


def key_errors(key: str) -> list[str]:
    found: list[str] = []
    if len(key) > _LONGEST_KEY:
        found.append(f"must be no more than {_LONGEST_KEY} bytes")
    if not re.fullmatch(_KEY, key):
        examples = "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is"
        found.append(
            f"a valid config key must consist of alphanumeric characters, '-', '_' or '.' {examples} '{_KEY}')"
        )
    if key == "." or key == "..":
        found.append(f"must not be '{key}'")
    elif key.startswith(".."):
        found.append("must not start with '..'")
    return found


_SHORTEST_TOKEN_S, _LONGEST_TOKEN_S = 600, 1 << 32
_SORTS = ("secret", "configMap", "downwardAPI", "serviceAccountToken")
_SWITCHED_OFF = ("clusterTrustBundle", "podCertificate")


def drop_disabled_sources(projection: Object) -> None:
    """Trust bundles and certificates are features that are off: the server forgets them, their place stays."""
    for source in projection.get("sources") or []:
        for name in _SWITCHED_OFF:
            source.pop(name, None)


def projected_errors(projection: Object, path: str) -> list[InvalidField]:
    found = mode_errors(projection.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for position, source in enumerate(projection.get("sources") or []):
        at = errors.index(f"{path}.sources", position)
        for sort in ("secret", "configMap"):
            if sort in source:
                found += _named_source_errors(source[sort], f"{at}.{sort}", taken, path)
        for file in source.get("downwardAPI", {}).get("items") or []:
            found += downward_errors([file], f"{at}.downwardAPI")
            found += _place_errors(file.get("path", ""), file.get("path", ""), taken, path)
        if "serviceAccountToken" in source:
            found += _token_errors(source["serviceAccountToken"], f"{at}.serviceAccountToken", path)
        if sum(sort in source for sort in _SORTS) > 1:
            found.append(errors.forbidden(at, "may not specify more than 1 volume type per source"))
    return found


def _named_source_errors(source: Object, path: str, taken: set[str], volume_path: str) -> list[InvalidField]:
    name = source.get("name", "")
    found = [] if name else [errors.required(f"{path}.name")]
    for position, item in enumerate(source.get("items") or []):
        found += one_item_errors(item, errors.index(f"{path}.items", position))
        found += _place_errors(item.get("path", ""), name, taken, volume_path)
    return found


def _place_errors(where: str, shown: str, taken: set[str], volume_path: str) -> list[InvalidField]:
    if where and where in taken:
        return [errors.invalid(volume_path, shown, "conflicting duplicate paths")]
    taken.add(where)
    return []


def _token_errors(token: Object, path: str, volume_path: str) -> list[InvalidField]:
    seconds, where = token.get("expirationSeconds", 0), token.get("path", "")
    found: list[InvalidField] = []
    if seconds < _SHORTEST_TOKEN_S:
        why = "may not specify a duration less than 10 minutes"
        found.append(errors.invalid(f"{path}.expirationSeconds", seconds, why))
    if seconds > _LONGEST_TOKEN_S:
        why = "may not specify a duration larger than 2^32 seconds"
        found.append(errors.invalid(f"{path}.expirationSeconds", seconds, why))
    # the path is told as one of the volume, not of the token
    at = f"{volume_path}.path"
    return found + (local_path_errors(where, at) if where else [errors.required(at)])


# in the order in which the API server looks at them
_SOURCES = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi"),
    *("glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc"),
    *("flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk"),
    *("storageos", "projected", "scaleIO", "csi", "ephemeral", "image"),
)
_REQUIRED = {
    "secret": "secretName",
    "configMap": "name",
    "persistentVolumeClaim": "claimName",
    "gitRepo": "repository",
}
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")


def volume_errors(volumes: Sequence[Object], pod_name: str, path: str) -> tuple[frozenset[str], list[InvalidField]]:
    """The names that mounts can use, and what is wrong."""
    made_for_pod = {f"{pod_name}-{volume.get('name', '')}" for volume in volumes if "ephemeral" in volume and pod_name}
    names: set[str] = set()
    found: list[InvalidField] = []
    for position, volume in enumerate(volumes):
        at = errors.index(path, position)
        name = volume.get("name", "")
        wrong = _volume_source_errors(volume, pod_name, at)
        if name:
            wrong += errors.all_invalid(f"{at}.name", name, dns_label_errors(name))
        else:
            wrong.append(errors.required(f"{at}.name"))
        if name in names:
            wrong.append(errors.duplicate(f"{at}.name", name))
        if not wrong:
            names.add(name)
        found += wrong
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        if claim in made_for_pod:
            why = "must not reference a PVC that gets created for an ephemeral volume"
            found.append(errors.invalid(f"{at}.persistentVolumeClaim.claimName", claim, why))
    return frozenset(names), found


def _volume_source_errors(volume: Object, pod_name: str, path: str) -> list[InvalidField]:
    given = [name for name in _SOURCES if name in volume]
    if not given:
        return [errors.required(path, "must specify a volume type")]
    found = _first_source_errors(given[0], volume, pod_name, path)
    return found + [second_source_error(name, path) for name in given[1:]]


def _first_source_errors(sort: str, volume: Object, pod_name: str, path: str) -> list[InvalidField]:
    source, at, name = volume[sort], f"{path}.{sort}", volume.get("name", "")
    found = (
        [errors.required(f"{at}.{_REQUIRED[sort]}")] if sort in _REQUIRED and not source.get(_REQUIRED[sort]) else []
    )
    match sort:
        case "emptyDir":
            limit = source.get("sizeLimit")
            if limit is not None and quantity.parse(limit).nanos < 0:
                why = "SizeLimit field must be a valid resource quantity"
                found.append(errors.forbidden(f"{at}.sizeLimit", why))
        case "gitRepo":
            where = source.get("directory", "")
            if where.startswith("/"):
                found.append(errors.invalid(f"{at}.directory", where, "must be a relative path"))
            found += no_step_back_errors(where, f"{at}.directory")
        case "secret" | "configMap":
            found += mode_errors(source.get("defaultMode"), f"{at}.defaultMode")
            found += item_errors(source.get("items") or [], f"{at}.items")
        case "downwardAPI":
            found += mode_errors(source.get("defaultMode"), f"{at}.defaultMode")
            found += downward_errors(source.get("items") or [], at)
        case "projected":
            found += projected_errors(source, at)
        case "csi":
            found += _csi_errors(source, at)
        case "ephemeral":
            found += _ephemeral_errors(source, at) + _claim_name_errors(pod_name, name, f"{path}.name")
        case "image":
            found += _image_errors(source, at)
        case _:
            found += source_errors(sort, source, path, False, name)
    return found


def _csi_errors(source: Object, path: str) -> list[InvalidField]:
    found = driver_name_errors(source.get("driver", ""), f"{path}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is None:
        return found
    if not secret.get("name"):
        return [*found, errors.required(f"{path}.nodePublishSecretRef.name")]
    return found + errors.all_invalid(f"{path}.name", secret["name"], dns_subdomain_errors(secret["name"]))


def _ephemeral_errors(source: Object, path: str) -> list[InvalidField]:
    template, at = source.get("volumeClaimTemplate"), f"{path}.volumeClaimTemplate"
    if template is None:
        return [errors.required(at)]
    found = template_metadata_errors(template.get("metadata") or {}, f"{at}.metadata")
    return found + claim_spec_errors(template.get("spec", {}), f"{at}.spec")


def _claim_name_errors(pod_name: str, volume_name: str, path: str) -> list[InvalidField]:
    """The claim that is made for the volume takes its name from pod and volume."""
    if not pod_name or not volume_name:
        return []
    name = f"{pod_name}-{volume_name}"
    return [errors.invalid(path, volume_name, f'PVC name "{name}": {why}') for why in dns_subdomain_errors(name)]


def _image_errors(source: Object, path: str) -> list[InvalidField]:
    policy = source.get("pullPolicy", "")
    found = [] if source.get("reference") else [errors.required(f"{path}.reference")]
    if not policy:
        found.append(errors.required(f"{path}.pullPolicy"))
    elif policy not in _PULL_POLICIES:
        found.append(errors.unsupported(f"{path}.pullPolicy", policy, _PULL_POLICIES))
    return found
