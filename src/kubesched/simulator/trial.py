"""A cluster that is loaded once, and trials on it: what would happen if nodes came or went, if pods came or left.

A trial changes the cluster itself, remembers the inverse of each change, and is taken back when it ends unless it is
committed. `settle` lets the scheduler place what waits. What is preempted or evicted comes back as a pod that waits, if
it has a controller that would recreate it.

Next: `settling` for the queue; `kubesched.scheduler.cluster.undo` for how a change is taken back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any

from msgspec.structs import replace

from kubesched.explanation.changes.what_if import Action, PatchPod, carry_out
from kubesched.explanation.explain import Explanation, explain_pending, pod_key
from kubesched.framework.handle import Registry
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.loaded_cluster import LoadedCluster, read_objects
from kubesched.k8s.model.apps import ReplicaSet
from kubesched.k8s.model.core import Node, Pod, PodStatus
from kubesched.k8s.model.manifests import KINDS
from kubesched.k8s.model.meta import KubeObject, PodKey, controller_of
from kubesched.k8s.model.resource import ResourceClaim, ResourceClaimStatus
from kubesched.k8s.model.spelling import did_you_mean
from kubesched.k8s.model.taints import UNSCHEDULABLE_TAINT
from kubesched.k8s.workloads.admission import admit_pod, with_object_defaults
from kubesched.k8s.workloads.pod_states import belongs_to_its_node
from kubesched.scheduler.build import build_schedulers, queue_profile
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.undo import UndoLog
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.score import ByName, Seeded
from kubesched.scheduler.queue import QueuedPodInfo
from kubesched.simulator.guesses import extender_guess
from kubesched.simulator.loading import SourcedObject, check
from kubesched.simulator.run import without_extenders
from kubesched.simulator.settling import PendingPod, Settled, Settling, TrialError
from kubesched.simulator.virtual.kubelets import as_unreachable

_LONG_AGO = "1970-01-01T00:00:00Z"
_FEW_KINDS = 500
Manifest = KubeObject | Mapping[str, Any] | str | PathLike[str]
"""A manifest as a dictionary, as YAML text or as the path of a file."""


class LoadedWorld:
    """A cluster with a scheduler, loaded once, to try things on. `kubesched.world` makes one."""

    def __init__(
        self,
        objects: Iterable[KubeObject],
        config: KubeSchedulerConfiguration,
        *,
        registry: Registry | None = None,
        tie_break: str = "random",
        seed: int = 0,
        refused: Sequence[str] = (),
        workloads: Sequence[KubeObject] = (),
        bounds: Sequence[KubeObject] = (),
        guesses: Sequence[str] = (),
        node_makers: Sequence[SourcedObject] = (),
        keeps_classes: bool | None = True,
        loaded: LoadedCluster | None = None,
    ) -> None:
        """Keeping classes of pods changes no answer. It pays where pods of a kind come one after another; None: where
        there are few kinds."""
        given = tuple(objects)
        self.cluster = Cluster.from_objects(given)
        self._made_of = (
            given,
            {
                "config": config,
                "registry": registry,
                "tie_break": tie_break,
                "seed": seed,
                "refused": refused,
                "workloads": workloads,
                "bounds": bounds,
                "guesses": guesses,
                "node_makers": node_makers,
                "keeps_classes": keeps_classes,
                "loaded": loaded,
            },
        )
        self.config = without_extenders(config)
        self.asked_config = config
        self.registry = registry
        self._loaded = loaded
        self._is_changed = False
        self.refused = tuple(refused)
        """Objects that an API server would not have let in, each with its answer."""
        self.workloads = tuple(workloads)
        """What makes pods, for questions about who would make which; the scheduler looks at none of it."""
        self.replica_sets: defaultdict[str, list[ReplicaSet]] = defaultdict(list)
        """By the uid of their deployment."""
        for item in self.workloads:
            if isinstance(item, ReplicaSet) and (owner := controller_of(item.metadata)) is not None:
                self.replica_sets[owner.uid].append(item)
        self.bounds = tuple(bounds)
        """Quotas and limit ranges, for questions about which pods an API server would let in."""
        self.guesses = (*guesses, *extender_guess(config))
        """What had to be supposed about the cluster: reports tell it."""
        self.node_makers = tuple(node_makers)
        """NodePools and the like, for questions about which nodes may come and go."""
        if keeps_classes is None:
            keeps_classes = len({id(info.signature) for info in self.cluster.placed.values()}) <= _FEW_KINDS
        self.tie_break, self.seed = tie_break, seed
        self._ties = ByName() if tie_break == "name" else Seeded(seed)
        self._schedulers = build_schedulers(
            self.cluster, self.config, self._ties, registry=registry, keeps_classes=keeps_classes
        )
        self._profiles = {name: queue_profile(s.profile, has_extenders=False) for name, s in self._schedulers.items()}
        self._trials: list[WorldTrial] = []

    def trial(self) -> WorldTrial:
        """A trial on the cluster, or on the trial that is under way: `with world.trial() as trial: …`."""
        return WorldTrial(self)

    @property
    def loaded(self) -> LoadedCluster:
        """What it was made of, for questions that begin anew. Raises TrialError if it is not like that any more."""
        if self._loaded is None or self._is_changed:
            why = "a trial has changed it" if self._is_changed else "it was not made by kubesched.world"
            raise TrialError(f"this world cannot be played from its beginning: {why}; give the files")
        return self._loaded

    def again(self, arranged: Callable[[Sequence[KubeObject]], Sequence[KubeObject]] = tuple) -> LoadedWorld:
        """Made anew of the same objects, or of these in another arrangement. Raises TrialError if it is not like that
        any more."""
        if self._is_changed:
            raise TrialError("this world cannot be made anew: a trial has changed it; give the files")
        objects, asked = self._made_of
        return _made(arranged(objects), asked)

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes, which make it anew."""
        if self._is_changed or self._trials:
            raise TypeError("a world that a trial has changed stays in its process")
        objects, asked = self._made_of
        return _made, (objects, {**asked, "loaded": None})

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes, in the order in which the scheduler goes through them."""
        names = self.cluster.table.names
        return [names[row] for row in self.cluster.rows_in_order.tolist()]

    @property
    def placed(self) -> dict[str, str]:
        """The pods that have a node, and which."""
        return {key: info.spec.node_name for key, info in self.cluster.placed.items()}

    @property
    def pending(self) -> list[PodKey]:
        """The pods that have no node, in the order in which they came."""
        return list(self.cluster.pending)

    def node(self, name: str) -> Node:
        """The node of this name. Raises TrialError."""
        row = self.cluster.table.rows.get(name)
        if row is None:
            raise TrialError(f"there is no node {name}{did_you_mean(name, self.cluster.table.rows)}")
        return self.cluster.table.nodes[row]

    def pod(self, name: str) -> PodInfo:
        """The pod `namespace/name`. Raises TrialError."""
        info = self.cluster.find_pod(pod_key(name))
        if info is None:
            known = (*self.cluster.placed, *self.cluster.pending)
            raise TrialError(f"there is no pod {pod_key(name)}{did_you_mean(pod_key(name), known)}")
        return info

    def pods_on(self, node_name: str) -> list[PodInfo]:
        """The pods that the node holds. Raises TrialError."""
        self.node(node_name)
        return list(self.cluster.table.pods.on(self.cluster.table.rows[node_name]))

    def scheduler_of(self, info: PodInfo) -> ProfileScheduler | None:
        """Who decides for the pod; None if that is another scheduler's business."""
        return self._schedulers.get(info.spec.scheduler_name)

    def _state(self) -> tuple[Any, ...]:
        """What decisions depend on beside the cluster."""
        ties = self._ties.state() if isinstance(self._ties, Seeded) else ()
        return ties, [scheduler.next_start for scheduler in self._schedulers.values()]

    def _restore(self, state: tuple[Any, ...]) -> None:
        ties, starts = state
        if isinstance(self._ties, Seeded):
            self._ties.restore(ties)
        for scheduler, start in zip(self._schedulers.values(), starts, strict=True):
            scheduler.next_start = start

    def _in_order(self, waiting: Sequence[PodInfo]) -> list[PodInfo]:
        """As the queue would give them, if all came in this order."""
        queued = [
            QueuedPodInfo(info, self._profiles[info.spec.scheduler_name], float(place))
            for place, info in enumerate(waiting)
            if info.spec.scheduler_name in self._profiles
        ]
        return [one.info for one in sorted(queued, key=lambda one: one.profile.sort_key(one))]


def _made(objects: Sequence[KubeObject], asked: Mapping[str, Any]) -> LoadedWorld:
    return LoadedWorld(objects, **asked)


class WorldTrial:
    """Changes to a world, taken back on leaving the `with` block unless `commit` was called. Trials may be nested."""

    def __init__(self, world: LoadedWorld) -> None:
        self._world = world
        self._cluster = world.cluster
        self._before = world._state()
        self._undo = UndoLog(world.cluster)
        self._version = 0
        """Grows with each change."""
        world._trials.append(self)

    def __enter__(self) -> WorldTrial:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self in self._world._trials:
            for inner in reversed(self._world._trials[self._world._trials.index(self) :]):
                inner.revert()

    @property
    def world(self) -> LoadedWorld:
        """The world as it is with the trial's changes."""
        return self._world

    def trial(self) -> WorldTrial:
        """A trial within this one."""
        self._check_open()
        return self._world.trial()

    def commit(self) -> None:
        """The changes stay: in the world, or in the trial around this one."""
        self._check_open()
        trials = self._world._trials
        trials.pop()
        if trials:
            self._undo.keep_in(trials[-1]._undo)
            trials[-1]._version += 1
        else:
            self._world._is_changed = True

    def revert(self) -> None:
        """Everything is as it was when the trial began."""
        self._check_open()
        self._undo.revert()
        self._world._restore(self._before)
        self._world._trials.pop()

    # -- changes -------------------------------------------------------------------------------------------------------

    def add_node(self, node: Manifest) -> str:
        """A node comes. Gives its name."""
        found: Node = self._read(node, Node)
        if found.name in self._cluster.table.rows:
            raise TrialError(f"there is a node {found.name} already")
        self._undo.put_node(found)
        self._version += 1
        return found.name

    def delete_node(self, name: str) -> None:
        """A node goes, and the pods on it with it; those with a controller wait again, but for daemons' pods."""
        self._check_open()
        for info in self._world.pods_on(name):
            self._leave(info, for_good=belongs_to_its_node(info.pod))
        self._undo.remove_node(name)
        self._version += 1

    def cordon(self, name: str) -> None:
        """No pod may come to the node any more."""
        self._close(name, closed=True)

    def uncordon(self, name: str) -> None:
        self._close(name, closed=False)

    def drain(self, name: str) -> None:
        """Cordons the node and evicts its pods, but for those of daemons and of the node itself."""
        self.cordon(name)
        for info in self._world.pods_on(name):
            if not belongs_to_its_node(info.pod):
                self._leave(info)

    def lose_node(self, name: str) -> None:
        """The node's kubelet is silent for good, and that was noticed: the node is NotReady and tainted as unreachable.
        Its pods are still there; `strand` asks them to go."""
        self._check_open()
        self._undo.put_node(as_unreachable(self._world.node(name)))
        self._version += 1

    def strand(self, *pods: str) -> list[PodKey]:
        """Pods are asked to go, but no kubelet ends them: they stay, Terminating. Controllers make others at once,
        which wait for a node; not so a StatefulSet. Gives the new ones."""
        self._check_open()
        made = []
        for name in pods:
            info = self._world.pod(name)
            pod = info.pod
            leaving = replace(pod, metadata=replace(pod.metadata, deletion_timestamp=_LONG_AGO))
            self._undo.put_pod(PodInfo(leaving, info.signature, info.key, info.pin))
            owner = controller_of(pod.metadata)
            if owner is not None and owner.kind != "StatefulSet":
                made.append(self._make_anew(info, f"{pod.name}-anew"))
        self._version += 1
        return made

    def evict(self, *pods: str) -> None:
        """Pods `namespace/name` leave their nodes. One with a controller waits again, under its name; others are
        gone. Disruption budgets are not asked."""
        self._check_open()
        for name in pods:
            self._leave(self._world.pod(name))

    def delete_pod(self, name: str) -> None:
        """A pod goes for good."""
        self._check_open()
        self._leave(self._world.pod(name), for_good=True)

    def add_pod(self, pod: Manifest) -> PodKey:
        """A pod comes, and waits for a node. Gives its key."""
        return self.add_admitted(self._admitted(self._read(pod, Pod)))

    def read_pod(self, pod: Manifest) -> Pod:
        """A pod as an API server would complete it, without adding it."""
        return self._admitted(self._read(pod, Pod))

    def add_pods(self, pods: Iterable[Manifest]) -> list[PodKey]:
        return [self.add_pod(pod) for pod in pods]

    def add_admitted(self, pod: Pod) -> PodKey:
        """The same for a pod that an API server has completed."""
        self._check_open()
        if self._cluster.find_pod(pod.pod_key) is not None:
            raise TrialError(f"there is a pod {pod.pod_key} already")
        pod = replace(pod, metadata=replace(pod.metadata, uid=""))  # it is a new one, whatever it was copied from
        self._undo.put_pod(self._cluster.signatures.info(pod, pod.pod_key), pod.status.nominated_node_name)
        self._version += 1
        return pod.pod_key

    def reorder_pending(self, order: Iterable[PodKey]) -> None:
        """The pods that wait came in this order."""
        self._check_open()
        self._undo.reorder_pending(order)
        self._version += 1

    def reseed(self, seed: int) -> None:
        """Ties are broken as by a scheduler with this seed."""
        self._check_open()
        if isinstance(self._world._ties, Seeded):
            self._world._ties.restore(Seeded(seed).state())

    def carry_out(self, actions: Iterable[Action]) -> None:
        """What a change of an explanation asks for is done; for what it asks of the pod, see `PatchPod`."""
        self._check_open()
        for action in actions:
            if not isinstance(action, PatchPod):
                carry_out(action, self._cluster, self._undo)
        self._version += 1

    def put_object(self, item: KubeObject) -> None:
        """Any object that is neither a node nor a pod is added, or changed into this."""
        self._check_open()
        self._undo.put_object(with_object_defaults(item))
        self._version += 1

    def _admitted(self, pod: Pod) -> Pod:
        objects = self._cluster.objects
        return admit_pod(pod, objects.priority_classes, objects.runtime_classes)

    def _close(self, name: str, *, closed: bool) -> None:
        self._check_open()
        node = self._world.node(name)
        others = tuple(taint for taint in node.spec.taints or () if taint != UNSCHEDULABLE_TAINT)
        taints = (*others, UNSCHEDULABLE_TAINT) if closed else others
        self._undo.put_node(replace(node, spec=replace(node.spec, unschedulable=closed, taints=taints or None)))
        self._version += 1

    def _leave(self, info: PodInfo, *, for_good: bool = False) -> None:
        pod = info.pod
        self._give_back_devices(pod)
        owner = controller_of(pod.metadata)
        is_replaced = pod.is_terminating and owner is not None and owner.kind != "StatefulSet"
        if for_good or owner is None or is_replaced:
            self._undo.remove_pod(info.key)
        else:
            self._make_anew(info, pod.name)
        self._version += 1

    def _make_anew(self, info: PodInfo, name: str) -> PodKey:
        """The pod as its controller makes it again: it waits for a node."""
        pod = info.pod
        is_renamed = name != pod.name
        uid = f"{pod.metadata.uid}-anew" if is_renamed and pod.metadata.uid else pod.metadata.uid
        metadata = replace(pod.metadata, name=name, uid=uid, deletion_timestamp=None)
        status = PodStatus(phase="Pending", resource_claim_statuses=pod.status.resource_claim_statuses)
        waiting = replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=status)
        key = waiting.pod_key if is_renamed else info.key
        self._undo.put_pod(PodInfo(waiting, info.signature, key, info.pin))
        return key

    def _give_back_devices(self, pod: Pod) -> None:
        """A claim that no pod uses any more is not allocated any more; the pod's next one is made of the same
        template."""
        named = {claim.resource_claim_name for claim in pod.spec.resource_claims or ()}
        made = {status.resource_claim_name for status in pod.status.resource_claim_statuses or ()}
        for name in sorted(filter(None, named | made)):
            claim = self._cluster.objects.resource_claims.get(f"{pod.namespace}/{name}")
            if claim is None or claim.status.allocation is None:
                continue
            users = tuple(user for user in claim.status.reserved_for or () if user.name != pod.metadata.name)
            status = replace(claim.status, reserved_for=users) if users else ResourceClaimStatus()
            changed: ResourceClaim = replace(claim, status=status)
            self._undo.put_object(changed)

    # -- what comes of them --------------------------------------------------------------------------------------------

    def settle(self, *, to_first_failure: bool = False) -> Settled:
        """The scheduler places what waits, until nothing changes any more; or, for who needs to know only whether all
        can be placed, until one finds no node without preemption."""
        self._check_open()
        run = Settling(self)
        return run.to_first_failure() if to_first_failure else run.to_rest()

    def fill(self, pod: Manifest, most: int) -> tuple[list[str], PendingPod | None]:
        """Copies of a pod come one after another until one finds no node, or `most` have one; none of them preempts.
        Gives the node of each, and the copy that found none (which is not there any more)."""
        self._check_open()
        template = self._admitted(self._read(pod, Pod)) if not isinstance(pod, Pod) else pod
        return self.place_each(copies_of(template, most))

    def place_each(self, pods: Iterable[Pod]) -> tuple[list[str], PendingPod | None]:
        """Pods that an API server has completed come one after another until one finds no node without preemption.
        Gives the node of each, and the one that found none (which is not there any more)."""
        self._check_open()
        run, nodes = Settling(self), list[str]()
        info: PodInfo | None = None
        for pod in pods:
            info = self._cluster.signatures.info_like(pod, info, pod.pod_key)
            if self._cluster.find_pod(info.key) is not None:
                raise TrialError(f"there is a pod {info.key} already")
            node_name, failed = run.place_or_say_why(info)
            if failed is not None:
                return nodes, failed
            nodes.append(node_name)
        return nodes, None

    def explain(self, pod: str) -> Explanation:
        """Why a pod that waits goes where it would go now, or nowhere."""
        self._check_open()
        info = self._world.pod(pod)
        scheduler = self._world.scheduler_of(info)
        if scheduler is None:
            raise TrialError(f"pod {info.key} is the business of scheduler {info.spec.scheduler_name}")
        if info.spec.node_name:
            raise TrialError(f"pod {info.key} has a node: {info.spec.node_name}")
        before = self._world._state()
        explanation = explain_pending(self._cluster, scheduler, info, self._world.config)
        self._world._restore(before)
        return explanation

    # -- helpers -------------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        trials = self._world._trials
        if self not in trials:
            raise TrialError("the trial has ended")
        if trials[-1] is not self:
            raise TrialError("a trial within this one has not ended")

    def _read(self, given: Manifest, kind: type[Any]) -> Any:
        self._check_open()
        if isinstance(given, KubeObject):
            items, source = [given], ""
        else:
            found = read_objects(given, KINDS)
            items = list(found.objects)
            source = found.source_of(items[0]) if items else ""
        if len(items) != 1 or not isinstance(items[0], kind):
            raise TrialError(f"one manifest of kind {kind.__name__} is expected")
        check(items[0], None, source)
        return with_object_defaults(items[0])


def copies_of(pod: Pod, most: int) -> Iterator[Pod]:
    """`web-1`, `web-2` and so on."""
    for number in range(1, most + 1):
        yield replace(pod, metadata=replace(pod.metadata, name=f"{pod.name}-{number}", uid=""))
