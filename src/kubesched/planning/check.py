"""`kubesched check`: whether a change may be merged, by rules in a file; the gate for CI.

Answers the rules of a check file, each on the cluster with the change in it, for several seeds. Whoever has no check
file yet gets a first one for the cluster (`first_check`).

Next: `check_file` for the rules, `check_report` for what comes of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from os import PathLike
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kubesched.explanation.layout import counted
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.loaded_cluster import LoadedCluster
from kubesched.k8s.model.apps import CronJob, DaemonSet, Deployment, DeploymentStrategy, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Container, Node, Pod, PodSpec, ReplicationController
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.requests import CPU, MEMORY, node_units, pod_resources
from kubesched.k8s.workloads.deployments import rolling_limits
from kubesched.planning.capacity import MOST_COPIES, capacity
from kubesched.planning.catalogue import NANOS, Catalogue, NodePrices
from kubesched.planning.catalogue_files import read_catalogue
from kubesched.planning.check_file import (
    CapacityRule,
    CheckError,
    CheckFile,
    CostRule,
    FitsRule,
    OutageRule,
    RequestsRule,
    Rule,
    Source,
    UpgradeRule,
    read_check_file,
)
from kubesched.planning.check_report import (
    CheckFinding,
    CheckReport,
    FieldPath,
    Passed,
    Position,
    Positions,
    RuleResult,
    fields_of,
    path_of_spec,
)
from kubesched.planning.headroom import is_of_amounts, keep_free
from kubesched.planning.outage import outage
from kubesched.planning.provenance import Provenance
from kubesched.planning.resting_workloads import PodOwners
from kubesched.planning.upgrade import upgrade
from kubesched.simulator.guesses import guesses_about
from kubesched.simulator.library import load
from kubesched.simulator.library import world as load_world
from kubesched.simulator.many_runs import spread_over
from kubesched.simulator.trial import LoadedWorld


def check(path: str | PathLike[str], *, cluster: LoadedCluster | None = None, jobs: int = 1) -> CheckReport:
    """Runs the checks of a file of kind Check: `check("check.yaml").passed`.

    Paths in the file are relative to it. A `cluster` takes the place of the one that the file names, and is needed
    where that is a live one.
    """
    where = Path(path)
    return run_check(read_check_file(where), where, cluster, jobs)


def run_check(asked: CheckFile, path: Path, cluster: LoadedCluster | None = None, jobs: int = 1) -> CheckReport:
    directory = path.parent
    if cluster is None:
        if asked.cluster.live is not None:
            raise CheckError(f"{path}: cluster.live: give the cluster, or run kubesched check")
        cluster = load(directory / asked.cluster.file)
    if not cluster.nodes:
        raise CheckError(f"{path}: cluster: there are no nodes in {asked.cluster.file or 'it'}")
    sources = source_paths(asked.change, directory)
    config: Any = str(directory / asked.config) if asked.config else None
    kept = tuple(text if is_of_amounts(text) else str(directory / text) for text in asked.keep)
    run = CheckRun(
        replace(asked, keep=kept),
        cluster,
        load(*map(Path, sources)),
        load(*map(Path, source_paths(asked.base, directory))),
        Positions(sources, Path.cwd()),
        source=str(path),
        config=config,
        catalogue=read_catalogue(str(directory / asked.catalogue)) if asked.catalogue else None,
    )
    return run.report(jobs)


FIRST_CHECK = """\
# Can this change be merged? Run it with: kubesched check {name}
apiVersion: kubesched.dev/v1alpha1
kind: Check
metadata:
  name: before-merge
cluster:
  {cluster}
change:
  - dir: {change}        # the manifests of the pull request, rendered
seeds: 5                  # ties are broken at random; a check must pass with all seeds
checks:
  - name: fits
    fits: {{}}
  - name: room for a rollout
    fits: {{rollingUpdate: true}}
  - name: headroom
    capacity: {{shape: {shape}, atLeast: 1}}
{zones}  - name: requests
    requests: {{cpu: required, memory: required}}
"""
_ZONES = """\
  - name: zones
    outage: {every: zone}
"""


def first_check(cluster: LoadedCluster, cluster_line: str, change: str, name: str) -> str:
    """A check file to begin with: what most would want of this cluster."""
    zone = "topology.kubernetes.io/zone"
    zones = {str((node.get("metadata", {}).get("labels") or {}).get(zone)) for node in _nodes(cluster)} - {"None"}
    return FIRST_CHECK.format(
        name=name, cluster=cluster_line, change=change, shape="500m/1Gi", zones=_ZONES if len(zones) > 1 else ""
    )


def _nodes(cluster: LoadedCluster) -> list[dict[str, Any]]:
    return [cluster.get("node", name) for name in cluster.nodes]


_HOURS_A_MONTH = 730
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class _Answer:
    """Of one seed: no findings is a yes, unless it `is_no` as a whole."""

    headline: str
    findings: tuple[CheckFinding, ...] = ()
    is_no: bool = False


@dataclass(slots=True)
class CheckRun:
    """A cluster, a change to it, and who says where the change's objects stand."""

    asked: CheckFile
    cluster: LoadedCluster
    change: LoadedCluster
    base: LoadedCluster
    """What the change's objects were before, as far as that is told apart from the cluster."""
    positions: Positions
    source: str = ""
    config: Any = None
    catalogue: Catalogue | None = None
    _before: LoadedCluster = field(init=False)
    _whole: LoadedCluster = field(init=False)
    _waiting: dict[int, tuple[set[PodKey], int]] = field(default_factory=dict)
    """By seed, the pods that wait without the change, and for how many pods there is no room to keep then."""

    def __post_init__(self) -> None:
        self._before = self._supposed(self.base)
        self._whole = self._supposed(self.base, self.change)

    def _supposed(self, *further: LoadedCluster) -> LoadedCluster:
        return load(self.cluster, *further, replicas=self.asked.replicas, ignore=self.asked.ignore)

    def report(self, jobs: int = 1) -> CheckReport:
        """In so many processes; the report is the same."""
        rules = self.asked.checks
        n_seeds = [self.asked.seeds if rule.cost is None and rule.requests is None else 1 for rule in rules]
        cases = [(place, seed) for place, n in enumerate(n_seeds) for seed in range(n)]
        answers: dict[int, list[_Answer]] = {}
        for (place, _), answer in zip(cases, spread_over(_answer, self, cases, jobs=jobs), strict=True):
            answers.setdefault(place, []).append(answer)
        results = tuple(_for_all_seeds(rule, answers[place]) for place, rule in enumerate(rules))
        whole = self._whole.found
        return CheckReport(
            self.asked.metadata.name,
            results,
            self.asked.seeds,
            self.source,
            guesses_about(whole),
            Provenance(tuple(whole.objects), self.config, self.catalogue, self.asked),
        )

    def answer(self, rule: Rule, seed: int) -> _Answer:
        if rule.fits is not None:
            return self._fitting(rule.fits, seed)
        if rule.capacity is not None:
            return self._room(rule.capacity, seed)
        if rule.outage is not None:
            return self._surviving(rule.outage, seed)
        if rule.cost is not None:
            return self._cost(rule.cost)
        if rule.upgrade is not None:
            return self._finishing(rule.upgrade, seed)
        assert rule.requests is not None
        return self._requests(rule.requests)

    # -- does it fit ---------------------------------------------------------------------------------------------------

    def _fitting(self, rule: FitsRule, seed: int) -> _Answer:
        whole = self._surging() if rule.rolling_update else self._whole
        return self._placing(whole, seed, "rolling out all at once" if rule.rolling_update else "all of them")

    def _placing(self, whole: LoadedCluster, seed: int, what: str) -> _Answer:
        """Whether all pods are placed, and the workloads whose pods are not, beside those that wait already."""
        waited, n_lacked = self._waiting_before(seed)
        world = self._world(whole, seed)
        owners = PodOwners(world.workloads)
        by_workload: dict[str, tuple[int, str, tuple[str, ...]]] = {}
        with world.trial() as trial:
            settled = trial.settle()
            for one in settled.pending:
                if one.pod in waited:
                    continue
                pod = world.pod(one.pod).pod
                kind, _, owner = owners.workload_of(pod).partition(" ")
                about = f"{kind} {pod.namespace}/{owner}"
                n, why, plugins = by_workload.get(about, (0, "", one.plugins))
                by_workload[about] = n + 1, why or one.explain().headline, plugins
            n_room, n_lacking = keep_free(trial, self.asked.keep)
        findings = [CheckFinding(f"1 object is refused: {text}") for text in world.refused]
        findings += [
            CheckFinding(f"{counted(n, 'pod')} pending: {why}", about, self._position(about, *fields_of(plugins)))
            for about, (n, why, plugins) in by_workload.items()
        ]
        if n_lacking > n_lacked:
            findings.append(CheckFinding(f"no room for {n_lacking} of {n_room} pods that room is to be kept for"))
        n_pending = sum(n for n, _, _ in by_workload.values())
        if not findings:
            return _Answer(f"{counted(len(settled.placed), 'pod')} placed, {what}")
        told = f"{counted(n_pending, 'pod')} would stay pending"
        if not n_pending:
            told = "an API server refuses some of it" if world.refused else "the room to keep would be gone"
        return _Answer(told, tuple(findings))

    def _waiting_before(self, seed: int) -> tuple[set[PodKey], int]:
        if seed not in self._waiting:
            with self._world(self._before, seed).trial() as trial:
                waiting = {one.pod for one in trial.settle().pending}
                self._waiting[seed] = waiting, keep_free(trial, self.asked.keep)[1]
        return self._waiting[seed]

    def _surging(self) -> LoadedCluster:
        """As while all changed Deployments roll out: with as many pods more as they may have."""
        surging: list[KubeObject] = []
        before = {item.key: item.spec for item in self._before.found.objects if isinstance(item, Deployment)}
        for item in self.change.found.objects:
            if isinstance(item, Deployment) and before.get(item.key) != item.spec:
                replicas = 1 if item.spec.replicas is None else item.spec.replicas
                surge, _ = rolling_limits(item.spec.strategy or DeploymentStrategy(), replicas)
                surging.append(replace(item, spec=replace(item.spec, replicas=replicas + surge)))
            else:
                surging.append(item)
        return self._supposed(self.base, LoadedCluster(changed(self.change.found, objects=surging)))

    # -- the others ----------------------------------------------------------------------------------------------------

    def _room(self, rule: CapacityRule, seed: int) -> _Answer:
        found = capacity(
            self._world(self._whole, seed),
            rule.pod or None,
            shapes=(rule.shape,) if rule.shape else (),
            by=(rule.by,) if rule.by else (),
            most=MOST_COPIES if rule.by else rule.at_least,
            keep=self.asked.keep,
            remedies=False,
        )
        answers = found.answers[1:] if rule.by else found.answers
        short = tuple(
            CheckFinding(f"{one.fits} fit, {rule.at_least} are wanted; the next one: {one.message}", one.group)
            for one in answers
            if one.fits < rule.at_least
        )
        what = rule.shape or rule.pod
        if not short:
            return _Answer(f"at least {rule.at_least} more of {what} fit{f' in each {rule.by}' if rule.by else ''}")
        fewest = min(one.fits for one in answers)
        where = f" in some {rule.by}" if rule.by else ""
        return _Answer(f"{fewest} more of {what} fit{where}, {rule.at_least} are wanted", short)

    def _surviving(self, rule: OutageRule, seed: int) -> _Answer:
        report = outage(
            self._whole,
            every=rule.every,
            gone=rule.gone,
            priority_at_least=rule.priority_at_least,
            keep=self.asked.keep,
            config=self.config,
            seed=seed,
        )
        lost = tuple(
            CheckFinding(f"{counted(one.missing, 'pod')} not replaced after the loss of {one.case.name}")
            for one in report.ranked
            if one.missing
        )
        cases = counted(len(report.results), "case")
        if not lost:
            return _Answer(f"every {rule.every} can fail ({cases})")
        return _Answer(f"{len(lost)} of {cases} leave pods without a node", lost)

    def _cost(self, rule: CostRule) -> _Answer:
        """What the pods' requests take of the nodes, by the mean of cpu and memory, in money or in nodes."""
        worlds = [self._world(one, 0) for one in (self._before, self._whole)]
        prices = [NodePrices(list(one.cluster.table.nodes), self.catalogue) for one in worlds]
        before, after = (_hourly(world, price) for world, price in zip(worlds, prices, strict=True))
        grows, share = after - before, (after - before) / before if before else 0.0
        limit = str(rule.at_most)
        percent = re.fullmatch(r"\+?(\d+(?:\.\d+)?)\s*%", limit)
        try:
            is_within = (
                share * 100 <= float(percent[1]) + _ROUNDING
                if percent
                else grows * _HOURS_A_MONTH <= float(limit) + _ROUNDING
            )
        except ValueError:
            raise CheckError(f'atMost: "{limit}" is neither +5% nor an amount') from None
        if prices[0].are_counted:  # nobody says what a node costs: each counts as one
            amount = f"{grows:+.2f} nodes"
        else:
            amount = f"{grows * _HOURS_A_MONTH:+.2f} {prices[0].currency} a month"
        told = f"the pods' share of the nodes grows by {share:+.1%} ({amount}); {limit} is allowed"
        return _Answer(told, is_no=not is_within)

    def _finishing(self, rule: UpgradeRule, seed: int) -> _Answer:
        report = upgrade(
            self._whole,
            pool=rule.pool,
            preset=rule.preset,
            max_surge=rule.max_surge,
            keep=self.asked.keep,
            config=self.config,
            seed=seed,
        )
        told = f"a rolling upgrade{f' of pool {rule.pool}' if rule.pool else ''}"
        if report.finishes:
            return _Answer(f"{told} finishes")
        stuck = tuple(
            CheckFinding(f"{pod.pod} stays, kept by {' and '.join(pod.budgets) or 'no budget'}", f"node {one.node}")
            for one in report.outcome.stuck
            for pod in one.pods
        )
        return _Answer(f"{told} does not finish", stuck or (CheckFinding(report.headline),))

    def _requests(self, rule: RequestsRule) -> _Answer:
        wanted = [one for one in (CPU, MEMORY) if getattr(rule, one) == "required"]
        findings = []
        n_containers = 0
        for item in self.change.found.objects:
            for path, container in _containers(item):
                n_containers += 1
                asked = (container.resources.requests if container.resources else None) or {}
                limits = (container.resources.limits if container.resources else None) or {}
                missing = [one for one in wanted if one not in asked and one not in limits]
                if missing:
                    about = f"{type(item).__name__} {item.key}"
                    told = f"container {container.name} requests no {' and no '.join(missing)}"
                    findings.append(CheckFinding(told, about, self._position(about, path)))
        if not findings:
            told = f"{counted(n_containers, 'container')}, each with a request for {' and '.join(wanted) or 'nothing'}"
            return _Answer(told)
        return _Answer(f"{counted(len(findings), 'container')} without requests", tuple(findings))

    # ------------------------------------------------------------------------------------------------------------------

    def _world(self, cluster: LoadedCluster, seed: int) -> LoadedWorld:
        return load_world(cluster, config=self.config, seed=seed)

    def _position(self, about: str, *paths: FieldPath) -> Position | None:
        """Of the first of these fields that is written there, or of the object."""
        kind, _, key = about.partition(" ")
        namespace, _, name = key.rpartition("/")
        return self.positions.of(kind, namespace, name, paths)


def _answer(run: CheckRun, case: tuple[int, int]) -> _Answer:
    place, seed = case
    rule = run.asked.checks[place]
    try:
        return run.answer(rule, seed)
    except KubeschedError as error:
        raise CheckError(f"{run.source}: checks[{place}].{rule.kinds[0]}: {error}") from None


def _for_all_seeds(rule: Rule, answers: Sequence[_Answer]) -> RuleResult:
    """A yes is a yes for all seeds, a no for all; else it depends on chance."""
    kind, n = rule.kinds[0], len(answers)
    name = rule.name or kind
    bad = [one for one in answers if one.findings or one.is_no]
    if not bad:
        return RuleResult(name, kind, Passed.YES, answers[0].headline)
    first = bad[0]
    if len(bad) == n:
        return RuleResult(name, kind, Passed.NO, first.headline, first.findings)
    told = f"{first.headline} with {len(bad)} of {counted(n, 'seed')}: it depends on chance"
    return RuleResult(name, kind, Passed.UNDECIDED, told, first.findings)


def _hourly(world: LoadedWorld, prices: NodePrices) -> float:
    """The pods' share of what all nodes cost."""
    nodes: list[Node] = list(world.cluster.table.nodes)
    with world.trial() as trial:
        trial.settle()
        infos = (*world.cluster.placed.values(), *world.cluster.pending.values())
        pods = [info.pod for info in infos]
    shares = [_share(nodes, pods, resource) for resource in (CPU, MEMORY)]
    return sum(prices.of(node) for node in nodes) / NANOS * sum(shares) / len(shares)


def _share(nodes: Sequence[Node], pods: Sequence[Pod], resource: str) -> float:
    there = sum(node_units(node.status.allocatable, "").get(resource, 0) for node in nodes)
    asked = sum(pod_resources(pod).requests.get(resource, 0) for pod in pods)
    return asked / there if there else 0.0


def _containers(item: KubeObject) -> list[tuple[FieldPath, Container]]:
    """With the path of each in the object."""
    spec: PodSpec | None = None
    match item:
        case Pod():
            spec = item.spec
        case CronJob():
            template = item.spec.job_template.spec.template
            spec = None if template is None else template.spec
        case Deployment() | StatefulSet() | DaemonSet() | ReplicaSet() | ReplicationController() | Job():
            spec = None if item.spec.template is None else item.spec.template.spec
        case _:
            return []
    if spec is None:
        return []
    above = path_of_spec(type(item).__name__)
    groups = (("containers", spec.containers), ("initContainers", spec.init_containers or ()))
    return [((*above, field, index), one) for field, group in groups for index, one in enumerate(group)]


def source_paths(sources: Iterable[Source], directory: Path) -> list[str]:
    """Where manifests stand; relative paths are the check file's."""
    return [str(directory / (source.file or source.dir)) for source in sources]
