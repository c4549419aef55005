"""Typed objects from templates, with what an API server would give them: a name, a uid, a version, defaults.

Nothing is drawn at random: generated names are numbered, so that a run can be repeated. A pod is decoded from JSON of
its own, as it would be when it came through a watch: pods alike share nothing but what the scheduler finds to share.

Next: `pod_making` for pods and their volumes, `node_making` for nodes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.manifests import ManifestError
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.simulator.bench.errors import WorkloadError
from kubesched.simulator.bench.templates import Manifest, Template

Item = TypeVar("Item", bound=KubeObject)

_encode = msgspec.json.Encoder().encode
_decode_pod = msgspec.json.Decoder(Pod).decode
_MAX_KEPT = 1000
"""So many different pods of a template are kept in encoded form; beyond that, each is encoded anew."""


class ObjectFactory:
    """Hands out names and uids, no two alike."""

    def __init__(self) -> None:
        self._n_uids = 0
        self._n_versions = 0
        self._n_generated: defaultdict[str, int] = defaultdict(int)
        self._pods: defaultdict[str, dict[tuple[str, ...], bytes]] = defaultdict(dict)

    def next_uid(self) -> str:
        self._n_uids += 1
        return f"00000000-0000-4000-8000-{self._n_uids:012x}"

    def next_version(self) -> str:
        self._n_versions += 1
        return str(self._n_versions)

    def versioned(self, item: Item) -> Item:
        """The object as it is after a write."""
        return replace(item, metadata=replace(item.metadata, resource_version=self.next_version()))

    def generated_name(self, prefix: str) -> str:
        number = self._n_generated[prefix]
        self._n_generated[prefix] += 1
        return f"{prefix}{number}"

    def make(
        self, template: Template, index: int = 0, count: int = 1, *, namespace: str = "", name: str = ""
    ) -> KubeObject:
        """An object of whatever kind. A namespace is given just to objects that live in one."""
        manifest = template.manifest(template.values(index, count))
        metadata = dict(manifest.get("metadata") or {})
        metadata["name"] = name or self._name(metadata, template)
        item = _decode(manifest | {"metadata": metadata}, template)
        meta = self._metadata(item.metadata, item.name, (item.namespace and namespace) or item.namespace)
        return replace(item, metadata=meta)

    def make_pod(self, template: Template, index: int, count: int, namespace: str) -> Pod:
        """As `make`, for very many pods."""
        values = template.values(index, count)
        manifest = template.manifest(values)
        kept = self._pods[template.path]
        alike = tuple(value for number, value in enumerate(values) if number not in template.in_name)
        encoded = kept.get(alike)
        if encoded is None:
            encoded = self._encoded_pod(template, manifest)
            if len(kept) < _MAX_KEPT:
                kept[alike] = encoded
        name = self._name(manifest.get("metadata") or {}, template)
        pod = _decode_pod(encoded)
        return replace(pod, metadata=self._metadata(pod.metadata, name, namespace))

    def _metadata(self, metadata: ObjectMeta, name: str, namespace: str) -> ObjectMeta:
        return replace(
            metadata,
            name=name,
            namespace=namespace,
            uid=self.next_uid(),
            resource_version=self.next_version(),
        )

    def _encoded_pod(self, template: Template, manifest: Manifest) -> bytes:
        metadata = dict(manifest.get("metadata") or {})
        metadata.setdefault("name", "any")
        found = _decode(manifest | {"metadata": metadata}, template)
        if not isinstance(found, Pod):
            raise WorkloadError(template.path, "kind", f"a Pod is expected, not {template.kind}")
        return _encode(found)

    def _name(self, metadata: Manifest, template: Template) -> str:
        name = metadata.get("name")
        if name:
            return str(name)
        return self.generated_name(str(metadata.get("generateName") or f"{template.kind.lower()}-"))


def _decode(manifest: Manifest, template: Template) -> KubeObject:
    try:
        found = manifests.from_dicts([manifest], template.path)
    except ManifestError as problem:
        raise WorkloadError(problem.source, problem.where, problem.problem) from None
    if not found.objects:
        name = f"{template.api_version} {template.kind}"
        raise WorkloadError(template.path, "kind", f"{name} is not a kind that the scheduler looks at")
    return found.objects[0]
