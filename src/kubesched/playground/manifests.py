"""Manifests as they are written, put into an API server: read whole, in an order that works, created or changed.

Unlike `kubesched.k8s.model.manifests` nothing is left out, and any kind that the server has is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.requester import MERGE_PATCH
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.model.kubernetes_yaml import load_documents, yaml_problem
from kubesched.playground.controllers.kinds import DiscoveredKinds

Body = dict[str, Any]

_FIRST = ("Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass", "DeviceClass", "Node", "CSINode")
"""What others may need to be there, in this order."""
_DEEPEST = 8


class InvalidManifestError(ValueError):
    """A file cannot be put into the server: names the file and the object."""


class ReadObject(Body):
    """An object, and the file that it was read from."""

    def __init__(self, content: Body, source: str) -> None:
        super().__init__(content)
        self.source = source


def _name_of(document: Body) -> str:
    metadata = document["metadata"]
    where = f"{document.source}: " if isinstance(document, ReadObject) else ""
    return f"{where}{document['kind']} {metadata.get('name', metadata.get('generateName'))}"


def read_documents(text: bytes, source: str) -> list[Body]:
    """All objects of a YAML or JSON text; lists are taken apart."""
    try:
        documents = list(load_documents(text))
    except yaml.YAMLError as problem:
        raise InvalidManifestError(f"{source}: {yaml_problem(problem, text)}") from None
    found: list[Body] = []
    for document in documents:
        found.extend(ReadObject(item, source) for item in _items(document, source))
    return found


def _items(document: object, source: str) -> Iterator[Body]:
    if document is None:
        return
    if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
        raise InvalidManifestError(f"{source}: a document is not a Kubernetes object: it needs apiVersion and kind")
    if str(document["kind"]).endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _items(item, source)
        return
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise InvalidManifestError(f"{source}: a {document['kind']} has no metadata.name")
    yield document


def split_nodes(documents: Iterable[Body]) -> tuple[list[Body], list[Body]]:
    """Nodes, which kubelets register, and everything else."""
    nodes: list[Body] = []
    others: list[Body] = []
    for document in documents:
        (nodes if document["kind"] == "Node" and document["apiVersion"] == "v1" else others).append(document)
    return nodes, others


def named_namespaces(documents: Sequence[Body]) -> list[Body]:
    """The namespaces that objects are in and that nobody creates, as `kubesched simulate` creates them, too. A manifest
    that does not name one is in `default`, which is there."""
    made = {document["metadata"].get("name") for document in documents if document["kind"] == "Namespace"}
    named = dict.fromkeys(document["metadata"].get("namespace") for document in documents)
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in named
        if isinstance(name, str) and name and name not in made
    ]


async def put_in(client: RestClient, discovered: DiscoveredKinds, documents: Iterable[Body], namespace: str) -> int:
    """Creates them, or changes those that exist; how many there were. Raises InvalidManifestError."""
    n = 0
    new_uids: dict[str, str] = {}
    for document in in_order(documents):
        uid = await _put(client, discovered, _as_new(document, new_uids), _name_of(document), namespace)
        if known := document["metadata"].get("uid"):
            new_uids[known] = uid
        n += 1
    return n


async def _put(client: RestClient, discovered: DiscoveredKinds, document: Body, what: str, namespace: str) -> str:
    """The uid that the server gave it."""
    metadata = document["metadata"]
    kind = await discovered.find(document["apiVersion"], document["kind"])
    if kind is None:
        raise InvalidManifestError(f"{what}: the server has no {document['kind']} in {document['apiVersion']}")
    where = metadata.get("namespace") or namespace
    body = msgspec.json.encode(document)
    try:
        try:
            answer = await client.request("POST", kind.home.path(where), body=body)
        except ApiError as error:
            if not error.is_already_exists:
                raise
            path = kind.home.path(where, metadata["name"])
            answer = await client.request("PATCH", path, body=body, content_type=MERGE_PATCH)
    except ApiError as error:
        raise InvalidManifestError(f"{what}: {error.message}") from None
    uid: str = msgspec.json.decode(answer)["metadata"]["uid"]
    return uid


def _as_new(document: Body, new_uids: Mapping[str, str]) -> Body:
    """Without what a server writes: dumps of another cluster may be given. What belonged to an object of the dump
    belongs to it here; an owner that the dump does not have is left out, or the garbage collector would come for it."""
    metadata = {
        key: value
        for key, value in document["metadata"].items()
        if key not in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink")
    }
    if owners := metadata.get("ownerReferences"):
        metadata["ownerReferences"] = [
            {**owner, "uid": new_uids[owner["uid"]]} for owner in owners if owner.get("uid") in new_uids
        ]
    if document["kind"] == "Service" and not (document.get("spec") or {}).get("ports"):
        # Those of `kubesched snapshot` have a selector and nothing else: only headless ones need no ports.
        return {**document, "metadata": metadata, "spec": {**(document.get("spec") or {}), "clusterIP": "None"}}
    return {**document, "metadata": metadata}


def in_order(documents: Iterable[Body]) -> list[Body]:
    """Those first that others may need to be there, and owners before what belongs to them. The Service of the API
    server is left out: every server makes its own."""
    in_file = [document for document in documents if not _is_server_itself(document)]
    by_uid = {uid: document for document in in_file if (uid := document["metadata"].get("uid"))}
    return sorted(in_file, key=lambda document: (_rank(document), _depth(document, by_uid)))


def _is_server_itself(document: Body) -> bool:
    metadata = document["metadata"]
    named = (document["kind"], metadata.get("namespace"), metadata.get("name"))
    return named == ("Service", "default", "kubernetes")


def _rank(document: Body) -> int:
    kind = document["kind"]
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)


def _depth(document: Body, by_uid: Mapping[str, Body]) -> int:
    """How many owners are above it; they may go in circles."""
    depth, above = 0, [document]
    while depth <= _DEEPEST:
        owners = (owner.get("uid") for one in above for owner in one["metadata"].get("ownerReferences") or ())
        above = [by_uid[uid] for uid in owners if uid in by_uid]
        if not above:
            return depth
        depth += 1
    return depth
