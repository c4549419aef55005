"""What is wrong with the volumes of a pod spec."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.k8s.model import quantity
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.claim_specs import claim_spec_errors
from kubesched.playground.apiserver.kinds.metadata import template_metadata_errors
from kubesched.playground.apiserver.kinds.name_syntax import (
    dns_label_errors,
    dns_subdomain_errors,
    driver_name_errors,
)
from kubesched.playground.apiserver.kinds.pods import files
from kubesched.playground.apiserver.kinds.pods.projections import projected_errors
from kubesched.playground.apiserver.kinds.volume_sources import no_step_back_errors, second_source_error, source_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

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
            found += files.mode_errors(source.get("defaultMode"), f"{at}.defaultMode")
            found += files.item_errors(source.get("items") or [], f"{at}.items")
        case "downwardAPI":
            found += files.mode_errors(source.get("defaultMode"), f"{at}.defaultMode")
            found += files.downward_errors(source.get("items") or [], at)
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
