"""Hides names: whoever has a recording sees what was asked for and what was decided, and not of what.

Names, label values, images and the like become short keyed hashes, the same text the same hash everywhere, so that
selectors, owners and claims still refer to what they referred to. Without the key, names cannot be guessed.
What is kept: keys of labels and taints, amounts, numbers, times, uids, names of schedulers, resources, drivers and of
Kubernetes' own namespaces, and the values of labels that say what a machine is.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import msgspec.structs

from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import SELECTED_NODE_ANNOTATION, STORAGE_CLASS_ANNOTATION
from kubesched.simulator.recording.lines import BindingSeen

_KEPT_TEXTS = frozenset(
    {
        *("", "default", "kube-system", "kube-public", "kube-node-lease", "true", "false"),
        *("system-cluster-critical", "system-node-critical", "0.0.0.0", "127.0.0.1", "::"),
    }
)
_ANNOTATIONS_WITH_NAMES = frozenset(
    {SELECTED_NODE_ANNOTATION, STORAGE_CLASS_ANNOTATION, "resource.kubernetes.io/pod-claim-name"}
)
_KEPT_LABELS = frozenset(
    {
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "karpenter.sh/capacity-type",
    }
)
_NAMES = frozenset(
    {
        *("claimName", "containerName", "counterSet", "currentRevision", "device", "deviceClassName", "diskName"),
        *("diskURI", "generateName", "hostIP", "hostname", "image", "iqn", "name", "namespace", "node", "nodeID"),
        *("nodeName", "nominatedNodeName", "parentCompositePodGroupName", "path", "pdName", "persistentVolumeName"),
        *("podGroupName", "podGroupTemplateName", "pool", "priorityClassName", "reference", "resourceClaimName"),
        *("resourceClaimTemplateName", "runtimeClassName", "secretName", "secretNamespace", "serviceName", "shareName"),
        *("storageClassName", "subPath", "targetPortal", "templateName", "volumeAttributesClassName", "volumeHandle"),
        *("volumeID", "volumeName", "volumePath", "workloadName"),
    }
)
_REQUEST_NAMES = frozenset({"request", "requestName", "requests"})
"""Of devices: a request's name, or that of one of its alternatives after a slash."""
_IMAGES = frozenset({"image", "names", "reference"})
_TAG = "1"
_NAME_LISTS = frozenset({"monitors", "names", "namespaces", "requests", "volumesInUse", "values"})
_LABELS = frozenset({"labels", "matchLabels", "nodeSelector", "selector"})
_KEPT_WHOLE = frozenset(
    {
        *("requests", "limits", "capacity", "allocatable", "overhead", "podFixed", "hard", "used"),
        *("allocatedResources", "conditions"),
    }
)
_KEPT_NAMES = frozenset({"pods", "resources", "ports", "schedulingGates", "drivers"})
"""Lists whose items have names that are not the user's."""
_DIGITS = 10


class Anonymiser:
    def __init__(self, key: bytes | None = None) -> None:
        """With the same key, the same texts get the same hashes in several recordings; else a random one is used, and
        forgotten."""
        self._key = secrets.token_bytes(32) if key is None else key[:64]
        self._known: dict[str, str] = {}

    def text(self, text: str) -> str:
        if text in _KEPT_TEXTS or _is_number(text):
            return text
        known = self._known.get(text)
        if known is None:
            known = "x" + blake2b(text.encode(), key=self._key, digest_size=16).hexdigest()[:_DIGITS]
            self._known[text] = known
        return known

    def image(self, image: str) -> str:
        """A scheduler looks for images with a tag, and adds one where there is none."""
        if not image:
            return image
        has_tag = image.rfind(":") > image.rfind("/")
        return f"{self.text(image if has_tag else f'{image}:latest')}:{_TAG}"

    def key(self, key: str) -> str:
        """`namespace/name`, or a bare name."""
        return "/".join(map(self.text, key.split("/")))

    def key_of(self, item: KubeObject) -> str:
        name = self._claim_name(
            item.name, [one.name for one in item.metadata.owner_references or () if one.kind == "Pod"]
        )
        return f"{self.text(item.namespace)}/{name}" if item.namespace else name

    def binding(self, seen: BindingSeen) -> BindingSeen:
        return msgspec.structs.replace(seen, node=self.text(seen.node))

    def body(self, body: dict[str, Any]) -> dict[str, Any]:
        """An object as it is written."""
        hidden: dict[str, Any] = {name: self._field(name, value) for name, value in body.items()}
        metadata = body.get("metadata") or {}
        owners = [one["name"] for one in metadata.get("ownerReferences") or () if one.get("kind") == "Pod"]
        hidden["metadata"]["name"] = self._claim_name(metadata.get("name", ""), owners)
        return hidden

    def _claim_name(self, name: str, owners: list[str]) -> str:
        """A claim that was made for a pod's volume is found by the names of both."""
        for owner in owners:
            if owner and name.startswith(f"{owner}-"):
                return f"{self.text(owner)}-{self.text(name.removeprefix(f'{owner}-'))}"
        return self.text(name)

    def _field(self, name: str, value: Any) -> Any:
        if name in ("kind", "apiVersion") or (
            name in _KEPT_WHOLE and (name == "conditions" or isinstance(value, dict))
        ):
            return value
        if name == "annotations" and isinstance(value, dict):
            return {key: self.text(text) if key in _ANNOTATIONS_WITH_NAMES else text for key, text in value.items()}
        if name in _LABELS and isinstance(value, dict) and all(isinstance(text, str) for text in value.values()):
            return {key: text if key in _KEPT_LABELS else self.text(text) for key, text in value.items()}
        if isinstance(value, dict):
            return self._mapping(value)
        if isinstance(value, list | tuple):
            if name in _NAME_LISTS:
                hide = self._hiding(name)
                return [hide(item) if isinstance(item, str) else self._field("", item) for item in value]
            kept = name in _KEPT_NAMES
            return [self._item(item, keeps_name=kept) for item in value]
        is_name = name in _NAMES or name in _REQUEST_NAMES
        return self._hiding(name)(value) if is_name and isinstance(value, str) else value

    def _hiding(self, name: str) -> Callable[[str], str]:
        return self.key if name in _REQUEST_NAMES else self.image if name in _IMAGES else self.text

    def _mapping(self, value: dict[str, Any]) -> dict[str, Any]:
        """A requirement on a label whose values are kept keeps its own; a taint's value is like that of a label."""
        if value.get("key") in _KEPT_LABELS:
            return value
        hidden = {name: self._field(name, item) for name, item in value.items()}
        if "key" in value and isinstance(value.get("value"), str):
            hidden["value"] = self.text(value["value"])
        return hidden

    def _item(self, item: Any, *, keeps_name: bool) -> Any:
        if not isinstance(item, dict):
            return item
        hidden = self._mapping(item)
        if keeps_name and "name" in item:
            hidden["name"] = item["name"]
        return hidden


def _is_number(text: str) -> bool:
    """Requirements may compare numbers."""
    return text.removeprefix("-").isdigit()
