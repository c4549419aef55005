"""From pods and machines to numbers: classes of pods, options to buy, and who may go where.

Who may go where is asked of the scheduler itself: a node of each option is imagined, with its daemons on it, and the
filters that look at one node at a time are run on all of them. Rules between pods on one node (host ports, pods that
keep away from each other) become resources of which a node has one; rules between nodes are left to the judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed

import numpy as np
from msgspec.structs import replace

from kubesched.framework.caching import WITHIN_NODE
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import RowArray
from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.requests import CPU, MEMORY, PODS, pod_resources
from kubesched.k8s.model.resource import DeviceClass, ResourceSlice
from kubesched.planning.catalogue import NANOS, ZONE, Option
from kubesched.planning.new_nodes import HOSTNAME, daemon_on, sample_node
from kubesched.planning.plan.model import UNLIMITED, Bools, BuyingOption, FreeRoom, Ints, PackedClass, PackingModel
from kubesched.planning.plan.request import PlannedWorld
from kubesched.scheduler.cluster.view import NodeRow
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.enqueue import checked_pre_enqueue
from kubesched.scheduler.engine.filter import ask
from kubesched.scheduler.engine.prefilter import run_pre_filter
from kubesched.scheduler.plugins.dynamic_resources.device_checks import is_selected
from kubesched.scheduler.plugins.dynamic_resources.outcomes import AllocationError, SearchBudget
from kubesched.scheduler.plugins.dynamic_resources.published import SliceReader
from kubesched.scheduler.plugins.dynamic_resources.requests import Want, read_claim
from kubesched.scheduler.plugins.node_volume_limits.ledger import volumes_of_pod
from kubesched.simulator.trial import LoadedWorld, WorldTrial

_OF_NODES_AND_VOLUMES = frozenset({"VolumeBinding", "VolumeZone", "NodeVolumeLimits", "DynamicResources"})
"""They look further than at one node, yet what they say of an empty one stays true."""


@dataclass(frozen=True, slots=True)
class Unplaceable:
    """Pods that no machine of the catalogue can hold."""

    pods: tuple[PodKey, ...]
    reasons: dict[str, list[str]]
    """What each reason keeps from holding it, by name."""


@dataclass(slots=True)
class ReadProblem:
    model: PackingModel
    unplaceable: list[Unplaceable]
    dropped: dict[str, str]
    """Options that are never worth buying, and why."""
    left_out: dict[str, int]
    """Why pods are not planned for, and how many."""
    pods: tuple[PodKey, ...]
    """Those to be placed."""
    requests: dict[PodKey, dict[str, int]] = field(default_factory=dict)
    """What each asks for."""
    zones_apart: bool = False


@dataclass(slots=True)
class _Kind:
    """Pods with one signature."""

    info: PodInfo
    scheduler: ProfileScheduler
    keys: list[PodKey]
    volumes: dict[str, int]
    devices: dict[str, int]
    """Of each class, how many it gets to itself."""
    fits: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    on_existing: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    reasons: dict[str, list[str]] = field(default_factory=dict)


def read_problem(
    planned: PlannedWorld,
    *,
    objective: str = "cost",
    intent: bool = False,
    headroom_percent: int = 0,
    zones_apart: bool = False,
    keeps_worse: bool = False,
    counts_preemptible: bool = True,
    follows_weights: bool = False,
) -> ReadProblem:
    """With `zones_apart`, machines that differ in the zone alone are different options in any case; otherwise only if
    a pod minds zones. With `keeps_worse`, a machine is an option even if another one beats it in everything. Unless
    pods that could be preempted are counted, only those that wait are to be placed. With `follows_weights`, each pod's
    machine comes of the heaviest pool that has one for it."""
    world, options = planned.world, planned.options
    left_out: dict[str, int] = {}
    with world.trial() as trial:
        movable = _take_off_those_that_could_be_preempted(world, trial) if counts_preemptible else []
        kinds = _kinds(world, (*world.cluster.pending.values(), *movable), left_out)
        existing_rows = np.arange(world.cluster.table.n)
        rows, too_small = _imagine(planned, trial)
        for kind in kinds:
            _ask(world, kind, rows, existing_rows, options, too_small)
            if follows_weights and kind.fits.any():
                weights = np.array([option.pool.weight for option in options])
                kind.fits &= weights == weights[kind.fits].max()
        placeable = [kind for kind in kinds if kind.fits.any() or kind.on_existing.any()]
        lost = [Unplaceable(tuple(k.keys), k.reasons) for k in kinds if not (k.fits.any() or k.on_existing.any())]
        resources = _Resources(world, placeable, intent=intent)
        capacity = resources.capacity(rows, [option.shape.volume_limits for option in options])
        capacity[:, : resources.n_amounts] -= capacity[:, : resources.n_amounts] * headroom_percent // 100
        free = resources.capacity(existing_rows, [{}] * len(existing_rows))
        zones_apart |= any(_zone_rule(kind, world)[0] for kind in placeable)
        model, dropped = _model(
            placeable,
            resources,
            capacity,
            free,
            options,
            objective,
            zones_apart=zones_apart,
            keeps_worse=keeps_worse,
        )
    keys = tuple(key for kind in kinds for key in kind.keys)
    requests = {key: kind.info.resources.wanted for kind in kinds for key in kind.keys}
    return ReadProblem(model, lost, dropped, left_out, keys, requests, zones_apart)


def _take_off_those_that_could_be_preempted(world: LoadedWorld, trial: WorldTrial) -> list[PodInfo]:
    """Pods in place that a pending pod may preempt can end up anywhere: a bound must count them as pods to place."""
    highest = max(
        (i.priority for i in world.cluster.pending.values() if i.spec.preemption_policy != "Never"), default=None
    )
    if highest is None or highest <= world.cluster.table.pods.lowest_priority:
        return []
    movable = [info for info in list(world.cluster.placed.values()) if info.priority < highest and not info.pin]
    for info in movable:
        trial.delete_pod(info.key)
    return movable


def _kinds(world: LoadedWorld, infos: Iterable[PodInfo], left_out: dict[str, int]) -> list[_Kind]:
    found: dict[PodSignature, _Kind] = {}
    for info in infos:
        scheduler = world.scheduler_of(info)
        if scheduler is None:
            reason = f"for scheduler {info.spec.scheduler_name}"
        elif info.pin:
            reason = "of daemons"
        elif not checked_pre_enqueue(scheduler.profile, info).is_success:
            reason = "with scheduling gates"
        else:
            if info.signature not in found:
                found[info.signature] = _Kind(info, scheduler, [], _volumes(world, info), _devices(world, info))
            found[info.signature].keys.append(info.key)
            continue
        left_out[reason] = left_out.get(reason, 0) + 1
    return list(found.values())


def _volumes(world: LoadedWorld, info: PodInfo) -> dict[str, int]:
    """How many volumes of each CSI driver the pod brings to a node, but for those that others use too."""
    volumes = volumes_of_pod(world.cluster.objects, info.pod, has_csi_node=True, is_new=True)
    counts: dict[str, int] = {}
    if isinstance(volumes, frozenset):
        for volume in sorted(volumes):
            counts[volume.driver] = counts.get(volume.driver, 0) + 1
    return counts


def _devices(world: LoadedWorld, info: PodInfo) -> dict[str, int]:
    """How many devices of each class the pod needs from its node, as far as that is sure: of claims that are its own,
    what is asked for by number."""
    counts: dict[str, int] = {}
    objects = world.cluster.objects
    for made in info.pod.status.resource_claim_statuses or ():
        claim = objects.resource_claims.get(f"{info.namespace}/{made.resource_claim_name}")
        for want, *_ in () if claim is None else read_claim(claim, objects.device_classes).requests:
            is_sure = not (want.parent or want.wants_all or want.admin_access or want.capacity)
            if is_sure and want.device_class is not None:
                name = want.device_class.name
                counts[name] = counts.get(name, 0) + want.count
    return counts


def _n_devices(slices: Iterable[ResourceSlice], device_class: DeviceClass) -> int:
    """How many devices the class selects, at most."""
    want = Want("", "", device_class, (), wants_all=False, count=1, admin_access=False, tolerations=None, capacity={})
    reader, n = SliceReader(), 0
    for one in slices:
        for device in reader.read(one).content.devices:
            try:
                if not is_selected(want, device, "", SearchBudget()):
                    continue
            except AllocationError:
                pass  # whoever asks for it is told; here it counts
            if device.is_shareable:
                return UNLIMITED
            n += 1
    return n


def _imagine(planned: PlannedWorld, trial: WorldTrial) -> tuple[RowArray, Bools]:
    """A node of each option with its daemons on it: their rows, and those on which daemons have no room."""
    cluster = planned.world.cluster
    names: list[str] = []
    for number, (option, daemons) in enumerate(zip(planned.options, planned.daemons, strict=True)):
        node, *others = sample_node(option, number)
        names.append(trial.add_node(node))
        for item in others:
            trial.put_object(item)
        for n, daemon in enumerate(daemons):
            pod = daemon_on(daemon, node.name, f"{number}-{n}")
            trial.add_admitted(_on(pod, node.name))
    rows = np.array([cluster.table.rows[name] for name in names], dtype=np.intp)
    too_small = np.zeros(len(names), dtype=np.bool_)
    for position, row in enumerate(rows.tolist()):
        node_row = NodeRow(cluster.table, row)
        asked = {name for daemon in planned.daemons[position] for name in _amounts(daemon)}
        short = any(node_row.requested(name) > node_row.allocatable(name) for name in asked)
        too_small[position] = short or node_row.pod_count > node_row.allowed_pods
    return rows, too_small


def _amounts(pod: Pod) -> Iterable[str]:
    return pod_resources(pod).wanted


def _on(pod: Pod, node_name: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node_name))


def _ask(
    world: LoadedWorld,
    kind: _Kind,
    rows: RowArray,
    existing: RowArray,
    options: Sequence[Option],
    too_small: Bools,
) -> None:
    """What the filters that look at one node say of the imagined nodes and of those that are there."""
    cluster, info, profile = world.cluster, kind.info, kind.scheduler.profile
    asked = np.concatenate([rows, existing])
    alive = np.ones(len(asked), dtype=np.bool_)
    alive[: len(rows)] &= ~too_small
    for position in np.flatnonzero(too_small).tolist():
        kind.reasons.setdefault("Daemons leave no room", []).append(options[position].name)
    cycle = CycleState()
    nodes = cluster.nodes
    before = run_pre_filter(profile, cycle, info, nodes)
    if not before.status.is_success:
        kind.reasons[before.status.message] = ["every machine"]
        alive[:] = False
    elif before.node_names is not None:
        names = cluster.table.names
        alive &= np.array([names[row] in before.node_names for row in asked.tolist()], dtype=np.bool_)
    table = nodes.take(asked)
    for step in profile.filter:
        within = step.scope_for(info) in WITHIN_NODE or step.name in _OF_NODES_AND_VOLUMES
        if step.name in cycle.skip_filter or not within or not alive.any():
            continue
        verdicts = ask(step, cycle, info, table)
        if not verdicts.reasons:
            continue
        for reason, bits in zip(verdicts.reasons, verdicts.bits, strict=True):
            for position in np.flatnonzero(bits[: len(rows)] & alive[: len(rows)]).tolist():
                kind.reasons.setdefault(reason, []).append(options[position].name)
        alive &= ~verdicts.bits.any(axis=0)
    kind.fits, kind.on_existing = alive[: len(rows)], alive[len(rows) :]


class _Resources:
    """All that limits what a node holds, and how much of each a pod needs."""

    def __init__(self, world: LoadedWorld, kinds: Sequence[_Kind], *, intent: bool) -> None:
        self._world = world
        amounts = {name for kind in kinds for name, units in kind.info.resources.wanted.items() if units > 0}
        self.amounts = sorted(amounts, key=lambda name: (name not in (CPU, MEMORY), name))
        self.n_amounts = len(self.amounts)
        self.drivers = sorted({driver for kind in kinds for driver in kind.volumes})
        self.device_classes = sorted({name for kind in kinds for name in kind.devices})
        self.groups: list[tuple[str, int, frozenset[int]]] = []
        """(name, how many of the kinds' pods a node holds, the kinds)"""
        self._add_ports(kinds)
        self.apart = self._add_those_that_keep_away(kinds)
        if intent:
            self._add_spreads(kinds)
        devices = (f"devices of {name}" for name in self.device_classes)
        self.names = (*self.amounts, PODS, *self.drivers, *devices, *(name for name, _, _ in self.groups))

    def requests(self, number: int, kind: _Kind) -> list[int]:
        wanted = kind.info.resources.wanted
        return [
            *(wanted.get(name, 0) for name in self.amounts),
            1,
            *(kind.volumes.get(driver, 0) for driver in self.drivers),
            *(kind.devices.get(name, 0) for name in self.device_classes),
            *(int(number in members) for _, _, members in self.groups),
        ]

    def capacity(self, rows: RowArray, volume_limits: Sequence[object]) -> Ints:
        table = self._world.cluster.table
        found = []
        devices = self._devices_by_node()
        for row, limits in zip(rows.tolist(), volume_limits, strict=True):
            node = NodeRow(table, row)
            assert isinstance(limits, dict)
            found.append(
                [
                    *(max(0, node.allocatable(name) - node.requested(name)) for name in self.amounts),
                    max(0, node.allowed_pods - node.pod_count),
                    *(limits.get(driver, UNLIMITED) for driver in self.drivers),
                    *(by_node.get(node.name, elsewhere) for by_node, elsewhere in devices),
                    *(most for _, most, _ in self.groups),
                ]
            )
        return np.array(found, dtype=np.int64).reshape(len(found), len(self.names))

    def _devices_by_node(self) -> list[tuple[dict[str, int], int]]:
        """For each class of devices, how many a node has of its own, and how many a node has without any. Devices that
        several nodes can reach could be anybody's: then no number is sure."""
        if not self.device_classes:
            return []
        objects = self._world.cluster.objects
        local: dict[str, list[ResourceSlice]] = {}
        for one in objects.resource_slices.values():
            local.setdefault(one.spec.node_name or "", []).append(one)
        shared, found = local.pop("", []), []
        for name in self.device_classes:
            device_class = objects.device_classes[name]
            if _n_devices(shared, device_class):
                found.append((dict[str, int](), UNLIMITED))
            else:
                found.append(({node: _n_devices(slices, device_class) for node, slices in local.items()}, 0))
        return found

    def _add_ports(self, kinds: Sequence[_Kind]) -> None:
        """Pods that want the same port of the node; one without an address wants it at every address."""
        by_port: dict[tuple[str, int], dict[str, set[int]]] = {}
        for number, kind in enumerate(kinds):
            for port in kind.info.host_ports:
                ip = "" if port.host_ip in (None, "", "0.0.0.0", "::") else port.host_ip
                by_port.setdefault((port.protocol or "TCP", port.host_port), {}).setdefault(ip, set()).add(number)
        for (protocol, port_number), by_ip in sorted(by_port.items()):
            everywhere = by_ip.get("", set())
            for ip, members in sorted(by_ip.items()):
                name = f"host port {protocol} {ip + ':' if ip else ''}{port_number}"
                self.groups.append((name, 1, frozenset(members | everywhere)))

    def _add_those_that_keep_away(self, kinds: Sequence[_Kind]) -> Bools:
        """Required anti-affinity by host name: those that all keep away from one another become a resource; what is
        left is told pair by pair."""
        n = len(kinds)
        apart = np.zeros((n, n), dtype=np.bool_)
        labels_of = [self._world.cluster.namespace_labels(kind.info.namespace) for kind in kinds]
        for a, kind in enumerate(kinds):
            for term in kind.info.affinity.required_anti:
                if term.topology_key == HOSTNAME:
                    for b, other in enumerate(kinds):
                        if term.matches(other.info.namespace, other.info.labels, labels_of[b]):
                            apart[a, b] = apart[b, a] = True
        cliques: dict[bytes, set[int]] = {}
        for a in np.flatnonzero(np.diagonal(apart)).tolist():
            cliques.setdefault(apart[a].tobytes(), set()).add(a)
        for members in cliques.values():
            first = min(members)
            self.groups.append((f"one a node of {kinds[first].keys[0]}", 1, frozenset(members)))
            for a in members:
                apart[a, list(members)] = False
        return apart

    def _add_spreads(self, kinds: Sequence[_Kind]) -> None:
        """As if an empty node always existed: no more than maxSkew of the pods that a spread by host name selects."""
        by_rule: dict[tuple[object, ...], set[int]] = {}
        for number, kind in enumerate(kinds):
            for rule in kind.info.spec.topology_spread_constraints or ():
                if rule.topology_key == HOSTNAME and rule.when_unsatisfiable == "DoNotSchedule":
                    selector = repr((rule.label_selector, rule.match_label_keys))
                    by_rule.setdefault((kind.info.namespace, selector, rule.max_skew), set()).add(number)
        for (_, _, skew), members in by_rule.items():
            assert isinstance(skew, int)
            self.groups.append((f"spread of {kinds[min(members)].keys[0]}", skew, frozenset(members)))


def _zone_rule(kind: _Kind, world: LoadedWorld) -> tuple[str, int]:
    info = kind.info
    own_labels = world.cluster.namespace_labels(info.namespace)
    for term in info.affinity.required_anti:
        if term.topology_key == ZONE and term.matches(info.namespace, info.labels, own_labels):
            return "apart", 1
    for rule in info.spec.topology_spread_constraints or ():
        if rule.topology_key == ZONE and rule.when_unsatisfiable == "DoNotSchedule":
            return "spread", rule.max_skew
    if any(term.topology_key == ZONE for term in info.affinity.required):
        return "together", 1
    return "", 1


def class_key(requests: tuple[int, ...], *rules: object) -> object:
    """Pods for which this is the same are one class."""
    return requests, *rules


def _model(
    kinds: Sequence[_Kind],
    resources: _Resources,
    capacity: Ints,
    free: Ints,
    options: Sequence[Option],
    objective: str,
    *,
    zones_apart: bool,
    keeps_worse: bool,
) -> tuple[PackingModel, dict[str, str]]:
    merged: dict[object, list[int]] = {}
    for number, kind in enumerate(kinds):
        key = class_key(
            tuple(resources.requests(number, kind)),
            kind.fits.tobytes(),
            kind.on_existing.tobytes(),
            resources.apart[number].tobytes(),
            _zone_rule(kind, resources._world),
        )
        merged.setdefault(key, []).append(number)
    order = sorted(merged.values(), key=lambda n: [-a for a in resources.requests(n[0], kinds[n[0]])])
    classes, requests = [], []
    for numbers in order:
        first = kinds[numbers[0]]
        rule, skew = _zone_rule(first, resources._world)
        classes.append(PackedClass(tuple(key for n in numbers for key in kinds[n].keys), rule, skew))
        requests.append(resources.requests(numbers[0], first))
    firsts = [numbers[0] for numbers in order]
    shape = (len(firsts), len(resources.names))
    asked = np.array(requests, dtype=np.int64).reshape(shape)
    demand = np.array([len(one.pods) for one in classes], dtype=np.int64)
    fits = np.array([kinds[n].fits for n in firsts], dtype=np.bool_).reshape(len(firsts), len(options))
    on_existing = np.array([kinds[n].on_existing for n in firsts], dtype=np.bool_).reshape(len(firsts), len(free))
    apart = resources.apart[np.ix_(firsts, firsts)]
    buying, chosen, dropped = _options(
        options, capacity, fits, objective, zones_apart=zones_apart, keeps_worse=keeps_worse
    )
    model = PackingModel(
        tuple(classes),
        buying,
        resources.names,
        demand,
        asked,
        capacity[chosen],
        fits[:, chosen],
        apart,
        _free_rooms(asked, free, on_existing),
    )
    return model, dropped


def _options(
    options: Sequence[Option],
    capacity: Ints,
    fits: Bools,
    objective: str,
    *,
    zones_apart: bool,
    keeps_worse: bool,
) -> tuple[tuple[BuyingOption, ...], list[int], dict[str, str]]:
    """Options that are alike but for the zone become one; those that another one beats in everything are dropped, if
    they are not to be kept."""
    dropped: dict[str, str] = {}
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, option in enumerate(options):
        if not fits[:, number].any():
            dropped[option.name] = "no pod may go there or fits there"
            continue
        price = NANOS if objective == "nodes" else option.offer.price
        key = (
            option.pool.name,
            option.pool.variant,
            option.shape.name,
            option.offer.capacity_type,
            price,
            option.offer.zone if zones_apart else "",
            capacity[number].tobytes(),
            fits[:, number].tobytes(),
        )
        groups.setdefault(key, []).append(number)
    found = [_buying(options, members, objective) for members in groups.values()]
    firsts = [members[0] for members in groups.values()]
    kept: list[int] = []
    order = sorted(range(len(found)), key=lambda i: (found[i].price, *(-capacity[firsts[i]]).tolist(), found[i].name))
    for i in order:
        better = (k for k in kept if _beats(found[k], firsts[k], found[i], firsts[i], options, capacity, fits))
        winner = None if keeps_worse else next(better, None)
        if winner is None:
            kept.append(i)
        else:
            dropped[found[i].name] = f"{found[winner].name} has at least as much and costs no more"
    kept.sort()
    return tuple(found[i] for i in kept), [firsts[i] for i in kept], dropped


def _buying(options: Sequence[Option], members: Sequence[int], objective: str) -> BuyingOption:
    first = options[members[0]]
    zone = first.offer.zone if len(members) == 1 else ""
    name = changed(first, offer=changed(first.offer, zone=zone)).name
    price = NANOS if objective == "nodes" else first.offer.price
    assert price is not None
    return BuyingOption(
        name,
        tuple(members),
        tuple(options[n].offer.zone for n in members),
        price,
        tuple(options[n].offer.available for n in members),
    )


def _beats(
    one: BuyingOption, a: int, other: BuyingOption, b: int, options: Sequence[Option], capacity: Ints, fits: Bools
) -> bool:
    is_bounded = any(n is not None for n in one.available) or options[a].pool.is_limited
    same_kind = options[a].offer.capacity_type == options[b].offer.capacity_type and options[a].pool == options[b].pool
    return (
        not is_bounded
        and same_kind
        and one.price <= other.price
        and set(other.zones) <= set(one.zones)
        and bool((capacity[a] >= capacity[b]).all())
        and bool((fits[:, a] | ~fits[:, b]).all())
    )


def _free_rooms(requests: Ints, free: Ints, on_existing: Bools) -> tuple[FreeRoom, ...]:
    """Nodes to which the same classes may go, taken together."""
    groups: dict[bytes, list[int]] = {}
    for position in range(free.shape[0]):
        column = on_existing[:, position]
        if column.any():
            groups.setdefault(column.tobytes(), []).append(position)
    rooms = []
    for members in groups.values():
        allowed = on_existing[:, members[0]]
        most = np.zeros(len(requests), dtype=np.int64)
        for c in np.flatnonzero(allowed).tolist():
            needs = requests[c] > 0
            most[c] = int((free[members][:, needs] // requests[c, needs]).min(axis=1).sum())
        rooms.append(FreeRoom(len(members), free[members].sum(axis=0), most, free[members]))
    return tuple(rooms)
