"""Amounts again, where more than one thing comes together: slips, partitions of GPUs, daemons, init containers."""

from __future__ import annotations

from kubesched.testing import make
from situations.eks import GPU, EksCluster, background, bound, csi_node, mounts, required_node_affinity
from situations.situation import Situation, situation

MIG = "nvidia.com/mig"


@situation("a partition of a gpu that no gpu is divided into")
def _() -> Situation:
    cluster, names = background(401, 60, busy=0.4)
    partitions = {GPU: 0, f"{MIG}-1g.5gb": 56, f"{MIG}-3g.20gb": 16}
    gpus = cluster.group("mig", "p4d.24xlarge", 4, allocatable=partitions, taints=[make.taint(GPU, "true")])
    tolerant = {"tolerations": [make.toleration(GPU)]}
    pod = cluster.pending("notebook", requests={f"{MIG}-2g.10gb": 1}, spec=tolerant)
    says = (f"1 {MIG}-2g.10gb", "no node has any", f"{MIG}-3g.20gb", f"{MIG}-1g.5gb")
    return Situation(cluster.objects, pod, "no-such-resource", says, (*gpus, *names), silent_about=("Did you mean",))


@situation("a whole gpu where all are divided")
def _() -> Situation:
    cluster, names = background(402, 60, busy=0.4)
    gpus = cluster.group("mig", "p4d.24xlarge", 4, allocatable={GPU: 0, f"{MIG}-1g.5gb": 56})
    pod = cluster.pending("train", requests={GPU: 1})
    says = ("1 nvidia.com/gpu", "no node has any", f"{MIG}-1g.5gb")
    return Situation(cluster.objects, pod, "no-such-resource", says, (*gpus, *names))


@situation("a slip in the name of a resource")
def _() -> Situation:
    cluster, _ = background(403, 60, busy=0.4)
    gpus = cluster.group("gpu", "p3.8xlarge", 4)
    pod = cluster.pending("train", requests={"nvidia.com/gpus": 1}, cpu=1)
    says = ("1 nvidia.com/gpus", "Did you mean nvidia.com/gpu?")
    return Situation(cluster.objects, pod, "no-such-resource", says, tuple(gpus), ("correct",))


@situation("a slip in the vendor of a resource, whose nodes are tainted")
def _() -> Situation:
    cluster, _ = background(404, 60, busy=0.4)
    gpus = cluster.group("gpu", "p3.8xlarge", 4, taints=[make.taint(GPU, "true")])
    pod = cluster.pending("train", requests={"nvida.com/gpu": 1}, spec={"tolerations": [make.toleration(GPU)]})
    says = ("1 nvida.com/gpu", "Did you mean nvidia.com/gpu?")
    return Situation(cluster.objects, pod, "no-such-resource", says, tuple(gpus), ("correct",))


@situation("more gpus than any machine has, behind a taint that it does not tolerate either")
def _() -> Situation:
    cluster, _ = background(425, 60, busy=0.4)
    gpus = cluster.group("gpu", "p3.8xlarge", 4, taints=[make.taint(GPU, "true")])
    pod = cluster.pending("train", requests={GPU: 8}, cpu=1)
    says = ("8 nvidia.com/gpu", "4 nodes with nvidia.com/gpu", "4")
    return Situation(cluster.objects, pod, "too-large", says, tuple(gpus))


@situation("huge pages of a size that no node has")
def _() -> Situation:
    cluster, names = background(405, 30, busy=0.3)
    tuned = cluster.group("dpdk", "m5.4xlarge", 3, allocatable={"hugepages-2Mi": "4Gi"})
    pod = cluster.pending("dpdk", requests={"hugepages-1Gi": "2Gi"}, cpu=1, memory="1Gi")
    says = ("2Gi hugepages-1Gi", "there is hugepages-2Mi")
    return Situation(cluster.objects, pod, "no-such-resource", says, (*tuned, *names))


@situation("half of the nodes lack memory, the others cpu")
def _() -> Situation:
    cluster = EksCluster(406)
    names = cluster.group("general", "m5.2xlarge", 12)
    cluster.fill(names[:6], cpu="500m", memory="27Gi")
    cluster.fill(names[6:], cpu=7, memory="1Gi")
    pod = cluster.pending("web", cpu=2, memory="6Gi")
    says = ("2 cpu", "6 of the 12 nodes have 910m free each", "6 more nodes have less than 6Gi memory free")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(names[6:]))


@situation("a host port on some nodes, too little cpu on the others")
def _() -> Situation:
    cluster = EksCluster(407)
    names = cluster.group("general", "m5.2xlarge", 12)
    for name in names[:5]:
        cluster.run(name, cpu="100m", host_ports=[443])
    cluster.fill(names[5:], cpu="7500m")
    pod = cluster.pending("ingress", cpu=1, host_ports=[443])
    says = ("1 cpu", "7 of the 12 nodes have 410m free each", "5 more nodes", "host port 443/TCP is taken")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(names[5:]))


@situation("a host port on the nodes that a label picks")
def _() -> Situation:
    cluster, _ = background(408, 40, busy=0.3)
    edge = cluster.group("edge", "m5.large", 3, labels={"role": "edge"})
    for name in edge:
        cluster.run(name, cpu="100m", host_ports=[8443])
    pod = cluster.pending("gateway", cpu="100m", host_ports=[8443], spec={"nodeSelector": {"role": "edge"}})
    says = ("host port 8443/TCP", "each of the 3 nodes matching nodeSelector role=edge")
    return Situation(cluster.objects, pod, "host-port", says, tuple(edge))


@situation("an init container needs more than all the others")
def _() -> Situation:
    cluster, names = background(409, 30, busy=0.8)
    restore = {"name": "restore", "image": "x", "resources": {"requests": {"cpu": "4", "memory": "20Gi"}}}
    pod = cluster.pending("migrate", cpu="200m", memory="256Mi", spec={"initContainers": [restore]})
    says = ("4 cpu and 20Gi memory", "for init container restore; 200m cpu and 256Mi memory afterwards")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(names))


@situation("a sidecar needs most of it")
def _() -> Situation:
    cluster, names = background(410, 30, busy=0.8)
    proxy = {
        "name": "istio-proxy",
        "image": "x",
        "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "2", "memory": "1Gi"}},
    }
    pod = cluster.pending("web", cpu=1, memory="1Gi", spec={"initContainers": [proxy]})
    says = ("3 cpu (2 cpu of it for sidecar istio-proxy)", "30 nodes")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(names))


@situation("the overhead of a runtime class is what is too much")
def _() -> Situation:
    cluster, names = background(411, 30, busy=0.8)
    overhead = {"overhead": {"cpu": "250m", "memory": "160Mi"}}
    pod = cluster.pending("kata", cpu="1500m", memory="1Gi", spec=overhead)
    says = ("1750m cpu (250m cpu of it overhead of its runtime class)", "1582m free each")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(names))


@situation("daemons leave too little of small nodes")
def _() -> Situation:
    cluster = EksCluster(412)
    names = cluster.group("small", "m5.large", 20)
    for daemon in ("aws-node", "kube-proxy", "fluent-bit", "datadog", "node-exporter", "ebs-csi-node"):
        for number, name in enumerate(names):
            owner = ("DaemonSet", daemon)
            cluster.run(name, f"{daemon}-{number:05d}", namespace="kube-system", cpu="120m", owner=owner)
    pod = cluster.pending("web", cpu="1800m", memory="2Gi")
    says = ("1800m cpu", "1210m free each", "comes with every node (DaemonSets)", "add a larger node")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(names), ("add-node", "lower-requests"))


@situation("the pods of a small pool are counted")
def _() -> Situation:
    cluster, _ = background(413, 30, busy=0.95)
    batch = cluster.group("batch", "m5.large", 5, labels={"pool": "batch"})
    cluster.fill(batch, pods=29, cpu="10m", memory="10Mi")
    pod = cluster.pending("job", cpu="50m", memory="64Mi", spec={"nodeSelector": {"pool": "batch"}})
    says = ("5 nodes matching nodeSelector pool=batch", "29 of 29")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(batch))


@situation("whole cpus where millicores were meant")
def _() -> Situation:
    cluster, names = background(414, 40, busy=0.3)
    pod = cluster.pending("web", cpu=500, memory="512Mi")
    return Situation(cluster.objects, pod, "too-large", ("500 cpu", "Did you mean 500m cpu?"), tuple(names))


@situation("a scratch disk larger than any")
def _() -> Situation:
    cluster, names = background(415, 40, busy=0.3)
    pod = cluster.pending("build", cpu=1, requests={"ephemeral-storage": "200Gi"})
    return Situation(cluster.objects, pod, "too-large", ("200Gi ephemeral-storage", "95Gi"), tuple(names))


@situation("the pod as a whole asks for it")
def _() -> Situation:
    cluster, names = background(416, 40, busy=0.8)
    pod = cluster.pending("app", spec={"resources": {"requests": {"cpu": "6", "memory": "2Gi"}}})
    return Situation(cluster.objects, pod, "insufficient-resources", ("6 cpu", "1582m free each"), tuple(names))


@situation("memory that only a few large nodes have, and they are busy")
def _() -> Situation:
    cluster, _ = background(417, 100, busy=0.3)
    large = cluster.group("memory", "r5.2xlarge", 3)
    cluster.fill(large, memory="40Gi", cpu=1)
    pod = cluster.pending("cache", cpu=1, memory="45Gi")
    says = ("45Gi memory", "3 nodes large enough", "21240Mi free each")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(large))


@situation("plenty of cpu, but in pieces")
def _() -> Situation:
    cluster = EksCluster(418)
    names = cluster.group("general", "m5.2xlarge", 200)
    cluster.fill(names, cpu=5, memory="10Gi")
    pod = cluster.pending("api", cpu="3500m", memory="8Gi")
    says = ("3500m cpu", "200 nodes", "2910m free each")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(names))


@situation("a spot pool is full beside free nodes on demand")
def _() -> Situation:
    cluster, _ = background(419, 30, busy=0.3)
    spot = cluster.group("spot", "m5.2xlarge", 5, karpenter=True)
    cluster.fill(spot, cpu="7500m")
    pod = cluster.pending("batch", cpu=1, spec={"nodeSelector": {"karpenter.sh/capacity-type": "spot"}})
    says = ("1 cpu", "5 nodes matching nodeSelector karpenter.sh/capacity-type=spot", "410m free each")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(spot), ("free", "add-node"))


@situation("a daemon's pod on its one full node")
def _() -> Situation:
    cluster = EksCluster(420)
    names = cluster.group("general", "m5.large", 6)
    cluster.fill(names, cpu="1900m")
    field = {"key": "metadata.name", "operator": "In", "values": [names[2]]}
    spec = required_node_affinity("x", "Exists")
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    required["nodeSelectorTerms"] = [{"matchFields": [field]}]
    pod = cluster.pending("fluent-bit-x7k2p", cpu="100m", spec={**spec, "tolerations": [make.toleration()]})
    says = ("100m cpu", "the only node that it asks for by name", names[2], "30m free")
    return Situation(cluster.objects, pod, "insufficient-resources", says, (names[2],))


@situation("attachments are used up in the volume's zone")
def _() -> Situation:
    cluster = EksCluster(421)
    names = cluster.group("general", "m5.large", 12)
    for number, name in enumerate(names):
        cluster.add(csi_node(name, 1))
        if name in names[0::3]:
            cluster.add(*bound(f"data-{number}", "eu-west-1a"))
            cluster.run(name, cpu="100m", spec=mounts(f"data-{number}"))
    cluster.add(*bound("data-new", "eu-west-1a"))
    pod = cluster.pending("db", cpu="100m", spec=mounts("data-new"))
    says = ("ebs.csi.aws.com", "4 nodes in eu-west-1a", "claim data-new", "1 of 1")
    return Situation(cluster.objects, pod, "volume-limit", says, tuple(names[0::3]))


@situation("preemption has to break a budget")
def _() -> Situation:
    cluster = EksCluster(422)
    names = cluster.group("general", "m5.2xlarge", 10)
    cluster.fill(names, cpu=7, labels={"app": "web"})
    cluster.add(make.budget("web", {"app": "web"}, allowed=0, namespace="shop"))
    pod = cluster.pending("critical", cpu=4, priority=1000)
    says = ("4 cpu", "evicts", "against a disruption budget")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(names), ("evict",))


@situation("it could evict somebody, but may not")
def _() -> Situation:
    cluster = EksCluster(423)
    names = cluster.group("general", "m5.2xlarge", 10)
    cluster.fill(names, cpu=7, priority=-100)
    pod = cluster.pending("critical", cpu=4, priority=1000, spec={"preemptionPolicy": "Never"})
    says = ("4 cpu", "910m free each", "preemptionPolicy is Never")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(names))


@situation("those it could evict are on nodes that it may not use")
def _() -> Situation:
    cluster = EksCluster(424)
    names = cluster.group("general", "m5.2xlarge", 5)
    cluster.fill(names, cpu=7, priority=1000)
    spot = cluster.group("spot", "m5.2xlarge", 3, taints=[make.taint("spot", "true")])
    cluster.fill(spot, cpu=7, priority=-10)
    pod = cluster.pending("web", cpu=2, priority=100)
    says = ("2 cpu", "5 nodes whose taints it tolerates", "910m free each")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(names), silent_about=("evicts",))
