"""What the page may do beyond looking: change objects, try pods, and load scenarios.

Objects are created, changed and deleted as YAML, by the API server: it validates, we do not. A manifest with a
`resourceVersion` is an edit, and replaces the object if nobody changed it meanwhile; one without is new. Nothing of a
text is written unless the server took all of it on trial (a dry run), but for objects in a namespace or of a kind that
the same text creates: those cannot be tried.

Pods are tried by a dry run of the API server. On a cluster that nobody may change from here (`TriedPods`), a scheduler
may not create pods, not even on trial. So defaults and the priority of a class that is named are added here; what
webhooks, limit ranges and a default PriorityClass of the cluster would change is not.

A scenario is a file of `scenarios/`, whose first comment is its title and the rest of it what to look for. Loading one
again brings its objects back to what the file says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.requester import MERGE_PATCH, Requester
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod, PriorityClass
from kubesched.k8s.model.kubernetes_yaml import load_documents, plain_yaml
from kubesched.k8s.model.manifests import ManifestError
from kubesched.k8s.workloads.admission import SYSTEM_CLASSES, AdmissionError, admit_pod
from kubesched.playground.controllers.kinds import DiscoveredKind, DiscoveredKinds
from kubesched.playground.manifests import Body, InvalidManifestError, in_order, put_in, read_documents
from kubesched.playground.web.sources import JsonObject, ObjectRef, RefusedError, ShownScenario

_SCENARIOS = ("gpu-shortage", "zone-spread", "preemption", "volumes", "gang")


class PlaygroundBench:
    """Implements `Workbench`."""

    def __init__(
        self, client: RestClient, kinds: DiscoveredKinds, explain: Callable[[Pod], Awaitable[JsonObject]]
    ) -> None:
        self._client = client
        self._kinds = kinds
        self._objects = ClusterObjects(client, kinds)
        self._explain = explain

    async def read(self, ref: ObjectRef) -> str:
        return str(await _told(self._objects.read(ref)))

    async def write(self, text: str, *, is_dry_run: bool) -> list[JsonObject]:
        found: list[JsonObject] = await _told(self._objects.write(text, is_dry_run=is_dry_run))
        return found

    async def delete(self, ref: ObjectRef) -> None:
        await _told(self._objects.delete(ref))

    async def cordon(self, node: str, *, is_cordoned: bool) -> None:
        await _told(self._objects.patch(ObjectRef("v1", "Node", "", node), {"spec": {"unschedulable": is_cordoned}}))

    async def what_if(self, text: str) -> JsonObject:
        """Where the pod of this YAML would go; it is not created."""
        body = await _told(self._objects.as_created(text))
        return await self._explain(msgspec.convert(body, Pod))

    async def load(self, scenario: str) -> None:
        documents = read_documents(scenario_text(scenario).encode(), scenario)
        await _told(put_in(self._client, self._kinds, documents, "default"))

    def scenarios(self) -> list[ShownScenario]:
        return [_scenario(name) for name in _SCENARIOS]


async def _told(work: Awaitable[Any]) -> Any:
    try:
        return await work
    except InvalidManifestError as problem:
        raise RefusedError(str(problem)) from None


def scenario_text(name: str) -> str:
    return (resources.files("kubesched.playground") / "scenarios" / f"{name}.yaml").read_text()


@cache
def _scenario(name: str) -> ShownScenario:
    lines = []
    for line in scenario_text(name).splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return ShownScenario(name, lines[0], " ".join(lines[1:]))


_SOURCE = "the manifest"
_JSON, _YAML = "application/json", "application/yaml"
_NAME = re.compile(r"[a-z0-9A-Z_.:-]{1,253}")
_WRITTEN_BY_SERVERS = ("managedFields", "selfLink")
_POD_TEMPLATES = (("spec", "template"), ("spec", "jobTemplate", "spec", "template"))


class ClusterObjects:
    """Raises `InvalidManifestError` with one sentence; `Unreachable` and `AnswerLost` go through."""

    def __init__(self, requests: Requester, kinds: DiscoveredKinds, namespace: str = "default") -> None:
        self._requests = requests
        self._kinds = kinds
        self._namespace = namespace

    async def read(self, ref: ObjectRef) -> str:
        """As YAML to be edited."""
        _, path = await self._where(ref)
        body = await self._ask("GET", path, str(ref))
        for name in _WRITTEN_BY_SERVERS:
            body["metadata"].pop(name, None)
        return plain_yaml({"apiVersion": ref.api_version, "kind": ref.kind} | body)

    async def write(self, text: str, *, is_dry_run: bool) -> list[JsonObject]:
        """What became of each object, or would."""
        documents = in_order(read_documents(text.encode(), _SOURCE))
        if not documents:
            raise InvalidManifestError("there is no object in it")
        typed = text.encode() if _is_alone(documents, text) else None
        tried = [await self._put(document, is_dry_run=True, typed=typed) for document in _to_be_tried(documents)]
        if is_dry_run:
            return tried
        return [await self._put(document, is_dry_run=False, typed=typed) for document in documents]

    async def delete(self, ref: ObjectRef) -> None:
        _, path = await self._where(ref)
        await self._ask("DELETE", path, str(ref))

    async def patch(self, ref: ObjectRef, change: JsonObject) -> None:
        _, path = await self._where(ref)
        await self._ask("PATCH", path, str(ref), body=msgspec.json.encode(change), content_type=MERGE_PATCH)

    async def as_created(self, text: str) -> JsonObject:
        """The pod that the text describes, or the first one of its workload, as the server would create it: defaults
        and admission included. Nothing is created."""
        documents = read_documents(text.encode(), _SOURCE)
        found = [pod for pod in map(pod_of, documents) if pod is not None]
        if not found:
            raise InvalidManifestError("there is neither a Pod nor a workload with a pod template in it")
        return await self._put(found[0], is_dry_run=True, whole=True)

    async def _put(
        self, document: Body, *, is_dry_run: bool, whole: bool = False, typed: bytes | None = None
    ) -> JsonObject:
        """`typed` is the text that the document was read from, if it is all there is in it: there the server finds what
        reading has lost, such as a key that is given twice."""
        metadata = document["metadata"]
        name = metadata.get("name", metadata.get("generateName"))
        what = f"{document['kind']} {name}"
        _check_path(document, what)
        kind = await self._kind(document["apiVersion"], document["kind"])
        namespace = metadata.get("namespace") or self._namespace
        is_edit = bool(metadata.get("resourceVersion") and metadata.get("name"))
        path = kind.home.path(namespace, metadata["name"]) if is_edit else kind.home.path(namespace)
        params = {"dryRun": "All"} if is_dry_run else {}
        params["fieldValidation"] = "Strict"
        body = msgspec.json.encode(document) if typed is None else typed
        answer: JsonObject = await self._ask(
            "PUT" if is_edit else "POST", path, what, params, body, _JSON if typed is None else _YAML
        )
        if whole:
            return answer
        made = answer["metadata"]
        row = {"kind": document["kind"], "name": made.get("name", name), "done": "changed" if is_edit else "created"}
        return row | ({"namespace": made["namespace"]} if made.get("namespace") else {})

    async def _where(self, ref: ObjectRef) -> tuple[DiscoveredKind, str]:
        kind = await self._kind(ref.api_version, ref.kind)
        return kind, kind.home.path(ref.namespace or self._namespace, ref.name)

    async def _kind(self, api_version: str, name: str) -> DiscoveredKind:
        kind = await self._kinds.find(api_version, name)
        if kind is None:
            self._kinds.forget()
            kind = await self._kinds.find(api_version, name)
        if kind is None:
            raise InvalidManifestError(f"the server has no {name} in {api_version}")
        return kind

    async def _ask(
        self,
        method: str,
        path: str,
        what: str,
        params: dict[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = _JSON,
    ) -> Any:
        try:
            answer = await self._requests.request(method, path, params=params, body=body, content_type=content_type)
            return msgspec.json.decode(answer)
        except ApiError as error:
            raise InvalidManifestError(f"{what}: {error.message}") from None


def _is_alone(documents: Sequence[Body], text: str) -> bool:
    """Whether a text is one object, neither several nor a list."""
    return len(documents) == 1 and list(load_documents(text)) == [documents[0]]


def _check_path(document: Body, what: str) -> None:
    """Namespace and name become part of a path. Raises InvalidManifestError."""
    metadata = document["metadata"]
    for field in ("apiVersion", "kind"):
        if not isinstance(document[field], str):
            raise InvalidManifestError(f"{what}: {field} is no text")
    for field in ("namespace", "name"):
        value = metadata.get(field)
        if value is not None and not isinstance(value, str):
            raise InvalidManifestError(f"{what}: metadata.{field} is no text")
        needs_syntax = field == "namespace" or metadata.get("resourceVersion")
        if value and needs_syntax and not _NAME.fullmatch(value):
            raise InvalidManifestError(f"{what}: metadata.{field}: Invalid value: {json.dumps(value)}")


def _to_be_tried(documents: Iterable[Body]) -> list[Body]:
    known = list(documents)
    namespaces = {one["metadata"].get("name") for one in known if one["kind"] == "Namespace"}
    specs = [one.get("spec") or {} for one in known if one["kind"] == "CustomResourceDefinition"]
    kinds = {(spec.get("names") or {}).get("kind") for spec in specs}
    return [one for one in known if one["metadata"].get("namespace") not in namespaces and one["kind"] not in kinds]


def pod_of(document: Body) -> Body | None:
    """The pod itself, or one as the template of a workload makes it; None if it makes none."""
    if document["kind"] == "Pod":
        return document
    for path in _POD_TEMPLATES:
        template: Any = document
        for step in path:
            template = template.get(step) if isinstance(template, dict) else None
        if isinstance(template, dict) and isinstance(template.get("spec"), dict):
            owner = document["metadata"]
            labels = (template.get("metadata") or {}).get("labels") or {}
            metadata = {"generateName": f"{owner.get('name', 'what-if')}-", "labels": labels}
            if owner.get("namespace"):
                metadata["namespace"] = owner["namespace"]
            return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    return None


_CLASS_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


class TriedPods:
    def __init__(self, requests: Requester) -> None:
        self._requests = requests

    async def read(self, text: str) -> Pod:
        """The pod, or the first one of a workload. Raises `RefusedError`."""
        try:
            pod = _first_pod(text)
            return admit_pod(pod, await self._class_of(pod))
        except (InvalidManifestError, ManifestError, AdmissionError) as problem:
            raise RefusedError(str(problem)) from None

    async def _class_of(self, pod: Pod) -> dict[str, PriorityClass]:
        """By its name; none is needed where the priority is written out, or every cluster has the class."""
        name = pod.spec.priority_class_name
        if not name or name in SYSTEM_CLASSES:
            return {}
        if not _CLASS_NAME.fullmatch(name):  # it becomes part of a path
            raise RefusedError("spec.priorityClassName: no PriorityClass has such a name")
        try:
            answer = await self._requests.request("GET", f"{_CLASSES}/{name}")
        except ApiError as problem:
            if problem.is_not_found:
                return {}
            if pod.spec.priority is not None:
                return {name: PriorityClass(value=pod.spec.priority)}
            raise RefusedError(f"PriorityClass {name}: {problem.message}; write spec.priority instead") from None
        except (Unreachable, AnswerLost) as problem:
            raise RefusedError(f"PriorityClass {name}: the API server did not answer: {problem}") from None
        return {name: msgspec.json.decode(answer, type=PriorityClass)}


def _first_pod(text: str) -> Pod:
    found = [pod for pod in map(pod_of, read_documents(text.encode(), _SOURCE)) if pod is not None]
    if not found:
        raise RefusedError("there is neither a Pod nor a workload with a pod template in it")
    metadata = found[0]["metadata"]
    name = metadata.get("name") or f"{metadata['generateName']}what-if"
    (pod,) = manifests.from_dicts([found[0] | {"metadata": metadata | {"name": name}}], _SOURCE).objects
    assert isinstance(pod, Pod)
    return pod
