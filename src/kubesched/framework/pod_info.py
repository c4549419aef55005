"""A pod as plugins see it: the object, and what follows from it, computed once for all pods with the same
signature.

Pods of one Deployment differ in name and node only, those of a DaemonSet in the node that they are for. What the
scheduler derives from a pod (requests, host ports, compiled affinity terms) depends on the rest, its *signature*, and
is shared by all pods with that signature.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from kubesched.k8s.model import selectors
from kubesched.k8s.model.core import (
    ContainerPort,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSpec,
    Toleration,
    WeightedPodAffinityTerm,
)
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.requests import PodResources, is_restartable, pod_resources
from kubesched.k8s.model.selectors import Labels, Selector


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """A compiled pod (anti-)affinity term: which pods it matches, and in which topology."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector
    weight: int = 0

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        """Whether the term matches a pod with these labels, in a namespace with those."""
        in_scope = namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return in_scope and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class PodAffinityTerms:
    required: tuple[AffinityTerm, ...] = ()
    required_anti: tuple[AffinityTerm, ...] = ()
    preferred: tuple[AffinityTerm, ...] = ()
    preferred_anti: tuple[AffinityTerm, ...] = ()
    errors: tuple[str, ...] = ()
    """Lists of terms that cannot be parsed, as `list: error`. Such a list counts as empty; the others count."""

    def __bool__(self) -> bool:
        return bool(self.required or self.required_anti or self.preferred or self.preferred_anti)


NO_AFFINITY = PodAffinityTerms()


class PodSignature:
    """What all pods with the same signature share. `pod` stands for any of them, without the node that it may be
    pinned to.

    `label_class` and `affinity_class` are the numbers that the pod table knows them by: pods with the same namespace
    and labels have one label class, pods with the same terms one affinity class (-1: no pod affinity at all).
    """

    def __init__(
        self, pod: Pod, label_class: int, affinity_class: int, without_claims: PodSignature | None = None
    ) -> None:
        self.pod = pod
        self.label_class = label_class
        self.affinity_class = affinity_class
        self.priority: int = pod.spec.priority or 0
        self._without_claims = without_claims

    @property
    def without_claims(self) -> PodSignature:
        """The signature of all pods that differ from these in the names of their claims alone; this one for pods that
        name none."""
        return self if self._without_claims is None else self._without_claims

    @cached_property
    def resources(self) -> PodResources:
        return pod_resources(self.pod) if self._without_claims is None else self._without_claims.resources

    @cached_property
    def host_ports(self) -> tuple[ContainerPort, ...]:
        """Ports on the node that the pod holds as long as it runs."""
        spec = self.pod.spec
        holders = [c for c in spec.init_containers or () if is_restartable(c)]
        holders.extend(spec.containers)
        return tuple(port for container in holders for port in container.ports or () if port.host_port > 0)

    @cached_property
    def affinity(self) -> PodAffinityTerms:
        return compile_pod_affinity(self.pod)

    @cached_property
    def claim_names(self) -> tuple[str, ...]:
        """`namespace/name` of the persistent volume claims that the pod names itself."""
        return tuple(
            f"{self.pod.namespace}/{volume.persistent_volume_claim.claim_name}"
            for volume in self.pod.spec.volumes or ()
            if volume.persistent_volume_claim is not None
        )


class PodInfo:
    """One pod. Cheap: everything derived lives in its signature."""

    __slots__ = ("key", "pin", "pod", "signature", "uid")

    def __init__(self, pod: Pod, signature: PodSignature, key: PodKey | None = None, pin: str = "") -> None:
        metadata = pod.metadata
        self.pod = pod
        self.signature = signature
        self.pin = pin
        """The one node that its required node affinity names, as that of a daemon's pod does; empty if it does not. It
        is no part of the signature."""
        self.key = pod.pod_key if key is None else key
        self.uid: str = metadata.uid or self.key
        """The uid, or for manifests that never met an API server, the key in its place."""

    @property
    def name(self) -> str:
        return self.pod.metadata.name

    @property
    def namespace(self) -> str:
        return self.pod.metadata.namespace

    def is_same_as(self, pod: Pod) -> bool:
        """Whether the object is this pod, perhaps in another state."""
        return (pod.metadata.uid or pod.pod_key) == self.uid

    @property
    def labels(self) -> dict[str, str]:
        return self.pod.labels

    @property
    def spec(self) -> PodSpec:
        return self.pod.spec

    @property
    def priority(self) -> int:
        return self.signature.priority

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        return self.pod.spec.tolerations or ()

    @property
    def resources(self) -> PodResources:
        return self.signature.resources

    @property
    def host_ports(self) -> tuple[ContainerPort, ...]:
        return self.signature.host_ports

    @property
    def affinity(self) -> PodAffinityTerms:
        return self.signature.affinity

    def __repr__(self) -> str:
        return f"PodInfo({self.key})"


def compile_pod_affinity(pod: Pod) -> PodAffinityTerms:
    """Never fails: the API server lets malformed selectors through, and a pod that has one still runs."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_AFFINITY
    toward = affinity.pod_affinity or PodAffinity()
    away = affinity.pod_anti_affinity or PodAntiAffinity()
    lists = {
        "requiredAffinityTerms": _plain(toward.required_during_scheduling_ignored_during_execution),
        "requiredAntiAffinityTerms": _plain(away.required_during_scheduling_ignored_during_execution),
        "preferredAffinityTerms": _weighted(toward.preferred_during_scheduling_ignored_during_execution),
        "preferredAntiAffinityTerms": _weighted(away.preferred_during_scheduling_ignored_during_execution),
    }
    compiled: list[tuple[AffinityTerm, ...]] = []
    errors: list[str] = []
    for name, terms in lists.items():
        try:
            compiled.append(tuple(_compile_term(pod, term, weight) for term, weight in terms))
        except selectors.SelectorError as error:
            compiled.append(())
            errors.append(f"{name}: {error}")
    required, required_anti, preferred, preferred_anti = compiled
    return PodAffinityTerms(required, required_anti, preferred, preferred_anti, tuple(errors))


def _plain(terms: Iterable[PodAffinityTerm] | None) -> Iterable[tuple[PodAffinityTerm, int]]:
    return ((term, 0) for term in terms or ())


def _weighted(terms: Iterable[WeightedPodAffinityTerm] | None) -> Iterable[tuple[PodAffinityTerm, int]]:
    return ((term.pod_affinity_term, term.weight) for term in terms or ())


def _compile_term(pod: Pod, term: PodAffinityTerm, weight: int) -> AffinityTerm:
    namespaces = frozenset(term.namespaces or ())
    if not namespaces and term.namespace_selector is None:
        namespaces = frozenset({pod.namespace})
    return AffinityTerm(
        topology_key=term.topology_key,
        selector=selectors.from_label_selector(term.label_selector),
        namespaces=namespaces,
        namespace_selector=selectors.from_label_selector(term.namespace_selector),
        weight=weight,
    )
