"""What the files do not say and a report has to suppose: each is listed at its end, and `--strict` makes it an error.

A guess is about the cluster that was given: a kind that is not played, pods that request nothing, volumes that were not
dumped. How a question is asked (that no nodes are added meanwhile) is no guess: it is listed beside them, and holds.

Next: `kubesched.planning`, whose reports tell them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from kubesched.explanation.layout import counted
from kubesched.k8s.dumped_kinds import ByKind, missing_in
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.apps import CronJob, DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Node, Pod, PodSpec, PodTemplateSpec, ReplicationController
from kubesched.k8s.model.limits import HorizontalPodAutoscaler
from kubesched.k8s.model.manifests import Manifests
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from kubesched.scheduler.config import KubeSchedulerConfiguration

_ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_OUR_GROUP = "kubesched.dev"
_ADMISSION = "admissionregistration.k8s.io"
_MOST_NAMED = 3


class Guess(str):
    """An assumption about what was given: as a text, it is what the report says of it."""

    __slots__ = ()


class GuessedError(KubeschedError, ValueError):
    """Something had to be guessed, and nothing was to be."""


class Assuming(Protocol):
    @property
    def assumptions(self) -> tuple[str, ...]: ...


def check_unguessed(report: Assuming) -> None:
    """Raises GuessedError with a line for each guess of the report."""
    found = [text for text in report.assumptions if isinstance(text, Guess)]
    if found:
        raise GuessedError("\n".join(f"strict: {text}" for text in found))


# -- about what was given ----------------------------------------------------------------------------------------------


def guesses_about(found: Manifests) -> tuple[Guess, ...]:
    """In what was read."""
    by_kind: ByKind = {}
    for item in found.objects:
        by_kind.setdefault(type(item), []).append(item)
    told = [
        *_about_autoscalers(by_kind.get(HorizontalPodAutoscaler, ())),
        *_about_other_kinds(found.ignored),
        *_about_requests(by_kind),
        *_about_volumes(by_kind),
        *_about_zones(by_kind.get(Node, ())),
        *missing_in(found, "the cluster", is_simulation=True),
    ]
    return tuple(Guess(one if one.endswith(".") else f"{one}.") for one in told if not one.startswith("a dump with"))


def extender_guess(config: KubeSchedulerConfiguration) -> tuple[Guess, ...]:
    """Of what decisions leave out."""
    if not config.extenders:
        return ()
    n = len(config.extenders)
    return (Guess(f"{counted(n, 'extender')} of the configuration {'is' if n == 1 else 'are'} not called."),)


def _about_autoscalers(autoscalers: Sequence[KubeObject]) -> Iterator[str]:
    if autoscalers:
        n = len(autoscalers)
        told = f"{counted(n, 'HorizontalPodAutoscaler')} {'is' if n == 1 else 'are'} not played"
        yield f"{told}: workloads have the replicas that they have (--replicas min or max)."


def _about_other_kinds(ignored: Mapping[str, int]) -> Iterator[str]:
    """Of those that were passed over: webhooks, and what operators act on."""
    webhooks, others = Counter[str](), Counter[str]()
    for kind, n in ignored.items():
        group, name = kind.partition(" ")[0].rpartition("/")[0], kind.partition(" ")[2]
        if group == _ADMISSION:
            webhooks[name] += n
        elif "." in group and not group.endswith((".k8s.io", _OUR_GROUP)):
            others[f"{name}.{group}"] += n
    for found, follows in (
        (webhooks, "not asked: they might change or refuse pods"),
        (others, "not simulated: no controller acts on them"),
    ):
        if found:
            names = [f"{n} {name}" for name, n in sorted(found.items())]
            more = f" and {len(names) - _MOST_NAMED} more kinds" if len(names) > _MOST_NAMED else ""
            is_one = found.total() == 1
            yield f"{', '.join(names[:_MOST_NAMED])}{more} {'is' if is_one else 'are'} {follows}."


def _about_requests(by_kind: ByKind) -> Iterator[str]:
    pods = [pod for pod in _of(Pod, by_kind) if not pod.is_terminal]
    n_pods = sum(not _asks_for_something(pod.spec) for pod in pods)
    owners = {(owner.kind, pod.namespace, owner.name) for pod in pods if (owner := controller_of(pod.metadata))}
    sets = [item for item in by_kind.get(ReplicaSet, ()) if ("ReplicaSet", item.namespace, item.name) in owners]
    owners |= {("Deployment", item.namespace, owner.name) for item in sets if (owner := controller_of(item.metadata))}
    silent = [
        item
        for kind in (Deployment, StatefulSet, DaemonSet, Job, CronJob, ReplicaSet, ReplicationController)
        for item in by_kind.get(kind, ())
        if controller_of(item.metadata) is None
        and (type(item).__name__, item.namespace, item.name) not in owners
        and (template := _template_of(item)) is not None
        and not _asks_for_something(template.spec)
    ]
    told = [counted(n_pods, "pod")] if n_pods else []
    if silent:
        names = [f"{type(item).__name__} {item.key}" for item in silent]
        more = f" and {len(names) - _MOST_NAMED} more workloads" if len(names) > _MOST_NAMED else ""
        told.append(f"pods of {', '.join(names[:_MOST_NAMED])}{more}")
    if told:
        is_one = n_pods == 1 and not silent
        room = "it" if is_one else "them"
        yield f"{' and '.join(told)} {'requests' if is_one else 'request'} nothing, so there is always room for {room}."


def _template_of(item: KubeObject) -> PodTemplateSpec | None:
    if isinstance(item, CronJob):
        return item.spec.job_template.spec.template
    assert isinstance(item, Deployment | StatefulSet | DaemonSet | Job | ReplicaSet | ReplicationController)
    return item.spec.template


def _asks_for_something(spec: PodSpec) -> bool:
    if spec.resources is not None and (spec.resources.requests or spec.resources.limits):
        return True
    return any(
        container.resources is not None and (container.resources.requests or container.resources.limits)
        for container in (*spec.containers, *(spec.init_containers or ()))
    )


def _about_volumes(by_kind: ByKind) -> Iterator[str]:
    """Of claims that pods on nodes use; for a waiting pod, the scheduler says what its claim lacks."""
    claims = {
        item.key: item for item in by_kind.get(PersistentVolumeClaim, ()) if isinstance(item, PersistentVolumeClaim)
    }
    volumes = {item.name: item for item in by_kind.get(PersistentVolume, ()) if isinstance(item, PersistentVolume)}
    drivers = {
        item.name: {one.name for one in item.spec.drivers}
        for item in by_kind.get(CSINode, ())
        if isinstance(item, CSINode)
    }
    no_claim, no_volume, no_driver = set[str](), set[str](), set[str]()
    for pod in _of(Pod, by_kind):
        if not pod.spec.node_name or pod.is_terminal:
            continue
        for used in pod.spec.volumes or ():
            if used.persistent_volume_claim is None:
                continue
            key = f"{pod.namespace}/{used.persistent_volume_claim.claim_name}"
            claim = claims.get(key)
            name = claim.spec.volume_name if claim is not None else ""
            volume = volumes.get(name)
            if claim is None:
                no_claim.add(key)
            elif name and volume is None:
                no_volume.add(name)
            elif (csi := volume.spec.csi if volume else None) and csi.driver not in drivers.get(pod.spec.node_name, ()):
                no_driver.add(pod.spec.node_name)
    for names, what, follows in (
        (no_claim, "claim", "of running pods not given: their volumes are not known"),
        (no_volume, "volume", "of claims in use not given: where they can be reached is not known"),
        (no_driver, "node", "with volumes of a driver that no CSINode names: the limit of volumes is not known"),
    ):
        if names:
            listed = ", ".join(sorted(names)[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
            yield f"{counted(len(names), what)} {follows} ({listed})."


_Item = TypeVar("_Item", bound=KubeObject)


def _of(kind: type[_Item], by_kind: ByKind) -> Iterator[_Item]:
    return (item for item in by_kind.get(kind, ()) if isinstance(item, kind))


def _about_zones(nodes: Sequence[KubeObject]) -> Iterator[str]:
    """If zones are spoken of at all."""
    unzoned = [node.name for node in nodes if not any(key in (node.metadata.labels or {}) for key in _ZONES)]
    n_nodes = len(nodes)
    if unzoned and len(unzoned) < n_nodes:
        listed = ", ".join(sorted(unzoned)[:_MOST_NAMED]) + (", …" if len(unzoned) > _MOST_NAMED else "")
        yield f"{counted(len(unzoned), 'node')} of {n_nodes} without a zone ({listed}): no zone's failure meets them."
