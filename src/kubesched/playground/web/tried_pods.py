"""Pods to try on a cluster that nobody may change from here: read from YAML, and admitted as an API server would.

The playground asks its API server for a dry run; a scheduler may not create pods, not even on trial. So defaults and
the priority of a class that is named are added here; what webhooks, limit ranges and a default PriorityClass of the
cluster would change is not.
"""

from __future__ import annotations

import re

import msgspec

from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.requester import Requester
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod, PriorityClass
from kubesched.k8s.model.manifests import ManifestError
from kubesched.k8s.workloads.admission import SYSTEM_CLASSES, AdmissionError, admit_pod
from kubesched.playground.manifests import InvalidManifestError, read_documents
from kubesched.playground.web.objects import pod_of
from kubesched.playground.web.sources import RefusedError

_SOURCE = "the manifest"
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
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
        if not _NAME.fullmatch(name):  # it becomes part of a path
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
