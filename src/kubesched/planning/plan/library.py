"""`kubesched.plan`: a plan from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from kubesched.k8s.loaded_cluster import Document, Objects
from kubesched.planning.catalogue import Catalogue
from kubesched.planning.catalogue_files import catalogue_from, read_catalogue
from kubesched.planning.node_groups import NodeSelection
from kubesched.planning.node_pools import beside_cluster
from kubesched.planning.plan.planner import Planner
from kubesched.planning.plan.report import PlanReport
from kubesched.planning.plan.request import PlanRequest
from kubesched.simulator.library import fresh_cluster
from kubesched.simulator.options import several
from kubesched.simulator.trial import LoadedWorld


def plan(
    cluster: LoadedWorld | Objects,
    catalogue: Catalogue | str | PathLike[str] | Mapping[str, Any],
    *,
    objective: str = "cost",
    pool: str | None = None,
    from_scratch: bool = False,
    max_nodes: int | None = None,
    max_types: int | None = None,
    min_nodes_per_zone: int = 0,
    spot_share_percent: int | None = None,
    headroom_percent: int = 0,
    nodes: str = "",
    exclude_nodes: str = "",
    keep: Sequence[str] = (),
    survive: str = "",
    priority_at_least: int | None = None,
    spread: str = "literal",
    arrival: str = "together",
    fill: str = "evenly",
    follow_weights: bool = False,
    ideal: bool = False,
    alternatives: int = 0,
    seeds: int = 1,
    orders: int = 5,
    time_limit_s: float = 60.0,
    jobs: int = 1,
    config: Document = None,
    seed: int = 0,
    tie_break: str = "random",
    plugins: Iterable[type] = (),
) -> PlanReport:
    """Which nodes to buy from a catalogue, at the least cost, so that the scheduler places every pod.

    `cluster` is what `load` takes; `catalogue` is a file, a document, or a `Catalogue`. With `from_scratch`, nodes that
    are there do not count. `survive="zone"` or `"node"` asks for a cluster that can lose any one of them; `keep` names
    room to stay free (`20x500m/1Gi`). `nodes` and `exclude_nodes` are label selectors of existing nodes that pods
    without a node may, or may not, go to. With `fill="in-turn"`, some nodes get soft taints, so that the scheduler
    fills the others first. With `arrival="later"`, nodes join one by one while the pods wait; with `"rest-later"`, some
    are there before the pods. With `follow_weights`, machines come of the heaviest NodePool that has one for a pod.
    With `ideal`, packing alone counts, not the scheduler's verdict. `jobs` is a number of processes.
    """
    request = PlanRequest(
        objective=objective,
        pool=pool,
        from_scratch=from_scratch,
        max_nodes=max_nodes,
        max_types=max_types,
        min_nodes_per_zone=min_nodes_per_zone,
        spot_share_percent=spot_share_percent,
        headroom_percent=headroom_percent,
        keep=several("keep", keep),
        survive=survive,
        priority_at_least=priority_at_least,
        spread=spread,
        arrival=arrival,
        fill=fill,
        follow_weights=follow_weights,
        ideal=ideal,
        alternatives=alternatives,
        seeds=seeds,
        orders=orders,
        seed=seed,
        tie_break=tie_break,
        time_limit_s=time_limit_s,
        selection=NodeSelection(nodes, exclude_nodes),
    )
    if isinstance(catalogue, Mapping):
        found = catalogue_from(catalogue)
    else:
        found = catalogue if isinstance(catalogue, Catalogue) else read_catalogue(str(catalogue))
    asked = fresh_cluster(cluster, config, plugins)
    found = beside_cluster(found, asked.given.node_makers)
    return Planner(asked.given, found, request, asked.config, asked.registry, jobs=jobs).plan()
