"""Operations, step by step: pods are created, deleted, waited for and measured; other objects are made or changed.

The others are nodes, namespaces, anything, device drivers, and churn.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from fnmatch import fnmatchcase

from msgspec.structs import replace

from kubesched.k8s.model.core import Node, Pod, PodResourceClaim
from kubesched.k8s.model.meta import KubeObject, ObjectMeta, PodKey
from kubesched.k8s.model.resource import Device, DeviceAttribute, DeviceCapacity, ResourcePool, ResourceSlice
from kubesched.k8s.model.resource import ResourceSliceSpec as SliceSpec
from kubesched.simulator.bench.arrivals import at_random, run_arrivals
from kubesched.simulator.bench.object_factory import (
    PodTemplates,
    complete_node,
    default_node_template,
    default_pod_template,
    make_nodes,
    make_pod,
    make_pods,
)
from kubesched.simulator.bench.operations import (
    AllocResourceClaimsOp,
    ArrivePodsOp,
    BarrierOp,
    ChurnOp,
    CreateAnyOp,
    CreateNamespacesOp,
    CreateNodesOp,
    CreatePodSetsOp,
    CreatePodsOp,
    CreateResourceDriverOp,
    DeletePodsOp,
    SleepOp,
    StartCollectingMetricsOp,
    StopCollectingMetricsOp,
    UpdateAnyOp,
)
from kubesched.simulator.bench.run import (
    Activity,
    BenchRun,
    CreatingChurn,
    Make,
    PacedDeletion,
    PacedUpdates,
    PodFilter,
    RecreatingChurn,
    has_labels,
)
from kubesched.simulator.bench.templates import Template


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
    bunch = workload.number(where, operation.beside_bunch, operation.beside_bunch_param)
    if per_s < 1 or bunch < 1:
        raise workload.refuse(where, "perSecond and besideBunch: 1 or more is expected")
    pods = _made(run, operation.pod_template_path, count, operation.namespace)
    n_bunches = count * besides_per_s // per_s
    besides = _made(run, operation.beside_pod_template_path, n_bunches * bunch, operation.beside_namespace)
    bunches = [besides[at : at + bunch] for at in range(0, len(besides), bunch)]
    open_window(run, PodFilter(frozenset({operation.namespace}), {}))
    for pod in pods:
        run.measurement.pod_created(pod)
    plain = at_random(([pod] for pod in pods), per_s, "measured")
    beside = at_random(bunches, besides_per_s, "beside")
    measured = {pod.pod_key for pod in pods}
    run.waited_ns = run_arrivals(run.world, run.driver.catch_up, (*plain, *beside), measured, run.clock_ns)
    run.measurement.took_ns.extend(run.waited_ns.values())
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


_ALLOCATING_NAMESPACE = "alloc-resource-claims"


def create_nodes(run: BenchRun, number: int, operation: CreateNodesOp) -> None:
    count = run.workload.number(run.where(number, operation), operation.count, operation.count_param)
    path = operation.node_template_path
    template = run.template(path) if path else default_node_template()
    run.add(make_nodes(operation, template, count, run.factory))
    run.n_nodes += count


def create_namespaces(run: BenchRun, number: int, operation: CreateNamespacesOp) -> None:
    count = run.workload.number(run.where(number, operation), operation.count, operation.count_param)
    for index in range(count):
        name = f"{operation.prefix}-{index}"
        if operation.namespace_template_path:
            template = run.template(operation.namespace_template_path)
            run.add_namespace(run.factory.make(template, index, count, name=name))
        else:
            run.ensure_namespace(name)


# -- anything ----------------------------------------------------------------------------------------------------------


def create_any(run: BenchRun, number: int, operation: CreateAnyOp) -> None:
    count = _count(run, number, operation)
    template = run.template(operation.template_path)
    run.ensure_namespace(operation.namespace)
    run.add(run.factory.make(template, i, count, namespace=operation.namespace) for i in range(count))


def update_any(run: BenchRun, number: int, operation: UpdateAnyOp) -> None:
    count = _count(run, number, operation)
    template = run.template(operation.template_path)
    where = run.where(number, operation)
    for subresource in operation.subresources:
        if subresource not in ("resize", "status"):
            raise run.workload.refuse(where, f"subresources: {subresource!r} is not known")

    def update(index: int) -> None:
        with run.measurement.paused():
            item = run.factory.make(template, index, count, namespace=operation.namespace)
            changed = _changed(run, item, template, is_resize="resize" in operation.subresources)
        if changed is None:
            raise run.workload.refuse(where, f"{template.kind} {item.key} does not exist")
        run.world.put(changed)

    if operation.update_per_second:
        interval_s = 1 / operation.update_per_second
        run.driver.run_through(PacedUpdates(count, update, now_s=run.world.now_s, interval_s=interval_s))
        return
    for index in range(count):
        update(index)


def _count(run: BenchRun, number: int, operation: CreateAnyOp | UpdateAnyOp) -> int:
    given = 1 if operation.count is None else operation.count
    return run.workload.number(run.where(number, operation), given, operation.count_param)


def _changed(run: BenchRun, item: KubeObject, template: Template, *, is_resize: bool) -> KubeObject | None:
    """The new object in the place of the old one, whose identity it keeps."""
    cluster = run.world.loop.cluster
    if isinstance(item, Pod):
        old: KubeObject | None = run.world.pods.get(item.pod_key)
    elif isinstance(item, Node):
        row = cluster.table.rows.get(item.name)
        old = None if row is None else cluster.table.nodes[row]
        item = complete_node(item, template)
    else:
        old = cluster.objects.find(item)
    if old is None:
        return None
    if is_resize and isinstance(old, Pod) and isinstance(item, Pod):
        return run.factory.versioned(_resized(old, item))
    return replace(item, metadata=replace(item.metadata, uid=old.metadata.uid))


def _resized(old: Pod, new: Pod) -> Pod:
    resources = {container.name: container.resources for container in new.spec.containers}
    containers = tuple(replace(c, resources=resources.get(c.name, c.resources)) for c in old.spec.containers)
    return replace(old, spec=replace(old.spec, containers=containers))


# -- churn -------------------------------------------------------------------------------------------------------------


def start_churn(run: BenchRun, number: int, operation: ChurnOp) -> None:
    where = run.where(number, operation)
    if operation.mode not in ("create", "recreate"):
        raise run.workload.refuse(where, f"mode: create or recreate is expected, not {operation.mode!r}")
    if operation.interval_milliseconds <= 0:
        raise run.workload.refuse(where, "intervalMilliseconds: more than 0 is expected")
    namespace = f"namespace-{number}" if operation.namespace is None else operation.namespace
    run.ensure_namespace(namespace)
    makes = [_maker(run, run.template(path), namespace) for path in operation.template_paths]
    interval_s = operation.interval_milliseconds / 1000
    world = run.world
    churn: Activity
    if operation.mode == "create":
        churn = CreatingChurn(makes, world.put, now_s=world.now_s, interval_s=interval_s, n_rounds=operation.number)
    else:
        churn = RecreatingChurn(
            makes, world.put, world.delete, now_s=world.now_s, interval_s=interval_s, number=operation.number
        )
    run.driver.start(churn)


def _maker(run: BenchRun, template: Template, namespace: str) -> Make:
    def make() -> KubeObject:
        with run.measurement.paused():
            item = run.factory.make(template, namespace=namespace)
            return complete_node(item, template) if isinstance(item, Node) else item

    return make


# -- devices -----------------------------------------------------------------------------------------------------------


def create_resource_driver(run: BenchRun, number: int, operation: CreateResourceDriverOp) -> None:
    where = run.where(number, operation)
    n_devices = run.workload.number(where, operation.max_claims_per_node, operation.max_claims_per_node_param)
    names = [name for name in run.world.loop.cluster.table.rows if fnmatchcase(name, operation.nodes)]
    run.add(_slice(run, operation.driver_name, name, n_devices) for name in sorted(names))


def _slice(run: BenchRun, driver: str, node_name: str, n_devices: int) -> ResourceSlice:
    devices = tuple(
        Device(
            f"instance-{i}",
            attributes={
                "model": DeviceAttribute(string="A100"),
                "family": DeviceAttribute(string="GPU"),
                "driverVersion": DeviceAttribute(version="1.2.3"),
                "dra.example.com/numa": DeviceAttribute(int_value=i),
            },
            capacity={"memory": DeviceCapacity("1Gi")},
        )
        for i in range(n_devices)
    )
    metadata = ObjectMeta(name=node_name, uid=run.factory.next_uid(), resource_version=run.factory.next_version())
    pool = ResourcePool(name=node_name, resource_slice_count=1)
    return ResourceSlice(metadata, SliceSpec(driver=driver, pool=pool, node_name=node_name, devices=devices))


def alloc_resource_claims(run: BenchRun, number: int, operation: AllocResourceClaimsOp) -> None:
    """Pods that use the claims are scheduled and deleted; the claims keep the devices they got."""
    world = run.world
    claims = [
        claim
        for claim in world.loop.cluster.objects.resource_claims.values()
        if claim.status.allocation is None and operation.namespace in ("", claim.namespace)
    ]
    pods = []
    for claim in claims:
        name = run.factory.generated_name(f"{_ALLOCATING_NAMESPACE}-")
        metadata = ObjectMeta(name=name, namespace=claim.namespace, uid=run.factory.next_uid())
        pod = Pod(metadata)
        use = PodResourceClaim("claim", resource_claim_name=claim.name)
        pods.append(replace(pod, spec=replace(pod.spec, resource_claims=(use,))))
    run.wait_until_bound(run.add(pods), run.where(number, operation))
    for claim, pod in zip(claims, pods, strict=True):
        allocated = world.loop.cluster.objects.resource_claims[claim.key]
        world.delete(pod)
        world.put(run.factory.versioned(replace(allocated, status=replace(allocated.status, reserved_for=None))))
