"""What is wrong with the volumes of a pod spec."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.apiserver.kinds import field_errors as errors
from kubesched.apiserver.kinds.claim_specs import claim_spec_errors
from kubesched.apiserver.kinds.kind import InvalidField, Object
from kubesched.apiserver.kinds.name_syntax import dns_label_mistakes, dns_subdomain_mistakes
from kubesched.apiserver.kinds.pods import files
from kubesched.model import quantity

# in the order in which the API server looks at them
_SOURCES = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi"),
    *("glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc"),
    *("azureFile", "configMap", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos"),
    *("projected", "scaleIO", "csi", "ephemeral", "image"),
)
_HOST_PATH_TYPES = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"),
)
_REQUIRED = {
    "hostPath": ("path",),
    "secret": ("secretName",),
    "configMap": ("name",),
    "persistentVolumeClaim": ("claimName",),
    "nfs": ("server", "path"),
    "csi": ("driver",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "azureFile": ("secretName", "shareName"),
    "cinder": ("volumeID",),
    "gitRepo": ("repository",),
    "vsphereVolume": ("volumePath",),
}
_SHORTEST_TOKEN_S, _LONGEST_TOKEN_S = 600, 1 << 32


def volume_errors(volumes: Sequence[Object], pod_name: str, path: str) -> tuple[frozenset[str], list[InvalidField]]:
    """The names that mounts can use, and what is wrong."""
    made_for_pod = {f"{pod_name}-{volume.get('name', '')}" for volume in volumes if "ephemeral" in volume and pod_name}
    names: set[str] = set()
    found: list[InvalidField] = []
    for position, volume in enumerate(volumes):
        at = errors.index(path, position)
        name = volume.get("name", "")
        wrong = _source_errors(volume, at)
        if name:
            wrong += errors.all_invalid(f"{at}.name", name, dns_label_mistakes(name))
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


def _source_errors(volume: Object, path: str) -> list[InvalidField]:
    given = [name for name in _SOURCES if name in volume]
    if not given:
        return [errors.required(path, "must specify a volume type")]
    found = _first_source_errors(given[0], volume[given[0]], path)
    why = "may not specify more than 1 volume type"
    return found + [errors.forbidden(f"{path}.{name}", why) for name in given[1:]]


def _first_source_errors(sort: str, source: Object, path: str) -> list[InvalidField]:
    if sort == "emptyDir":
        limit = source.get("sizeLimit")
        if limit is not None and quantity.parse(limit).nanos < 0:
            why = "SizeLimit field must be a valid resource quantity"
            return [errors.forbidden(f"{path}.emptyDir.sizeLimit", why)]
        return []
    if sort == "ephemeral" and "volumeClaimTemplate" not in source:
        return [errors.required(f"{path}.ephemeral.volumeClaimTemplate")]
    wanted = _REQUIRED.get(sort, ())
    found = [errors.required(f"{path}.{sort}.{name}") for name in wanted if not source.get(name)]
    at = f"{path}.{sort}"
    if sort in ("configMap", "secret", "downwardAPI", "projected"):
        found += files.mode_errors(source.get("defaultMode"), f"{at}.defaultMode")
    if sort in ("configMap", "secret"):
        found += files.item_errors((source.get("items") or []), f"{at}.items")
    elif sort == "downwardAPI":
        found += files.downward_errors((source.get("items") or []), at)
    elif sort == "projected":
        found += _projected_errors(source.get("sources") or [], f"{at}.sources")
    elif sort == "ephemeral":
        claim = source["volumeClaimTemplate"].get("spec", {})
        found += claim_spec_errors(claim, f"{at}.volumeClaimTemplate.spec")
    elif sort == "csi" and source.get("driver"):
        found += errors.all_invalid(f"{at}.driver", source["driver"], dns_subdomain_mistakes(source["driver"].lower()))
    if sort == "hostPath" and source.get("type", "") not in _HOST_PATH_TYPES:
        found.append(errors.unsupported(f"{at}.type", source["type"], _HOST_PATH_TYPES))
    if sort == "hostPath" and ".." in source.get("path", "").split("/"):
        found.append(errors.invalid(f"{path}.hostPath.path", source["path"], "must not contain '..'"))
    return found


def _projected_errors(sources: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, source in enumerate(sources):
        at = errors.index(path, position)
        for sort in ("secret", "configMap"):
            if sort in source:
                found += [] if source[sort].get("name") else [errors.required(f"{at}.{sort}.name")]
                found += files.item_errors(source[sort].get("items", []), f"{at}.{sort}.items")
        if "downwardAPI" in source:
            found += files.downward_errors(source["downwardAPI"].get("items", []), f"{at}.downwardAPI")
        if "serviceAccountToken" in source:
            found += _token_errors(source["serviceAccountToken"], f"{at}.serviceAccountToken")
    return found


def _token_errors(token: Object, path: str) -> list[InvalidField]:
    seconds = token.get("expirationSeconds", 0)
    found: list[InvalidField] = []
    if seconds < _SHORTEST_TOKEN_S:
        why = "may not specify a duration less than 10 minutes"
        found.append(errors.invalid(f"{path}.expirationSeconds", seconds, why))
    elif seconds > _LONGEST_TOKEN_S:
        why = "may not specify a duration larger than 2^32 seconds"
        found.append(errors.invalid(f"{path}.expirationSeconds", seconds, why))
    if not token.get("path"):
        found.append(errors.required(f"{path}.path"))
    return found
