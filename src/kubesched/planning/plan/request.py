"""What is asked of a plan: the request, checked, the limits that follow, and the cluster that is planned for.

Limits come from the request and from the pools of the catalogue. The cluster is the pods to place, the nodes that are
there, and the daemons of nodes to come.

Where nodes are to be filled in turn, each option is there once for every turn; those of later turns carry taints that
kube-scheduler avoids but does not mind (PreferNoSchedule), one more in each turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed

import numpy as np
from msgspec.structs import replace

from kubesched.framework.handle import Registry
from kubesched.k8s.model.core import Node, Pod, PodStatus, Taint
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.quantity import parse
from kubesched.k8s.model.requests import CPU
from kubesched.k8s.model.resource import ResourceClaim, ResourceClaimStatus, ResourceSlice
from kubesched.k8s.model.storage import CSINode, VolumeAttachment
from kubesched.k8s.model.taints import PREFER_NO_SCHEDULE, UNSCHEDULABLE_TAINT
from kubesched.k8s.workloads.pod_states import belongs_to_its_node
from kubesched.planning.catalogue import Catalogue, Option
from kubesched.planning.headroom import headroom_pods
from kubesched.planning.new_nodes import daemons_of
from kubesched.planning.node_groups import ALL_NODES, NodeSelection
from kubesched.planning.plan.model import LimitRow, PackingModel, PlanError
from kubesched.planning.spare_one import spared_by
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.expansion import expand
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.trial import LoadedWorld

SPOT = "spot"
OBJECTIVES = ("cost", "nodes")
SURVIVABLE = ("zone", "node")
SPREADS = ("literal", "intent")
TOGETHER, LATER, REST_LATER = "together", "later", "rest-later"
ARRIVALS = (TOGETHER, LATER, REST_LATER)
"""`later`: all nodes join one by one while the pods wait; `rest-later`: some are there before the pods."""
EVENLY, IN_TURN = "evenly", "in-turn"
FILLS = (EVENLY, IN_TURN)
TURNS = 6
"""In which nodes are filled, if that is to be in turn."""
FILL_AFTER = "kubesched.dev/fill-after-"
"""The taints of nodes that are filled later, with a number each."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    objective: str = "cost"
    pool: str | None = None
    from_scratch: bool = False
    max_nodes: int | None = None
    max_types: int | None = None
    min_nodes_per_zone: int = 0
    spot_share_percent: int | None = None
    headroom_percent: int = 0
    keep: tuple[str, ...] = ()
    """`20x500m/1Gi`, `20x500m/1Gi@zone`; `n-1:zone` is `survive="zone"`."""
    survive: str = ""
    priority_at_least: int | None = None
    spread: str = "literal"
    arrival: str = TOGETHER
    fill: str = EVENLY
    """`in-turn`: some of the nodes get soft taints, so that the scheduler fills the others first."""
    follow_weights: bool = False
    """Each pod's machine comes of the heaviest NodePool that has one for it."""
    ideal: bool = False
    """Whether packing alone counts, without the scheduler's verdict."""
    alternatives: int = 0
    seeds: int = 1
    orders: int = 5
    seed: int = 0
    tie_break: str = "random"
    time_limit_s: float = 60.0
    selection: NodeSelection = ALL_NODES
    """Of the nodes that there are, those that pods without a node may go to."""

    def __post_init__(self) -> None:
        spared, kept = spared_by(self.keep)
        object.__setattr__(self, "survive", self.survive or spared)
        object.__setattr__(self, "keep", kept)
        if self.from_scratch and not self.selection.is_everything:
            raise PlanError("nodes: from scratch, none of the existing nodes counts, so none can be selected")
        for name, given, known in (
            ("objective", self.objective, OBJECTIVES),
            ("spread", self.spread, SPREADS),
            ("arrival", self.arrival, ARRIVALS),
            ("fill", self.fill, FILLS),
            ("survive", self.survive, ("", *SURVIVABLE)),
        ):
            if given not in known:
                raise PlanError(f'{name}: one of {", ".join(filter(None, known))} is expected, not "{given}"')
        for name, number, least in (
            ("max_nodes", self.max_nodes, 1),
            ("max_types", self.max_types, 1),
            ("min_nodes_per_zone", self.min_nodes_per_zone, 0),
            ("alternatives", self.alternatives, 0),
            ("seeds", self.seeds, 1),
            ("orders", self.orders, 1),
        ):
            if number is not None and number < least:
                raise PlanError(f"{name}: at least {least} is expected, not {number}")
        for name, percent in (("spot_share", self.spot_share_percent), ("headroom", self.headroom_percent)):
            if percent is not None and not 0 <= percent <= (100 if name == "spot_share" else 90):
                raise PlanError(f"{name}: {percent} % is not between 0 and {100 if name == 'spot_share' else 90} %")


def percent_of(text: str, name: str) -> int:
    """`60%`, `60` or `0.6` as whole percent. Raises PlanError."""
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        raise PlanError(f'{name}: "{text}" is not a share such as 60%') from None
    if not text.strip().endswith("%") and 0 < number < 1:
        number *= 100
    if not 0 <= number <= 100 or number != int(number):
        raise PlanError(f'{name}: "{text}" is not a whole share between 0% and 100%')
    return int(number)


def buyable_options(catalogue: Catalogue, request: PlanRequest) -> tuple[tuple[Option, ...], int]:
    """What may be bought, and how many offers have no price and are left out. Raises PlanError."""
    options = list(catalogue.options())
    if request.pool is not None:
        names = sorted({pool.name for pool in catalogue.pools})
        if request.pool not in names:
            known = f"; there are {', '.join(names)}" if names else "; the catalogue has no pools"
            raise PlanError(f'there is no pool "{request.pool}"{known}')
        options = [option for option in options if option.pool.name == request.pool]
    if not options:
        raise PlanError(f"{catalogue.source or 'the catalogue'}: no offer to buy")
    if request.objective == "nodes":
        return tuple(options), 0
    priced = [option for option in options if option.offer.price is not None]
    source = catalogue.source or "the catalogue"
    if not priced:
        raise PlanError(f"{source}: no offer has a price; give --prices, or --objective nodes")
    for option in priced:
        if option.offer.price == 0:
            raise PlanError(f"{source}: {option.name} costs nothing: no plan could be cheapest")
    return tuple(priced), len(options) - len(priced)


def limits_of(model: PackingModel, options: Sequence[Option], request: PlanRequest) -> tuple[LimitRow, ...]:
    """On what may be bought: availability, pools, spot share, number of nodes."""
    rows: list[LimitRow] = []
    groups = [[options[n] for n in one.members] for one in model.options]
    for number, one in enumerate(model.options):
        if all(n is not None for n in one.available):
            coefficients = np.zeros(len(model.options), dtype=np.int64)
            coefficients[number] = 1
            rows.append(LimitRow(f"available {one.name}", coefficients, sum(n or 0 for n in one.available)))
    for pool in {group[0].pool.name: group[0].pool for group in groups}.values():
        inside = np.array([group[0].pool.name == pool.name for group in groups])
        if pool.most_nodes is not None:
            rows.append(LimitRow(f"limit nodes of pool {pool.name}", inside.astype(np.int64), pool.most_nodes))
        for name, text in pool.limits.items():
            amounts = np.array([_units(group[0], name) for group in groups], dtype=np.int64)
            rows.append(LimitRow(f"limit {name} of pool {pool.name}", amounts * inside, _read(name, text)))
    if request.spot_share_percent is not None:
        spot = np.array([group[0].offer.capacity_type == SPOT for group in groups])
        cpus = np.array([_units(group[0], CPU) for group in groups], dtype=np.int64)
        coefficients = cpus * (100 * spot.astype(np.int64) - request.spot_share_percent)
        rows.append(LimitRow("spot share", coefficients, 0))
    if request.max_nodes is not None:
        rows.append(LimitRow("max nodes", np.ones(len(model.options), dtype=np.int64), request.max_nodes))
    return tuple(rows)


def _units(option: Option, name: str) -> int:
    return _read(name, option.shape.capacity.get(name) or option.shape.allocatable.get(name) or "0")


def _read(name: str, text: str) -> int:
    return parse(text).milli_value if name == CPU else parse(text).value


def least_nodes(options: Sequence[Option], request: PlanRequest) -> dict[tuple[str | None, str | None], int]:
    """How many nodes there must be at least, by (pool, zone); None stands for any."""
    found: dict[tuple[str | None, str | None], int] = {}
    if request.min_nodes_per_zone:
        for zone in sorted({option.offer.zone for option in options}):
            found[None, zone] = request.min_nodes_per_zone
    for pool in {option.pool.name: option.pool for option in options}.values():
        if pool.least_nodes:
            found[pool.name, None] = pool.least_nodes
        for zone, least in pool.least_by_zone.items():
            found[pool.name, zone] = least
    return found


@dataclass(frozen=True, slots=True)
class PlannedWorld:
    world: LoadedWorld
    options: tuple[Option, ...]
    daemons: tuple[tuple[Pod, ...], ...]
    """The pods of daemons on a node of each option; they are for a node of another name."""
    refused: tuple[str, ...]
    n_kept: int
    """How many pods stand for room to keep."""
    turns: int = 1

    def in_turns(self, turns: int) -> PlannedWorld:
        """With each option once for every turn: first all options of the first turn, then those of the second."""
        options = tuple(_of_turn(option, turn) for turn in range(turns) for option in self.options)
        return changed(self, options=options, daemons=self.daemons * turns, turns=turns)

    def turn_of(self, option: int) -> int:
        """From 0."""
        return option * self.turns // len(self.options)

    def numbered(self, options: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Nodes of these options, each with its number; nodes that differ in the turn alone are numbered through."""
        n_offers = len(self.options) // self.turns
        numbers = [0] * n_offers
        for option in options:
            numbers[option % n_offers] += 1
            yield option, numbers[option % n_offers]


def planned_world(
    given: SimulationInput,
    options: Sequence[Option],
    config: KubeSchedulerConfiguration,
    *,
    registry: Registry | None = None,
    tie_break: str = "random",
    seed: int = 0,
    from_scratch: bool = False,
    keep: Sequence[str] = (),
    selection: NodeSelection = ALL_NODES,
) -> PlannedWorld:
    objects = list(given.objects)
    if not selection.is_everything:
        objects = list(_closed_but_for(selection, objects))
    if from_scratch:
        objects = list(without_nodes(objects))
    kept = headroom_pods(keep, objects)
    expanded = expand(SimulationInput(tuple(objects), given.steps), seed)
    world = LoadedWorld((*expanded.objects, *kept), config, registry=registry, tie_break=tie_break, seed=seed)
    return PlannedWorld(world, tuple(options), daemons_of(objects, options, seed), expanded.refused, len(kept))


def _closed_but_for(selection: NodeSelection, objects: Sequence[KubeObject]) -> Iterator[KubeObject]:
    """With all other nodes cordoned: who is there stays, and they are domains as before."""
    chosen = {node.name for node in selection.of(item for item in objects if isinstance(item, Node))}
    for item in objects:
        if isinstance(item, Node) and item.name not in chosen:
            others = tuple(taint for taint in item.spec.taints or () if taint != UNSCHEDULABLE_TAINT)
            item = replace(item, spec=replace(item.spec, unschedulable=True, taints=(*others, UNSCHEDULABLE_TAINT)))
        yield item


def _of_turn(option: Option, turn: int) -> Option:
    avoided = tuple(Taint(key=f"{FILL_AFTER}{n}", effect=PREFER_NO_SCHEDULE) for n in range(1, turn + 1))
    return changed(option, pool=changed(option.pool, taints=(*option.pool.taints, *avoided)))


def without_nodes(objects: Iterable[KubeObject]) -> Iterable[KubeObject]:
    """Nobody has a node any more; what belongs to a node is gone with it."""
    for item in objects:
        if isinstance(item, Node | CSINode | VolumeAttachment):
            continue
        if isinstance(item, ResourceSlice) and item.spec.node_name:
            continue
        if isinstance(item, ResourceClaim):
            item = replace(item, status=ResourceClaimStatus())
        if isinstance(item, Pod):
            if item.is_terminal or belongs_to_its_node(item):
                continue
            metadata = replace(item.metadata, deletion_timestamp=None)
            status = PodStatus(resource_claim_statuses=item.status.resource_claim_statuses)
            item = replace(item, metadata=metadata, spec=replace(item.spec, node_name=""), status=status)
        yield item
