"""`kubesched optimal`: how near to optimal a cluster is as it stands.

Four measures. How few of its nodes could hold its pods, and how little the pods would cost on machines of a catalogue:
each as a bound that no placement beats, beside a packing that was found. How much of what is free is fragmented or
stranded. And, by priority, how many pods any placement on these nodes could hold.

Next: `plan`, whose bounds and packings these are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as changed
from statistics import pstdev
from typing import Any

import numpy as np

from kubesched.explanation.layout import counted
from kubesched.framework.handle import Registry
from kubesched.k8s.loaded_cluster import Document, Objects
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.planning.catalogue import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, Catalogue
from kubesched.planning.catalogue_files import GivenCatalogue, from_nodes
from kubesched.planning.catalogue_files import catalogue as read_machines
from kubesched.planning.moving import MovePlan, fewest_moves
from kubesched.planning.node_groups import ALL_NODES, NodeSelection
from kubesched.planning.optimal_report import FreeResource, OptimalityReport, PriorityTier
from kubesched.planning.plan.model import Ints, PackingModel, PlanError
from kubesched.planning.plan.patterns import has_solver
from kubesched.planning.plan.planner import Planner, PlanWatch
from kubesched.planning.plan.reading import read_problem
from kubesched.planning.plan.report import PlanReport
from kubesched.planning.plan.request import PlanRequest, planned_world
from kubesched.planning.provenance import Provenance
from kubesched.planning.several_runs import ONE_RUN, Run, Runs, in_order
from kubesched.planning.solving import integer_program
from kubesched.planning.spare_one import spared_by
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import NodeRow
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.expansion import expand
from kubesched.simulator.library import fresh_cluster
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.options import several
from kubesched.simulator.premises import without_pending
from kubesched.simulator.settling import Settled
from kubesched.simulator.trial import LoadedWorld


def optimal(
    cluster: LoadedWorld | Objects,
    catalogue: GivenCatalogue | None = None,
    *,
    config: Document = None,
    seed: int = 0,
    tie_break: str = "random",
    plugins: Iterable[type] = (),
    time_limit_s: float = 60.0,
    nodes: str = "",
    exclude_nodes: str = "",
    keep: Sequence[str] = (),
    seeds: int = 1,
    orders: int = 1,
) -> OptimalityReport:
    """How near to optimal a cluster is: how few nodes, and with a `catalogue` how little money, could do for its pods;
    what of its free room is fragmented or stranded; how many pods of each priority any placement could hold. `keep` is
    room that nodes and machines have beside the pods: `20x500m/1Gi`, also with `@zone`, or a file with CapacityBuffers.
    `nodes` and `exclude_nodes` are label selectors: only these nodes are measured, with the pods on them. With several
    `seeds` and `orders` of arrival of what waits, the run is measured in which the scheduler places the fewest."""
    machines = None if catalogue is None else read_machines(catalogue)
    asked = fresh_cluster(cluster, config, plugins)
    watch = PlanWatch(time_limit_s)
    kept = several("keep", keep)
    selection, runs = NodeSelection(nodes, exclude_nodes), Runs(seed, seeds, orders)
    return measure(asked.given, machines, asked.config, asked.registry, watch, runs, tie_break, kept, selection)


def measure(
    given: SimulationInput,
    catalogue: Catalogue | None,
    config: KubeSchedulerConfiguration,
    registry: Registry | None,
    watch: PlanWatch,
    runs: Runs = ONE_RUN,
    tie_break: str = "random",
    keep: Sequence[str] = (),
    selection: NodeSelection = ALL_NODES,
) -> OptimalityReport:
    kept, asked_about = tuple(keep), given
    if spared_by(kept)[0]:
        raise PlanError('keep "n-1:" is not for optimal: plan --from-scratch --survive says what that takes')
    if not any(isinstance(item, Node) for item in given.objects):
        raise PlanError("there are no nodes")

    def settled_in(run: Run) -> tuple[LoadedWorld, Settled]:
        expanded = expand(in_order(given, run.order), run.seed)
        world = LoadedWorld(
            expanded.objects,
            config,
            registry=registry,
            tie_break=tie_break,
            seed=run.seed,
            workloads=expanded.workloads,
        )
        with world.trial() as trial:
            settled = trial.settle()
            trial.commit()
        return world, settled

    n_left = [len(settled_in(run)[1].pending) for run in runs.all] if len(runs) > 1 else [0]
    worst = runs.all[n_left.index(max(n_left))]
    seed = worst.seed
    world, settled = settled_in(worst)
    if not selection.is_everything:
        given = _only_on(selection, given, world)
        world, _ = settled_in(Run(seed))
    nodes = [item for item in given.objects if isinstance(item, Node)]
    own = _own_machines(nodes)
    by_nodes = PlanRequest(objective="nodes", from_scratch=True, ideal=True, keep=kept, time_limit_s=watch.limit_s / 2)
    fewest = Planner(given, own, by_nodes, config, registry, watch).plan()
    has_lost_pods = bool(fewest.unplaceable and world.pending)
    if has_lost_pods:
        given = _as_placed(given, world)
        fewest = Planner(given, own, by_nodes, config, registry, watch).plan()
    cheapest: PlanReport | None = None
    if catalogue is not None:
        by_cost = PlanRequest(from_scratch=True, ideal=True, keep=kept, time_limit_s=watch.limit_s / 2)
        cheapest = Planner(given, catalogue, by_cost, config, registry, watch).plan()
    return OptimalityReport(
        n_nodes=len(nodes),
        least_nodes=min(len(nodes), fewest.bound) if fewest.answer == "yes" else 0,
        packed_nodes=fewest.n_nodes if fewest.answer == "yes" else None,
        currency="USD" if catalogue is None else catalogue.currency,
        cost=None if catalogue is None else _cost_now(nodes, catalogue),
        least_cost=cheapest.bound if cheapest is not None and cheapest.answer == "yes" else None,
        packed_cost=cheapest.cost if cheapest is not None and cheapest.answer == "yes" else None,
        resources=tuple(resource_use(world.cluster)),
        moves=_moves(world, watch),
        tiers=tuple(_tiers(world, given, own, config, registry, seed)),
        assumptions=(
            *_assumptions(fewest, cheapest, len(settled.placed), len(settled.pending), has_lost_pods),
            *_of_runs(runs, n_left),
            *selection.told("Only {} are measured, with the pods on them; what waits is left out."),
            *given.guesses,
            *world.guesses,
        ),
        asked=Provenance(
            asked_about.objects, config, catalogue, (kept, tie_break, watch.limit_s, selection), runs=runs
        ),
        pending_by_run=tuple(n_left) if len(runs) > 1 else (),
    )


def _of_runs(runs: Runs, n_left: Sequence[int]) -> Iterator[str]:
    if len(runs) == 1:
        return
    yield runs.told.partition(";")[0] + "."
    if min(n_left) == max(n_left):
        yield f"{counted(n_left[0], 'pod')} {'stays' if n_left[0] == 1 else 'stay'} pending in each of them."
    else:
        yield f"Of them {min(n_left)} to {max(n_left)} pods stay pending; the run with the most is measured."


def _only_on(selection: NodeSelection, given: SimulationInput, world: LoadedWorld) -> SimulationInput:
    """These nodes, with the pods that they have now; workloads want no more than these."""
    chosen = {node.name for node in selection.of(world.cluster.table.nodes)}
    there = [
        item
        for item in _as_placed(given, world).objects
        if (not isinstance(item, Node) or item.name in chosen)
        and (not isinstance(item, Pod) or item.spec.node_name in chosen)
    ]
    return changed(given, objects=tuple(without_pending(there)))


def _as_placed(given: SimulationInput, world: LoadedWorld) -> SimulationInput:
    """With the pods that have found a node, and no others."""
    others = {(type(item), item.key): item for item in (*given.objects, *world.workloads) if not isinstance(item, Pod)}
    placed = [info.pod for info in world.cluster.placed.values()]
    return changed(given, objects=tuple(without_pending([*others.values(), *placed])))


def _own_machines(nodes: Sequence[Node]) -> Catalogue:
    """The nodes that there are, as a catalogue: each kind as often as there is one."""
    found = from_nodes(nodes)
    shapes = []
    for shape in found.shapes:
        offers = []
        for offer in shape.offers:
            alike = [node for node in nodes if _is_of(node, shape.labels, offer.zone, dict(shape.allocatable))]
            offers.append(changed(offer, available=len(alike)))
        shapes.append(changed(shape, offers=tuple(offers)))
    return changed(found, shapes=tuple(shapes))


def _is_of(node: Node, labels: Mapping[str, str], zone: str, amounts: Mapping[str, str]) -> bool:
    given = {name: str(value) for name, value in (node.status.allocatable or node.status.capacity or {}).items()}
    return (
        node.labels.get(ZONE, "") == zone
        and all(node.labels.get(key) == value for key, value in labels.items())
        and all(amounts.get(name) == value for name, value in given.items())
    )


def _cost_now(nodes: Sequence[Node], catalogue: Catalogue) -> int | None:
    """What the nodes cost by the catalogue; None if one of them is not in it."""
    total = 0
    for node in nodes:
        name = node.labels.get(INSTANCE_TYPE)
        shape = next((one for one in catalogue.shapes if one.name == name), None)
        zone, kind = node.labels.get(ZONE, ""), node.labels.get(CAPACITY_TYPE, "")
        offers = [] if shape is None else [one for one in shape.offers if one.price is not None]
        fitting = [
            one
            for one in offers
            if one.zone in ("", zone) and (not one.capacity_type or one.capacity_type == kind or not kind)
        ]
        if not fitting:
            return None
        total += min(one.price or 0 for one in fitting)
    return total


def _assumptions(
    fewest: PlanReport, cheapest: PlanReport | None, n_placed: int, n_pending: int, has_lost_pods: bool
) -> list[str]:
    found = [
        f"{counted(n_placed, 'pending pod')} placed by the scheduler first, {n_pending} stay pending.",
        "Bounds are for packing: every rule within a node counts, rules between nodes do not.",
        "Pods that belong to their node (daemons, static pods) go with it; all others may move.",
    ]
    if has_lost_pods:
        found.append("Some pods fit on none of the nodes: bounds are for the pods that have one.")
    elif fewest.answer != "yes":
        found.append("Some pods fit on none of the nodes, so their number has no bound.")
    if cheapest is not None and cheapest.answer != "yes":
        found.append("Some pods fit on no machine of the catalogue, so the cost has no bound.")
    if not has_solver():
        found.append("Without scipy (pip install '.[plan]' in a clone) bounds are weaker, and priorities have none.")
    return found


def _moves(world: LoadedWorld, watch: PlanWatch) -> MovePlan | None:
    """If somebody waits, and there is time to find out how to place more."""
    if not world.pending or not has_solver() or not watch.goes_on():
        return None
    return fewest_moves(world, watch.left_s)


# -- what is free ------------------------------------------------------------------------------------------------------


def _amounts(rows: Sequence[Sequence[int]]) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def resource_use(cluster: Cluster) -> list[FreeResource]:
    """Of cpu and of memory, over all nodes that are not cordoned."""
    names = (CPU, MEMORY)
    rows = [NodeRow(cluster.table, row) for row in range(cluster.table.n)]
    open_rows = [row for row in rows if not row.node.spec.unschedulable]
    allocatable = np.array([[row.allocatable(name) for name in names] for row in open_rows], dtype=np.int64).reshape(
        -1, 2
    )
    requested = np.array([[row.requested(name) for name in names] for row in open_rows], dtype=np.int64).reshape(-1, 2)
    free = (allocatable - requested).clip(min=0)
    mix: Counter[tuple[int, int]] = Counter()
    for info in (*cluster.placed.values(), *cluster.pending.values()):
        if not info.pin:
            wanted = info.resources.wanted
            mix[wanted.get(CPU, 0), wanted.get(MEMORY, 0)] += 1
    n_pods = max(1, mix.total())
    share_unfit = np.zeros(len(open_rows))
    fits_any = np.zeros(len(open_rows), dtype=np.bool_)
    for (cpu, memory), n in mix.items():
        fits = (free[:, 0] >= cpu) & (free[:, 1] >= memory)
        share_unfit += np.where(fits, 0.0, n / n_pods)
        fits_any |= fits
    asked = np.array([sum(pod[r] * n for pod, n in mix.items()) for r in range(2)], dtype=np.float64)
    found = []
    for r, name in enumerate(names):
        total = max(1, int(free[:, r].sum()))
        other = free[:, 1 - r] * (asked[r] / asked[1 - r]) if asked[1 - r] else np.full(len(open_rows), np.inf)
        stranded = int(np.maximum(free[:, r] - other, 0).sum())
        use = [int(u) / max(1, int(a)) for u, a in zip(requested[:, r], allocatable[:, r], strict=True)]
        found.append(
            FreeResource(
                name,
                int(allocatable[:, r].sum()),
                int(requested[:, r].sum()),
                round(100 * float(free[:, r] @ share_unfit) / total, 1),
                round(100 * int(free[~fits_any, r].sum()) / total, 1),
                stranded,
                round(100 * pstdev(use), 1) if use else 0.0,
            )
        )
    return found


# -- by priority -------------------------------------------------------------------------------------------------------


def _tiers(
    world: LoadedWorld,
    given: SimulationInput,
    own: Catalogue,
    config: KubeSchedulerConfiguration,
    registry: Registry | None,
    seed: int,
) -> list[PriorityTier]:
    """The most pods of each priority and above that could be placed: by amounts and rules within nodes."""
    infos = {
        info.key: info for info in (*world.cluster.placed.values(), *world.cluster.pending.values()) if not info.pin
    }
    priorities = sorted({info.priority for info in infos.values()}, reverse=True)
    placed = {key for key, info in infos.items() if info.spec.node_name}
    most: dict[int, int] = {}
    if has_solver() and infos:
        planned = planned_world(given, tuple(own.options()), config, registry=registry, seed=seed, from_scratch=True)
        model = read_problem(planned, objective="nodes").model
        names = {key: infos[key].priority for one in model.classes for key in one.pods if key in infos}
        most = _most_by_priority(model, [option.offer.available or 0 for option in planned.options], names, priorities)
    found = []
    for priority in priorities:
        keys = [key for key, info in infos.items() if info.priority >= priority]
        found.append(PriorityTier(priority, len(keys), sum(key in placed for key in keys), most.get(priority)))
    return found


def _most_by_priority(
    model: PackingModel, available: Sequence[int], priority_of: Mapping[PodKey, int], priorities: Sequence[int]
) -> dict[int, int]:
    """Whole numbers of pods of each class on each kind of node, with the room of all nodes of a kind taken together;
    what a higher priority can have is fixed before the next one is asked."""
    from scipy.optimize import LinearConstraint
    from scipy.sparse import csr_matrix, vstack

    n_nodes = np.array([sum(available[m] for m in one.members) for one in model.options], dtype=np.int64)
    pairs = [(c, o) for c in range(len(model.classes)) for o in range(len(model.options)) if model.most[c, o] > 0]
    counts = _counts_by_priority(model, priority_of, priorities)
    columns = [(c, o, t) for c, o in pairs for t in range(len(priorities)) if counts[c, t]]
    if not columns:
        return {}
    rows: list[Any] = []
    limits: list[float] = []
    for o in range(len(model.options)):
        for r in range(len(model.resources)):
            scale = max(1, int(model.capacity[o, r]))
            rows.append([model.requests[c, r] / scale if k == o else 0.0 for c, k, _ in columns])
            limits.append(float(n_nodes[o]) * model.capacity[o, r] / scale)
    for c in range(len(model.classes)):
        for t in range(len(priorities)):
            if counts[c, t]:
                rows.append([float(k == c and u == t) for k, _, u in columns])
                limits.append(float(counts[c, t]))
    matrix = csr_matrix(np.array(rows))
    found: dict[int, int] = {}
    total = 0
    for t, priority in enumerate(priorities):
        goal = np.array([-1.0 if u == t else 0.0 for _, _, u in columns])
        answer = integer_program(
            goal, constraints=LinearConstraint(matrix, ub=np.array(limits)), integrality=np.ones(len(columns))
        )
        reach = -answer.mip_dual_bound if answer.mip_dual_bound is not None else counts[:, t].sum()
        reach = min(int(np.floor(reach + 1e-6)), int(counts[:, t].sum()))
        total += reach
        found[priority] = total
        if answer.x is None:
            break
        matrix = vstack([matrix, csr_matrix(goal)])
        limits.append(-float(round(-answer.fun)))
    return found


def _counts_by_priority(model: PackingModel, priority_of: Mapping[PodKey, int], priorities: Sequence[int]) -> Ints:
    place = {priority: t for t, priority in enumerate(priorities)}
    counts = np.zeros((len(model.classes), len(priorities)), dtype=np.int64)
    for c, one in enumerate(model.classes):
        for key in one.pods:
            if key in priority_of:
                counts[c, place[priority_of[key]]] += 1
    return counts
