"""Operations about pods: creating them, deleting them, waiting for them, measuring them."""

from __future__ import annotations

import gc
from collections.abc import Iterable

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.simulator.bench.driver import PacedDeletion
from kubesched.simulator.bench.measurement import PodFilter, has_labels
from kubesched.simulator.bench.object_factory import PodTemplates, default_pod_template, make_pod, make_pods
from kubesched.simulator.bench.operations import (
    ArrivePodsOp,
    BarrierOp,
    CreatePodSetsOp,
    CreatePodsOp,
    DeletePodsOp,
    SleepOp,
    StartCollectingMetricsOp,
    StopCollectingMetricsOp,
)
from kubesched.simulator.bench.run import BenchRun


def create_pods(run: BenchRun, number: int, operation: CreatePodsOp) -> None:
    namespace = f"namespace-{number}" if operation.namespace is None else operation.namespace
    _create_pods(run, run.where(number, operation), operation, namespace)


def create_pod_sets(run: BenchRun, number: int, operation: CreatePodSetsOp) -> None:
    where = run.where(number, operation)
    for index in range(run.workload.number(where, operation.count, operation.count_param)):
        _create_pods(run, where, operation.create_pods_op, f"{operation.namespace_prefix}-{index}")


def _create_pods(run: BenchRun, where: str, operation: CreatePodsOp, namespace: str) -> None:
    workload = run.workload
    run.ensure_namespace(namespace)
    count = workload.pod_count(where, operation, run.n_nodes)
    templates = _templates(run, operation)
    if operation.collect_metrics:
        open_window(run, PodFilter(frozenset({namespace}), {}))
    keys = run.add(make_pods(templates, count, namespace, run.factory))
    if workload.flag(where, operation.steady_state, operation.steady_state_param):
        for_s = workload.seconds(where, operation.duration, operation.duration_param)
        _hold_steady(run, templates, count, namespace, for_s)
    elif operation.skip_wait_to_completion:
        run.not_awaited.update(keys)
    else:
        run.wait_until_bound(keys, where)
    if operation.collect_metrics:
        run.measurement.close()


def _templates(run: BenchRun, operation: CreatePodsOp) -> PodTemplates:
    path = operation.pod_template_path or run.workload.default_pod_template_path
    claim, volume = operation.persistent_volume_claim_template_path, operation.persistent_volume_template_path
    return PodTemplates(
        run.template(path) if path else default_pod_template(),
        run.template(claim) if claim else None,
        run.template(volume) if volume else None,
    )


def _hold_steady(run: BenchRun, templates: PodTemplates, count: int, namespace: str, for_s: float) -> None:
    """Every pod that gets a node is deleted and another one created, for this long."""
    world = run.world
    until_s = world.now_s + for_s
    made = count
    landed: list[Pod] = []

    def note(pod: Pod) -> None:
        run.measurement.pod_bound(pod)
        if pod.namespace == namespace:
            landed.append(pod)

    def replace_landed() -> bool:
        nonlocal made
        while landed:
            world.delete(landed.pop())
            run.add(make_pod(templates, made, made + 1, namespace, run.factory))
            made += 1
        return world.now_s >= until_s

    world.bound = note
    run.driver.run_until(replace_landed, for_s)
    world.bound = run.measurement.pod_bound


def arrive_pods(run: BenchRun, number: int, operation: ArrivePodsOp) -> None:
    workload, where = run.workload, run.where(number, operation)
    for namespace in (operation.namespace, operation.beside_namespace):
        run.ensure_namespace(namespace)
    count = workload.number(where, operation.count, operation.count_param)
    per_s = workload.number(where, operation.per_second, operation.per_second_param)
    besides_per_s = workload.number(where, operation.besides_per_second, operation.besides_per_second_param)
    if per_s < 1 or operation.beside_bunch < 1:
        raise workload.refuse(where, "perSecond and besideBunch: 1 or more is expected")
    pods = _made(run, operation.pod_template_path, count, operation.namespace)
    n_bunches, bunch = count * besides_per_s // per_s, operation.beside_bunch
    besides = _made(run, operation.beside_pod_template_path, n_bunches * bunch, operation.beside_namespace)
    bunches = [besides[at : at + bunch] for at in range(0, len(besides), bunch)]
    open_window(run, PodFilter(frozenset({operation.namespace}), {}))
    run.driver.run_arrivals(
        [
            *((place / per_s, [pod]) for place, pod in enumerate(pods)),
            *(((place + 0.5) / besides_per_s, pods) for place, pods in enumerate(bunches)),
        ],
        lambda pod: pod.namespace == operation.namespace,
    )
    run.wait_until_bound([pod.pod_key for pod in (*pods, *besides)], where)
    run.measurement.close()


def _made(run: BenchRun, path: str, count: int, namespace: str) -> list[Pod]:
    template = run.template(path) if path else default_pod_template()
    made = make_pods(PodTemplates(template, None, None), count, namespace, run.factory)
    return [item for item in made if isinstance(item, Pod)]


# -- deleting ----------------------------------------------------------------------------------------------------------


def delete_pods(run: BenchRun, number: int, operation: DeletePodsOp) -> None:
    world = run.world
    if operation.delete_pods_per_second < 0:
        raise run.workload.refuse(run.where(number, operation), "deletePodsPerSecond: 0 or more is expected")
    pods = [
        pod
        for pod in world.pods.values()
        if pod.namespace == operation.namespace and has_labels(pod, operation.label_selector)
    ]
    if not operation.delete_pods_per_second:
        for pod in pods:
            world.delete(pod)
        return
    interval_s = 1 / operation.delete_pods_per_second
    deletion = PacedDeletion(pods, world.delete, now_s=world.now_s, interval_s=interval_s)
    if operation.skip_wait_to_completion:
        run.driver.start(deletion)
    else:
        run.driver.run_through(deletion)


# -- waiting -----------------------------------------------------------------------------------------------------------


def wait_at_barrier(run: BenchRun, number: int, operation: BarrierOp) -> None:
    where = run.where(number, operation)
    keys = _not_awaited(run, operation)
    if operation.stage_requirement == "Attempted":
        run.wait_until_attempted(keys, where)
    elif operation.stage_requirement == "Scheduled":
        run.wait_until_bound(keys, where)
        run.not_awaited.difference_update(keys)
    else:
        problem = f"stageRequirement: Attempted or Scheduled is expected, not {operation.stage_requirement!r}"
        raise run.workload.refuse(where, problem)


def _not_awaited(run: BenchRun, operation: BarrierOp) -> list[PodKey]:
    found = []
    for key in run.not_awaited:
        pod = run.world.pods.get(key)
        if pod is None or (operation.namespaces and pod.namespace not in operation.namespaces):
            continue
        if has_labels(pod, operation.label_selector):
            found.append(key)
    return found


def sleep(run: BenchRun, number: int, operation: SleepOp) -> None:
    where = run.where(number, operation)
    run.driver.run_for(run.workload.seconds(where, operation.duration, operation.duration_param))


# -- measuring ---------------------------------------------------------------------------------------------------------


def start_collecting_metrics(run: BenchRun, number: int, operation: StartCollectingMetricsOp) -> None:
    if run.measurement.is_open:
        raise run.workload.refuse(run.where(number, operation), "metrics are being collected already")
    window = PodFilter(frozenset(operation.namespaces), operation.label_selector)
    run.measurement.n_pods += _count_unbound(run.world.pods.values(), window)
    open_window(run, window)


def stop_collecting_metrics(run: BenchRun, number: int, operation: StopCollectingMetricsOp) -> None:
    if not run.measurement.is_open:
        raise run.workload.refuse(run.where(number, operation), "no metrics are being collected")
    run.measurement.close()


def open_window(run: BenchRun, window: PodFilter) -> None:
    """What was made so far stays: the garbage collector need not look at it during the measurement."""
    gc.freeze()
    run.measurement.open(window)


def _count_unbound(pods: Iterable[Pod], window: PodFilter) -> int:
    return sum(not pod.spec.node_name and window.matches(pod) for pod in pods)
