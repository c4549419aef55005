"""Pods of a workload, with the volumes and claims that were made for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kubesched.k8s.model.volume_claims import BIND_COMPLETED_ANNOTATION
from kubesched.k8s.model.volumes import PersistentVolumeClaimVolumeSource, Volume
from kubesched.simulator.bench.errors import WorkloadError
from kubesched.simulator.bench.object_factory import ObjectFactory
from kubesched.simulator.bench.templates import Template, parse_template

DEFAULT_POD = """
apiVersion: v1
kind: Pod
metadata: {generateName: pod-}
spec:
  containers:
  - name: pause
    image: registry.k8s.io/pause:3.10.1
    ports: [{containerPort: 80}]
    resources:
      requests: {cpu: 100m, memory: 500Mi}
      limits: {cpu: 100m, memory: 500Mi}
"""
"""What `createPods` makes without a template."""


def default_pod_template() -> Template:
    return parse_template(DEFAULT_POD, "default pod")


@dataclass(frozen=True, slots=True)
class PodTemplates:
    """What a `createPods` makes each of its pods from."""

    pod: Template
    claim: Template | None = None
    volume: Template | None = None


def make_pods(templates: PodTemplates, count: int, namespace: str, factory: ObjectFactory) -> Iterator[KubeObject]:
    """The pods, each after the volume and the claim that it uses: `pvc-0` for the first, and so on."""
    for index in range(count):
        yield from make_pod(templates, index, count, namespace, factory)


def make_pod(
    templates: PodTemplates, index: int, count: int, namespace: str, factory: ObjectFactory
) -> Iterator[KubeObject]:
    pod = factory.make_pod(templates.pod, index, count, namespace)
    if templates.claim is None:
        yield pod
        return
    claim = _claim(templates.claim, f"pvc-{index}", namespace, factory)
    if templates.volume is not None:
        volume = _volume(templates.volume, claim, f"vol-{index}", factory)
        yield volume
        claim = bound_claim(claim, volume)
    yield claim
    yield _using(pod, claim)


def bound_claim(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
    """The claim as the volume controller leaves it once it is bound."""
    annotations = {**(claim.metadata.annotations or {}), BIND_COMPLETED_ANNOTATION: "true"}
    return replace(
        claim,
        metadata=replace(claim.metadata, annotations=annotations),
        spec=replace(claim.spec, volume_name=volume.name),
        status=replace(claim.status, phase="Bound"),
    )


def reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    metadata = claim.metadata
    return ObjectReference("PersistentVolumeClaim", metadata.namespace, metadata.name, metadata.uid, "v1")


def _claim(template: Template, name: str, namespace: str, factory: ObjectFactory) -> PersistentVolumeClaim:
    claim = factory.make(template, namespace=namespace, name=name)
    if not isinstance(claim, PersistentVolumeClaim):
        raise WorkloadError(template.path, "kind", f"a PersistentVolumeClaim is expected, not {template.kind}")
    return claim


def _volume(template: Template, claim: PersistentVolumeClaim, handle: str, factory: ObjectFactory) -> PersistentVolume:
    handle = f"{claim.namespace}-{handle}"  # volumes belong to no namespace, and must not meet
    volume = factory.make(template, name=handle)
    if not isinstance(volume, PersistentVolume):
        raise WorkloadError(template.path, "kind", f"a PersistentVolume is expected, not {template.kind}")
    spec = replace(volume.spec, claim_ref=reference_to(claim))
    if spec.csi is not None:
        spec = replace(spec, csi=replace(spec.csi, volume_handle=handle))
    if spec.aws_elastic_block_store is not None:
        spec = replace(spec, aws_elastic_block_store=replace(spec.aws_elastic_block_store, volume_id=handle))
    return replace(volume, spec=spec, status=replace(volume.status, phase="Bound"))


def _using(pod: Pod, claim: PersistentVolumeClaim) -> Pod:
    source = PersistentVolumeClaimVolumeSource(claim_name=claim.name)
    volume = Volume("vol", persistent_volume_claim=source)
    return replace(pod, spec=replace(pod.spec, volumes=(volume,)))
