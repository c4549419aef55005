"""Operations that make or change objects other than pods: nodes, namespaces, anything, device drivers, churn."""

from __future__ import annotations

from fnmatch import fnmatchcase

from msgspec.structs import replace

from kubesched.k8s.model.core import Node, Pod, PodResourceClaim
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.resource import Device, DeviceAttribute, DeviceCapacity, ResourcePool, ResourceSlice
from kubesched.k8s.model.resource import ResourceSliceSpec as SliceSpec
from kubesched.simulator.bench.driver import Activity, CreatingChurn, Make, PacedUpdates, RecreatingChurn
from kubesched.simulator.bench.object_factory import complete_node, default_node_template, make_nodes
from kubesched.simulator.bench.operations import (
    AllocResourceClaimsOp,
    ChurnOp,
    CreateAnyOp,
    CreateNamespacesOp,
    CreateNodesOp,
    CreateResourceDriverOp,
    UpdateAnyOp,
)
from kubesched.simulator.bench.run import BenchRun
from kubesched.simulator.bench.templates import Template

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
