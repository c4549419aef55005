"""What the API server accepts in pods, volumes, claims and classes but warns about.

Sources of volumes that nothing serves any more, deprecated labels and annotations, fractions of bytes, hidden
variables, ports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kubesched.k8s.model import quantity
from kubesched.playground.apiserver.go_text import quoted
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors
from kubesched.playground.apiserver.kinds.metadata import DEPRECATED_LABELS, node_term_warnings
from kubesched.playground.apiserver.served_resource import Object

_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEPRECATED_ANNOTATIONS = {
    _STORAGE_CLASS: 'deprecated since v1.8; use "storageClassName" attribute instead',
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_RECYCLE = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
_NAMED_IN_WARNINGS = {"storageos": "storageOS"}
_GONE_SOURCES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_CERTIFICATE_FILES = {
    "certificateChainPath": "PodCertificate chain",
    "keyPath": "PodCertificate key",
    "credentialBundlePath": "PodCertificate credential bundle",
}
_GONE_IN_VOLUMES = ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")


def for_volume(volume: Object) -> list[str]:
    """A PersistentVolume."""
    spec, annotations = volume["spec"], volume["metadata"].get("annotations", {})
    found = [
        f"metadata.annotations[{name}]: {why}" for name, why in _DEPRECATED_ANNOTATIONS.items() if name in annotations
    ]
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        found.append(f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}")
    terms = spec.get("nodeAffinity", {}).get("required", {}).get("nodeSelectorTerms") or []
    for position, term in enumerate(terms):
        at = f"spec.nodeAffinity.required.nodeSelectorTerms[{position}]"
        found += node_term_warnings(term, at)
    return found + [_gone(name, "spec") for name in _GONE_IN_VOLUMES if name in spec]


def for_claim(claim: Object) -> list[str]:
    """A PersistentVolumeClaim."""
    is_old = _STORAGE_CLASS in claim["metadata"].get("annotations", {})
    text = f"metadata.annotations[{_STORAGE_CLASS}]: {_DEPRECATED_ANNOTATIONS[_STORAGE_CLASS]}"
    return ([text] if is_old else []) + for_claim_spec(claim["spec"], "spec")


def for_claim_spec(spec: Object, path: str) -> list[str]:
    found = []
    for sort in ("requests", "limits"):
        amount = spec.get("resources", {}).get(sort, {}).get("storage")
        if amount is not None and not quantity.parse(amount).is_whole:
            why = f'fractional byte value "{amount}" is invalid, must be an integer'
            found.append(f"{path}.resources.{sort}[storage]: {why}")
    return found


def for_class(obj: Object) -> list[str]:
    """A StorageClass."""
    return [
        f"allowedTopologies[{position}].matchLabelExpressions[{place}].key: {DEPRECATED_LABELS[one['key']]}"
        for position, term in enumerate(obj.get("allowedTopologies") or [])
        for place, one in enumerate(term.get("matchLabelExpressions") or [])
        if one.get("key") in DEPRECATED_LABELS
    ]


def for_pod_volumes(volumes: Sequence[Object], path: str) -> list[str]:
    """The volumes of a pod spec."""
    found: list[str] = []
    for position, volume in enumerate(volumes):
        at = f"{path}[{position}]"
        template = volume.get("ephemeral", {}).get("volumeClaimTemplate")
        found += [_gone(name, at) for name in _GONE_SOURCES if name in volume]
        if template is not None:
            found += for_claim_spec(template.get("spec", {}), f"{at}.ephemeral.volumeClaimTemplate.spec")
    for volume in volumes:
        found += _overlaps(volume)
    return found


def _gone(source: str, path: str) -> str:
    return f"{path}.{_NAMED_IN_WARNINGS.get(source, source)}: {_GONE_SOURCES[source]}"


def _overlaps(volume: Object) -> list[str]:
    """Files of one volume that lie in each other's place."""
    found: list[str] = []
    name = quoted(volume.get("name", ""))
    for sort in ("configMap", "secret", "downwardAPI"):
        source = volume.get(sort, {})
        files = [(item.get("path", ""), "") for item in source.get("items") or []]
        found += [f"volume {name} ({_shown(sort, source)}): overlapping paths: {text}" for text in _collisions(files)]
    files = []
    for source in volume.get("projected", {}).get("sources") or []:
        if not source:
            found.append(f"volume {name} (Projected) has no sources provided")
        files += _projected_files(source)
    return found + [f"volume {name} (Projected): overlapping paths: {text}" for text in _collisions(files)]


def _collisions(files: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Of paths, each with the source that it comes from if there can be several."""
    seen: list[tuple[str, str]] = []
    for path, source in files:
        here = path.rstrip("/")
        for other, other_source in seen if here else ():
            if other and (f"{other}/".startswith(f"{here}/") or f"{here}/".startswith(f"{other}/")):
                yield f"{_place(here, source)} with {_place(other, other_source)}"
        seen.append((here, source))


def _place(path: str, source: str) -> str:
    return f"{quoted(path)} ({source})" if source else quoted(path)


def _shown(sort: str, source: Object) -> str:
    if sort == "downwardAPI":
        return "DownwardAPI"
    name = source.get("secretName") or source.get("name", "")
    return f"{'Secret' if sort == 'secret' else 'ConfigMap'} {quoted(name)}"


def _projected_files(source: Object) -> list[tuple[str, str]]:
    for sort in ("configMap", "secret", "downwardAPI"):
        if items := source.get(sort, {}).get("items"):
            return [(item.get("path", ""), _shown(sort, source[sort])) for item in items]
    if "serviceAccountToken" in source:
        return [(source["serviceAccountToken"].get("path", ""), "ServiceAccountToken")]
    if "clusterTrustBundle" in source:
        bundle = source["clusterTrustBundle"]
        name = bundle["name"] if "name" in bundle else bundle.get("signerName", "")
        return [(bundle.get("path", ""), f"ClusterTrustBundle {quoted(name)}")]
    certificate = source.get("podCertificate", {})
    return [(certificate[name], text) for name, text in _CERTIFICATE_FILES.items() if certificate.get(name)]


_CRITICAL = "scheduler.alpha.kubernetes.io/critical-pod"
_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_BYTES = ("memory", "ephemeral-storage")


def for_new_pod(pod: Object) -> list[str]:
    name = pod["metadata"].get("name", "")
    found = []
    if name and (errors := dns_label_errors(name)):
        why = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
        found.append(f"metadata.name: {why}: [{' '.join(errors)}]")
    return found + for_pod_spec(pod["spec"], pod["metadata"], "")


def for_pod_spec(spec: Object, meta: Object, prefix: str) -> list[str]:
    """``prefix`` is "" for a pod, "spec.template." for a workload."""
    path = f"{prefix}spec"
    found = [
        f"{path}.nodeSelector[{label}]: {DEPRECATED_LABELS[label]}"
        for label in sorted(spec.get("nodeSelector", {}))
        if label in DEPRECATED_LABELS
    ]
    for position, constraint in enumerate(spec.get("topologySpreadConstraints", [])):
        at = f"{path}.topologySpreadConstraints[{position}]"
        label = constraint.get("topologyKey", "")
        if label in DEPRECATED_LABELS:
            found.append(f"{at}.topologyKey: {label} is {DEPRECATED_LABELS[label]}")
        if "labelSelector" not in constraint:
            found.append(f"{at}.labelSelector: a null labelSelector results in matching no pod")
    annotations = meta.get("annotations", {})
    if _CRITICAL in annotations:
        why = 'non-functional in v1.16+; use the "priorityClassName" field instead'
        found.append(f"{prefix}metadata.annotations[{_CRITICAL}]: {why}")
    found += for_pod_volumes(spec.get("volumes") or [], f"{path}.volumes")
    if _SECCOMP in annotations and "seccompProfile" not in spec.get("securityContext", {}):
        why = 'non-functional in v1.27+; use the "seccompProfile" field instead'
        found.append(f"{prefix}metadata.annotations[{_SECCOMP}]: {why}")
    for at, container in _containers(spec, path):
        found += _for_container(container, at)
    return found + _for_ports(spec, path)


def _containers(spec: Object, path: str) -> Iterator[tuple[str, Object]]:
    for sort in ("initContainers", "containers", "ephemeralContainers"):
        for position, container in enumerate(spec.get(sort) or []):
            yield f"{path}.{sort}[{position}]", container


def _for_container(container: Object, path: str) -> list[str]:
    found = []
    for resource in _BYTES:
        for sort in ("limits", "requests"):
            amount = container.get("resources", {}).get(sort, {}).get(resource)
            if amount is not None and not quantity.parse(amount).is_whole:
                why = f'fractional byte value "{amount}" is invalid, must be an integer'
                found.append(f"{path}.resources.{sort}[{resource}]: {why}")
    seen: set[str] = set()
    for position, variable in enumerate(container.get("env", [])):
        name = variable.get("name", "")
        reference = f"$({name})"
        value = variable.get("value", "")
        if name in seen and ("valueFrom" in variable or value == reference or reference not in value):
            why = f'hides previous definition of "{name}", which may be dropped when using apply'
            found.append(f"{path}.env[{position}]: {why}")
        seen.add(name)
    return found


def _for_ports(spec: Object, path: str) -> list[str]:
    found = []
    known: dict[tuple[Any, Any], list[tuple[str, Object]]] = {}
    names: dict[str, str] = {}
    for at, container in _containers(spec, path):
        for position, port in enumerate(container.get("ports", [])):
            here = f"{at}.ports[{position}]"
            others = known.setdefault((port.get("containerPort"), port.get("protocol")), [])
            for place, other in others:
                if word := _clash(port, other):
                    found.append(f"{here}: {word} port definition with {place}")
            others.append((here, port))
    for at, container in _containers(spec, path):
        for position, port in enumerate(container.get("ports", [])):
            name, here = port.get("name", ""), f"{at}.ports[{position}]"
            if name in names:
                rest = f"with {names[name]}, services and probes that select ports by name will use {names[name]}"
                found.append(f'{here}: duplicate port name "{name}" {rest}')
            elif name:
                names[name] = here
    return found


def _clash(port: Object, other: Object) -> str:
    one = (port.get("hostIP", ""), port.get("hostPort", 0))
    two = (other.get("hostIP", ""), other.get("hostPort", 0))
    if one == two:
        return "duplicate"
    if not one[1] or not two[1]:
        return "overlapping"
    return "dangerously ambiguous" if one[1] == two[1] and (one[0] == "") != (two[0] == "") else ""
