"""Not enough of something: cpu, memory, gpus, pods, storage, huge pages, ports, attachments."""

from __future__ import annotations

from kubesched.testing import make
from situations.eks import GPU, EksCluster, anti_affinity, background, bound, csi_node, mounts
from situations.situation import Situation, situation


@situation("two gpus where each gpu node has one free")
def _() -> Situation:
    cluster, _ = background(1, 33)
    gpus = cluster.group("gpu", "p3.8xlarge", 4)
    cluster.fill(gpus, requests={GPU: 3}, cpu=4)
    pod = cluster.pending("train", requests={GPU: 2}, cpu=4, memory="16Gi")
    return Situation(
        cluster.objects, pod, "insufficient-resources", ("2 nvidia.com/gpu", "4 nodes", "1 free each"), tuple(gpus)
    )


@situation("gpus behind a taint, which the pod tolerates, all taken")
def _() -> Situation:
    cluster, _ = background(2, 60)
    gpus = cluster.group("gpu", "g5.2xlarge", 6, taints=[make.taint(GPU, "true")], karpenter=True)
    cluster.fill(gpus, requests={GPU: 1}, cpu=2)
    pod = cluster.pending("infer", requests={GPU: 1}, spec={"tolerations": [make.toleration(GPU)]})
    return Situation(
        cluster.objects,
        pod,
        "insufficient-resources",
        ("1 nvidia.com/gpu", "6 nodes", "0 free each"),
        tuple(gpus),
        ("free", "add-node"),
    )


@situation("more gpus than any machine has")
def _() -> Situation:
    cluster, _ = background(3, 20)
    cluster.group("gpu", "g5.2xlarge", 5)
    large = cluster.group("gpu-large", "p3.8xlarge", 2)
    pod = cluster.pending("train", requests={GPU: 8})
    return Situation(cluster.objects, pod, "too-large", ("8 nvidia.com/gpu", "4"), tuple(large))


@situation("gpus on a cluster that has none")
def _() -> Situation:
    cluster, names = background(4, 100)
    pod = cluster.pending("train", requests={GPU: 1})
    return Situation(cluster.objects, pod, "no-such-resource", ("nvidia.com/gpu", "no node has any"), tuple(names))


@situation("cpu on a busy cluster of 1000 nodes")
def _() -> Situation:
    cluster, _ = background(5, 990, busy=0.8)
    spare = cluster.group("general", "m5.2xlarge", 10)
    cluster.fill(spare, cpu="5500m", memory="4Gi")
    pod = cluster.pending("api", cpu=3, memory="4Gi")
    return Situation(
        cluster.objects, pod, "insufficient-resources", ("3 cpu", "1000 nodes", "2410m free"), tuple(spare)
    )


@situation("memory, with cpu to spare")
def _() -> Situation:
    cluster = EksCluster(6)
    names = cluster.group("general", "m5.2xlarge", 12)
    cluster.fill(names, cpu="500m", memory="26Gi")
    pod = cluster.pending("cache", cpu="250m", memory="6Gi")
    return Situation(
        cluster.objects, pod, "insufficient-resources", ("6Gi memory", "12 nodes"), tuple(names), silent_about=("cpu",)
    )


@situation("too big for any node")
def _() -> Situation:
    cluster, _ = background(7, 40)
    large = cluster.group("large", "m5.4xlarge", 3)
    pod = cluster.pending("etl", cpu=24, memory="32Gi")
    return Situation(cluster.objects, pod, "too-large", ("24 cpu", "15890m", "largest"), tuple(large))


@situation("small nodes do not matter where two large ones are busy")
def _() -> Situation:
    cluster, _ = background(8, 50)
    large = cluster.group("large", "m5.24xlarge", 2)
    cluster.fill(large, cpu=70, memory="100Gi")
    pod = cluster.pending("etl", cpu=32, memory="64Gi")
    return Situation(
        cluster.objects, pod, "insufficient-resources", ("32 cpu", "2 nodes", "large enough"), tuple(large)
    )


@situation("nodes full of pods")
def _() -> Situation:
    cluster = EksCluster(9)
    names = cluster.group("small", "t3.medium", 10)
    cluster.fill(names, pods=17, cpu="10m", memory="16Mi")
    pod = cluster.pending("tiny", cpu="10m", memory="16Mi")
    return Situation(cluster.objects, pod, "insufficient-resources", ("17 of 17", "pod"), tuple(names))


@situation("ephemeral storage")
def _() -> Situation:
    cluster, names = background(10, 25, busy=0.2)
    cluster.fill(names, requests={"ephemeral-storage": "80Gi"})
    pod = cluster.pending("build", cpu=1, requests={"ephemeral-storage": "40Gi"})
    return Situation(cluster.objects, pod, "insufficient-resources", ("40Gi ephemeral-storage", "15Gi"), tuple(names))


@situation("huge pages that no node has set aside")
def _() -> Situation:
    cluster, names = background(11, 30)
    pod = cluster.pending("dpdk", requests={"hugepages-2Mi": "1Gi"}, cpu=1, memory="1Gi")
    return Situation(cluster.objects, pod, "no-such-resource", ("1Gi hugepages-2Mi", "no node has any"), tuple(names))


@situation("huge pages, few left on the nodes that have them")
def _() -> Situation:
    cluster, _ = background(12, 30)
    tuned = cluster.group("dpdk", "m5.4xlarge", 3, allocatable={"hugepages-2Mi": "4Gi"})
    cluster.fill(tuned, requests={"hugepages-2Mi": "3584Mi"}, cpu=1, memory="1Gi")
    pod = cluster.pending("dpdk", requests={"hugepages-2Mi": "1Gi"}, cpu=1, memory="1Gi")
    return Situation(
        cluster.objects, pod, "insufficient-resources", ("1Gi hugepages-2Mi", "3 nodes", "512Mi free"), tuple(tuned)
    )


@situation("a host port that is taken everywhere")
def _() -> Situation:
    cluster = EksCluster(13)
    names = cluster.group("edge", "m5.large", 10)
    for name in names:
        cluster.run(name, cpu="100m", host_ports=[443])
    pod = cluster.pending("ingress", cpu="100m", host_ports=[443])
    return Situation(cluster.objects, pod, "host-port", ("443/TCP", "10 nodes"), tuple(names))


@situation("no more volumes can be attached")
def _() -> Situation:
    cluster = EksCluster(14)
    names = cluster.group("general", "m5.large", 10, zones=["eu-west-1a"])
    for at, name in enumerate(names):
        cluster.add(csi_node(name, 2))
        for number in range(2):
            cluster.add(*bound(f"data-{at}-{number}", "eu-west-1a"))
            cluster.run(name, cpu="100m", spec=mounts(f"data-{at}-{number}"))
    cluster.add(*bound("data-new", "eu-west-1a"))
    pod = cluster.pending("db", cpu="100m", spec=mounts("data-new"))
    return Situation(cluster.objects, pod, "volume-limit", ("ebs.csi.aws.com", "2 of 2"), tuple(names))


@situation("room that is kept for a nominated pod")
def _() -> Situation:
    cluster, _ = background(15, 20, busy=0.95)
    (free,) = cluster.group("general", "m5.2xlarge", 1)
    cluster.pending("important", cpu=6, priority=1000, status={"nominatedNodeName": free})
    pod = cluster.pending("web", cpu=4)
    return Situation(cluster.objects, pod, "nominated-pods", ("shop/important", "nominated"), (free,))


@situation("preemption makes room")
def _() -> Situation:
    cluster, _ = background(16, 12, busy=0.95)
    (busy,) = cluster.group("general", "m5.2xlarge", 1)
    victim = cluster.run(busy, "batch-7f9-x1", cpu=6, memory="8Gi", priority=-10)
    pod = cluster.pending("api", cpu=4, memory="4Gi", priority=-5)
    return Situation(
        cluster.objects,
        pod,
        "insufficient-resources",
        ("4 cpu", f"shop/{victim}", busy, "evicts"),
        (busy,),
        ("evict",),
    )


@situation("it may not preempt")
def _() -> Situation:
    cluster, names = background(17, 12, busy=0.9)
    pod = cluster.pending("batch", cpu=4, priority=1000, spec={"preemptionPolicy": "Never"})
    return Situation(cluster.objects, pod, "insufficient-resources", ("4 cpu", "12 nodes", "Never"), tuple(names))


@situation("it waits for its victims to terminate")
def _() -> Situation:
    cluster, _ = background(18, 12, busy=0.95)
    (busy,) = cluster.group("general", "m5.2xlarge", 1)
    cluster.run(busy, "batch-7f9-x1", cpu=6, memory="8Gi", priority=-10)
    cluster.objects[-1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    cluster.objects[-1]["status"]["conditions"] = [evicted]
    pod = cluster.pending("api", cpu=4, memory="4Gi", priority=100, status={"nominatedNodeName": busy})
    return Situation(cluster.objects, pod, "waits-for-evictions", (busy, "shop/batch-7f9-x1", "terminate"), (busy,))


@situation("the database on the only node with room is not to be evicted first")
def _() -> Situation:
    cluster = EksCluster(19)
    names = cluster.group("general", "m5.2xlarge", 10)
    for number, name in enumerate(names):
        cluster.run(name, f"db-{number}", cpu=5, memory="20Gi", owner=("StatefulSet", "db"), priority=100)
    pod = cluster.pending("report", cpu=4)
    return Situation(
        cluster.objects,
        pod,
        "insufficient-resources",
        ("4 cpu", "10 nodes", "2910m free each"),
        tuple(names),
        ("add-node", "lower-requests"),
    )


@situation("one replica per node, and nodes without one are full")
def _() -> Situation:
    cluster = EksCluster(20)
    names = cluster.group("general", "m5.2xlarge", 10)
    cluster.fill(names[:7], cpu=1, labels={"app": "web"})
    cluster.fill(names[7:], cpu="7500m", labels={"app": "batch"})
    pod = cluster.pending("web-8", cpu=1, labels={"app": "web"}, spec=anti_affinity({"app": "web"}))
    return Situation(cluster.objects, pod, "insufficient-resources", ("1 cpu", "3 nodes"), tuple(names[7:]))
