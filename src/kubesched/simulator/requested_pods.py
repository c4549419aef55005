"""The pods for which ProvisioningRequests ask for room: each set of pods as a Job, all of whose pods run at once."""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.k8s.model.apps import Job, JobSpec
from kubesched.k8s.model.autoscaling import PodTemplate, ProvisioningRequest
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.manifests import ManifestError, Manifests
from kubesched.k8s.model.meta import ObjectMeta

_CONSUMES = (
    "autoscaling.x-k8s.io/consume-provisioning-request",
    "cluster-autoscaler.kubernetes.io/consume-provisioning-request",
)
"""Annotations of the pods for which a request was made, once they are there."""


def requested_jobs(found: Manifests) -> Iterator[tuple[Job, str]]:
    """With the source of the request. Those whose pods are there already are left out, and those that
    failed or whose time is over. Raises ManifestError."""
    requests = [item for item in found.objects if isinstance(item, ProvisioningRequest)]
    if not requests:
        return
    templates = {_key(item): item for item in found.objects if isinstance(item, PodTemplate)}
    consumed = {
        f"{pod.namespace}/{name}"
        for pod in found.objects
        if isinstance(pod, Pod)
        for name in map((pod.metadata.annotations or {}).get, _CONSUMES)
        if name
    }
    for request in requests:
        if _key(request) not in consumed and not request.is_over:
            source = found.source_of(request)
            yield from ((job, source) for job in _jobs(request, templates, source))


def _jobs(request: ProvisioningRequest, templates: dict[str, PodTemplate], source: str) -> Iterator[Job]:
    namespace, _, name = _key(request).partition("/")
    where = f"ProvisioningRequest {namespace}/{name}"
    if not request.spec.pod_sets:
        raise ManifestError(source, where, "spec.podSets: none is there")
    for number, one in enumerate(request.spec.pod_sets):
        field = f"spec.podSets[{number}]"
        template = templates.get(f"{namespace}/{one.pod_template_ref.name}")
        if template is None:
            problem = f"there is no PodTemplate {namespace}/{one.pod_template_ref.name} beside it"
            raise ManifestError(source, where, f"{field}.podTemplateRef.name: {problem}")
        if one.count < 1:
            raise ManifestError(source, where, f"{field}.count: at least 1 is expected, not {one.count}")
        spec = JobSpec(parallelism=one.count, completions=one.count, template=template.template)
        yield Job(ObjectMeta(name=f"{name}-{number}", namespace=namespace), spec)


def _key(item: ProvisioningRequest | PodTemplate) -> str:
    return f"{item.namespace or 'default'}/{item.name}"
