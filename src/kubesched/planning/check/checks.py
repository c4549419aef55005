"""Answers the rules of a check, each on the cluster with the change in it, for several seeds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kubesched.explanation.layout import counted
from kubesched.k8s.loaded_cluster import LoadedCluster
from kubesched.k8s.model.apps import CronJob, DaemonSet, Deployment, DeploymentStrategy, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Container, Node, Pod, PodSpec, ReplicationController
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.model.requests import CPU, MEMORY, node_units, pod_resources
from kubesched.k8s.workloads.deployments import rolling_limits
from kubesched.planning.capacity import capacity
from kubesched.planning.catalogue import NANOS, Catalogue
from kubesched.planning.check.check_file import (
    CapacityRule,
    CheckError,
    CheckFile,
    CostRule,
    FitsRule,
    OutageRule,
    RequestsRule,
    Rule,
    UpgradeRule,
)
from kubesched.planning.check.positions import Position, Positions
from kubesched.planning.check.report import CheckFinding, CheckReport, Passed, RuleResult
from kubesched.planning.outage import outage
from kubesched.planning.prices import NodePrices
from kubesched.planning.upgrade.upgrading import upgrade
from kubesched.simulator.library import load
from kubesched.simulator.library import world as load_world
from kubesched.simulator.trial import LoadedWorld

_HOURS_A_MONTH = 730


@dataclass(slots=True)
class CheckRun:
    """A cluster, a change to it, and who says where the change's objects stand."""

    asked: CheckFile
    cluster: LoadedCluster
    change: LoadedCluster
    positions: Positions
    source: str = ""
    config: Any = None
    catalogue: Catalogue | None = None
    _whole: LoadedCluster = field(init=False)

    def __post_init__(self) -> None:
        self._whole = load(self.cluster, self.change)

    def report(self) -> CheckReport:
        results = tuple(self._result(rule) for rule in self.asked.checks)
        return CheckReport(self.asked.metadata.name, results, self.asked.seeds, self.source)

    def _result(self, rule: Rule) -> RuleResult:
        kind = rule.kinds[0]
        name = rule.name or kind
        if rule.fits is not None:
            return self._fits(name, rule.fits)
        if rule.capacity is not None:
            return self._capacity(name, rule.capacity)
        if rule.outage is not None:
            return self._outage(name, rule.outage)
        if rule.cost is not None:
            return self._cost(name, rule.cost)
        if rule.upgrade is not None:
            return self._upgrade(name, rule.upgrade)
        assert rule.requests is not None
        return self._requests(name, rule.requests)

    # -- does it fit ---------------------------------------------------------------------------------------------------

    def _fits(self, name: str, rule: FitsRule) -> RuleResult:
        whole = self._surging() if rule.rolling_update else self._whole
        answers = [self._unplaced(whole, seed) for seed in range(self.asked.seeds)]
        n_bad = sum(bool(found) for _, found in answers)
        n_placed = answers[0][0]
        what = "rolling out all at once" if rule.rolling_update else "all of them"
        if not n_bad:
            return RuleResult(name, "fits", Passed.YES, f"{counted(n_placed, 'pod')} placed, {what}")
        findings = next(found for _, found in answers if found)
        n_pods = sum(int(one.message.split(" ", 1)[0]) for one in findings)
        headline = f"{counted(n_pods, 'pod')} would stay pending"
        return self._over_seeds(name, "fits", n_bad, headline, findings)

    def _unplaced(self, whole: LoadedCluster, seed: int) -> tuple[int, list[CheckFinding]]:
        """How many pods were placed, and the workloads whose pods were not, beside those that wait already."""
        waited = self._waiting_before(seed)
        world = self._world(whole, seed)
        with world.trial() as trial:
            settled = trial.settle()
            by_workload: dict[str, tuple[int, str]] = {}
            for one in settled.pending:
                if one.pod in waited:
                    continue
                owner = _workload_of(world, one.pod)
                n, why = by_workload.get(owner, (0, ""))
                by_workload[owner] = n + 1, why or one.explain().headline
        refused = [CheckFinding(f"1 object is refused: {text}") for text in world.refused]
        found = [
            CheckFinding(f"{counted(n, 'pod')} pending: {why}", owner, self._position(owner))
            for owner, (n, why) in by_workload.items()
        ]
        return len(settled.placed), [*refused, *found]

    def _waiting_before(self, seed: int) -> set[str]:
        with self._world(self.cluster, seed).trial() as trial:
            return {one.pod for one in trial.settle().pending}

    def _surging(self) -> LoadedCluster:
        """As while all changed Deployments roll out: with as many pods more as they may have."""
        surging: list[KubeObject] = []
        for item in self.change.found.objects:
            if isinstance(item, Deployment):
                replicas = 1 if item.spec.replicas is None else item.spec.replicas
                surge, _ = rolling_limits(item.spec.strategy or DeploymentStrategy(), replicas)
                surging.append(replace(item, spec=replace(item.spec, replicas=replicas + surge)))
            else:
                surging.append(item)
        found = replace_objects(self.change, surging)
        return load(self.cluster, found)

    # -- the others ----------------------------------------------------------------------------------------------------

    def _capacity(self, name: str, rule: CapacityRule) -> RuleResult:
        what = rule.shape or rule.pod
        by = (rule.by,) if rule.by else ()
        short: list[list[CheckFinding]] = []
        fewest = 0
        for seed in range(self.asked.seeds):
            found = capacity(
                self._world(self._whole, seed),
                rule.pod or None,
                shapes=(rule.shape,) if rule.shape else (),
                by=by,
                most=rule.at_least if not by else 100_000,
            )
            answers = found.answers[1:] if by else found.answers
            fewest = min(one.fits for one in answers)
            short.append(
                [
                    CheckFinding(f"{one.fits} fit, {rule.at_least} are wanted; the next one: {one.message}", one.group)
                    for one in answers
                    if one.fits < rule.at_least
                ]
            )
        n_bad = sum(map(bool, short))
        where = f" in each {rule.by}" if rule.by else ""
        if not n_bad:
            return RuleResult(name, "capacity", Passed.YES, f"at least {rule.at_least} more of {what} fit{where}")
        headline = f"{fewest} more of {what} fit{where and f' in some {rule.by}'}, {rule.at_least} are wanted"
        return self._over_seeds(name, "capacity", n_bad, headline, next(found for found in short if found))

    def _outage(self, name: str, rule: OutageRule) -> RuleResult:
        lost: list[list[CheckFinding]] = []
        n_cases = 0
        for seed in range(self.asked.seeds):
            report = outage(
                self._whole,
                every=rule.every,
                gone=rule.gone,
                priority_at_least=rule.priority_at_least,
                config=self.config,
                seed=seed,
            )
            n_cases = len(report.results)
            lost.append(
                [
                    CheckFinding(f"{counted(one.missing, 'pod')} not replaced after the loss of {one.case.name}")
                    for one in report.ranked
                    if one.missing
                ]
            )
        n_bad = sum(map(bool, lost))
        if not n_bad:
            return RuleResult(name, "outage", Passed.YES, f"every {rule.every} can fail ({counted(n_cases, 'case')})")
        findings = next(found for found in lost if found)
        headline = f"{len(findings)} of {counted(n_cases, 'case')} leave pods without a node"
        return self._over_seeds(name, "outage", n_bad, headline, findings)

    def _cost(self, name: str, rule: CostRule) -> RuleResult:
        before, after = (self._monthly(self._world(one, 0)) for one in (self.cluster, self._whole))
        grows, share = after - before, (after - before) / before if before else 0.0
        limit = str(rule.at_most)
        percent = re.fullmatch(r"\+?(\d+(?:\.\d+)?)\s*%", limit)
        try:
            is_within = share * 100 <= float(percent[1]) + 1e-9 if percent else grows <= float(limit) + 1e-9
        except ValueError:
            raise CheckError(f'{self.source}: checks: cost.atMost: "{limit}" is neither +5% nor an amount') from None
        told = f"the pods' share of the nodes grows by {share:+.1%} ({self._money(grows)}); {limit} is allowed"
        return RuleResult(name, "cost", Passed.YES if is_within else Passed.NO, told)

    def _upgrade(self, name: str, rule: UpgradeRule) -> RuleResult:
        stuck: list[list[CheckFinding]] = []
        for seed in range(self.asked.seeds):
            report = upgrade(
                self._whole,
                pool=rule.pool,
                preset=rule.preset,
                max_surge=rule.max_surge,
                config=self.config,
                seed=seed,
            )
            found = [
                CheckFinding(f"{pod.pod} stays, kept by {' and '.join(pod.budgets) or 'no budget'}", f"node {one.node}")
                for one in report.outcome.stuck
                for pod in one.pods
            ]
            stuck.append([] if report.finishes else found or [CheckFinding(report.headline)])
        n_bad = sum(map(bool, stuck))
        where = f" of pool {rule.pool}" if rule.pool else ""
        if not n_bad:
            return RuleResult(name, "upgrade", Passed.YES, f"a rolling upgrade{where} finishes")
        headline = f"a rolling upgrade{where} does not finish"
        return self._over_seeds(name, "upgrade", n_bad, headline, next(found for found in stuck if found))

    def _requests(self, name: str, rule: RequestsRule) -> RuleResult:
        wanted = [one for one in (CPU, MEMORY) if getattr(rule, one) == "required"]
        findings = []
        n_containers = 0
        for item in self.change.found.objects:
            for container in _containers(item):
                n_containers += 1
                asked = (container.resources.requests if container.resources else None) or {}
                limits = (container.resources.limits if container.resources else None) or {}
                missing = [one for one in wanted if one not in asked and one not in limits]
                if missing:
                    about = f"{type(item).__name__} {item.key}"
                    told = f"container {container.name} requests no {' and no '.join(missing)}"
                    findings.append(CheckFinding(told, about, self._position(about)))
        if not findings:
            told = f"{counted(n_containers, 'container')}, each with a request for {' and '.join(wanted) or 'nothing'}"
            return RuleResult(name, "requests", Passed.YES, told)
        headline = f"{counted(len(findings), 'container')} without requests"
        return RuleResult(name, "requests", Passed.NO, headline, tuple(findings))

    # ------------------------------------------------------------------------------------------------------------------

    def _over_seeds(
        self, name: str, rule: str, n_bad: int, headline: str, findings: Sequence[CheckFinding]
    ) -> RuleResult:
        n = self.asked.seeds
        if n_bad == n:
            return RuleResult(name, rule, Passed.NO, headline, tuple(findings))
        told = f"{headline} with {n_bad} of {counted(n, 'seed')}: it depends on chance"
        return RuleResult(name, rule, Passed.UNDECIDED, told, tuple(findings))

    def _world(self, cluster: LoadedCluster, seed: int) -> LoadedWorld:
        return load_world(cluster, config=self.config, seed=seed)

    def _monthly(self, world: LoadedWorld) -> float:
        """What the pods' requests take of the nodes, by the mean of cpu and memory, in money or in nodes."""
        nodes: list[Node] = list(world.cluster.table.nodes)
        prices = NodePrices(nodes, self.catalogue)
        hourly = sum(prices.of(node) for node in nodes) / NANOS
        with world.trial() as trial:
            trial.settle()
            pods = [info.pod for info in world.cluster.placed.values()]
            pods += [info.pod for info in world.cluster.pending.values()]
            shares = [_share(nodes, pods, resource) for resource in (CPU, MEMORY)]
        return hourly * _HOURS_A_MONTH * sum(shares) / len(shares)

    def _money(self, monthly: float) -> str:
        prices = NodePrices(list(self._world(self.cluster, 0).cluster.table.nodes), self.catalogue)
        if prices.are_counted:  # nobody says what a node costs: each counts as one
            return f"{monthly / _HOURS_A_MONTH:+.2f} nodes"
        return f"{monthly:+.2f} {prices.currency} a month"

    def _position(self, about: str) -> Position | None:
        kind, _, key = about.partition(" ")
        namespace, _, name = key.rpartition("/")
        return self.positions.of(kind, namespace, name)


def _share(nodes: Sequence[Node], pods: Sequence[Pod], resource: str) -> float:
    there = sum(node_units(node.status.allocatable, "").get(resource, 0) for node in nodes)
    asked = sum(pod_resources(pod).requests.get(resource, 0) for pod in pods)
    return asked / there if there else 0.0


def _workload_of(world: LoadedWorld, key: str) -> str:
    """The workload that somebody wrote, as far as the name of the pod's owner tells."""
    pod = world.pod(key).pod
    owner = controller_of(pod.metadata)
    if owner is None:
        return f"Pod {key}"
    if owner.kind == "ReplicaSet":
        return f"Deployment {pod.namespace}/{owner.name.rpartition('-')[0] or owner.name}"
    return f"{owner.kind} {pod.namespace}/{owner.name}"


def _containers(item: KubeObject) -> tuple[Container, ...]:
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
            return ()
    return () if spec is None else (*spec.containers, *(spec.init_containers or ()))


def replace_objects(cluster: LoadedCluster, objects: Sequence[KubeObject]) -> LoadedCluster:
    found = cluster.found
    return LoadedCluster(type(found)(list(objects), dict(found.sources), dict(found.ignored), found.kinds))


def check_paths(asked: CheckFile, base: Path) -> list[str]:
    """Where the change's manifests stand; relative paths are the check file's."""
    return [str(base / (source.file or source.dir)) for source in asked.change]
