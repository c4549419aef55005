"""Not there: labels, taints, architectures, zones, spread, company; nodes that are closed."""

from __future__ import annotations

from kubesched.testing import make
from situations.eks import GPU, ZONES, EksCluster, anti_affinity, background, required_node_affinity
from situations.situation import Situation, situation

ZONE = make.ZONE


@situation("a slip in the value of a node selector")
def _() -> Situation:
    cluster, _ = background(101, 40, busy=0.3)
    ssd = cluster.group("fast", "r5.2xlarge", 5, labels={"disktype": "nvme-ssd"})
    pod = cluster.pending("db", cpu=1, spec={"nodeSelector": {"disktype": "nvme-sdd"}})
    return Situation(cluster.objects, pod, "node-affinity", ("disktype=nvme-sdd", "nvme-ssd"), tuple(ssd), ("correct",))


@situation("a slip in the key of a node selector")
def _() -> Situation:
    cluster, _ = background(102, 30, busy=0.3)
    pod = cluster.pending("web", cpu=1, spec={"nodeSelector": {"topology.kubernetes.io/zones": "eu-west-1a"}})
    return Situation(
        cluster.objects,
        pod,
        "node-affinity",
        ("topology.kubernetes.io/zones", "no node has a label", "topology.kubernetes.io/zone"),
        (),
        ("correct",),
    )


@situation("a zone without nodes")
def _() -> Situation:
    cluster, names = background(103, 200, busy=0.3)
    pod = cluster.pending("web", cpu=1, spec={"nodeSelector": {ZONE: "eu-west-1f"}})
    return Situation(cluster.objects, pod, "node-affinity", ("eu-west-1f", "no node has that"), tuple(names))


@situation("arm64 wanted, amd64 there")
def _() -> Situation:
    cluster, names = background(104, 30, busy=0.3)
    pod = cluster.pending("web", cpu=1, spec={"nodeSelector": {"kubernetes.io/arch": "arm64"}})
    return Situation(
        cluster.objects,
        pod,
        "node-affinity",
        ("kubernetes.io/arch=arm64", "all 30 nodes have kubernetes.io/arch=amd64. Ask for amd64"),
        tuple(names),
        ("add-node",),
    )


@situation("the arm64 nodes are full")
def _() -> Situation:
    cluster, _ = background(105, 60, busy=0.3)
    arm = cluster.group("arm", "c6g.xlarge", 4)
    cluster.fill(arm, cpu="3600m")
    pod = cluster.pending("web", cpu=1, spec={"nodeSelector": {"kubernetes.io/arch": "arm64"}})
    return Situation(
        cluster.objects,
        pod,
        "insufficient-resources",
        ("1 cpu", "4 nodes", "arm64", "320m free each"),
        tuple(arm),
        ("free", "add-node"),
    )


@situation("a required node affinity that no node group meets")
def _() -> Situation:
    cluster, names = background(106, 50, busy=0.3)
    spec = required_node_affinity("eks.amazonaws.com/nodegroup", "In", "memory-optimized")
    pod = cluster.pending("web", cpu=1, spec=spec)
    return Situation(
        cluster.objects, pod, "node-affinity", ("eks.amazonaws.com/nodegroup", "memory-optimized"), tuple(names)
    )


@situation("two labels that no node has together")
def _() -> Situation:
    cluster, _ = background(107, 20, busy=0.3)
    cluster.group("fast", "r5.2xlarge", 4, zones=["eu-west-1a"])
    selector = {ZONE: "eu-west-1b", "node.kubernetes.io/instance-type": "r5.2xlarge"}
    pod = cluster.pending("web", cpu=1, spec={"nodeSelector": selector})
    return Situation(cluster.objects, pod, "node-affinity", ("both", "eu-west-1b", "r5.2xlarge"))


@situation("a node that does not exist")
def _() -> Situation:
    cluster, _ = background(108, 15, busy=0.3)
    pod = cluster.pending("web", cpu=1, spec={"nodeSelector": {make.HOSTNAME: "ip-10-0-300-1"}})
    return Situation(cluster.objects, pod, "node-affinity", ("ip-10-0-300-1", "no node is called so"))


@situation("a gpu without the toleration")
def _() -> Situation:
    cluster, _ = background(109, 33, busy=0.3)
    gpus = cluster.group("gpu", "p3.8xlarge", 4, taints=[make.taint(GPU, "true")])
    pod = cluster.pending("train", requests={GPU: 1}, cpu=1)
    return Situation(
        cluster.objects,
        pod,
        "taint",
        ("4 nodes", "nvidia.com/gpu=true:NoSchedule", "not tolerate"),
        tuple(gpus),
        ("tolerate",),
    )


@situation("general nodes are full, and dedicated ones are not for it")
def _() -> Situation:
    cluster, names = background(110, 30, busy=0.95)
    cluster.group("ml", "m5.4xlarge", 5, taints=[make.taint("dedicated", "ml")])
    pod = cluster.pending("web", cpu=2)
    return Situation(
        cluster.objects,
        pod,
        "insufficient-resources",
        ("2 cpu", "30 nodes"),
        tuple(names),
        ("add-node", "free", "lower-requests"),
        ("dedicated",),
    )


@situation("every node is kept for somebody")
def _() -> Situation:
    cluster = EksCluster(111)
    names = cluster.group("ml", "m5.4xlarge", 6, taints=[make.taint("dedicated", "ml")])
    names += cluster.group("control", "m5.large", 3, taints=[make.taint("node-role.kubernetes.io/control-plane")])
    names += cluster.group("spot", "m5.large", 4, taints=[make.taint("spot", "true")], karpenter=True)
    pod = cluster.pending("web", cpu=1)
    return Situation(
        cluster.objects, pod, "taint", ("13 nodes", "dedicated=ml:NoSchedule on 6"), tuple(names), ("add-node",)
    )


@situation("all nodes are cordoned")
def _() -> Situation:
    cluster, names = background(112, 10, busy=0.3)
    cluster.cordon(names)
    pod = cluster.pending("web", cpu=1)
    return Situation(cluster.objects, pod, "cordoned", ("10 nodes", "cordoned"), tuple(names), ("uncordon", "add-node"))


@situation("mid-upgrade: most nodes are cordoned, the others are full")
def _() -> Situation:
    cluster = EksCluster(113)
    old = cluster.group("general", "m5.2xlarge", 20)
    cluster.cordon(old)
    new = cluster.group("general", "m5.2xlarge", 4)
    cluster.fill(new, cpu="7500m")
    pod = cluster.pending("web", cpu=1)
    return Situation(cluster.objects, pod, "cordoned", ("20 of the 24 nodes", "cordoned"), tuple(old) + tuple(new))


@situation("nodes that lost contact")
def _() -> Situation:
    cluster, names = background(114, 10, busy=0.3)
    cluster.not_ready(names)
    pod = cluster.pending("web", cpu=1)
    return Situation(
        cluster.objects, pod, "not-ready", ("10 nodes", "not ready", "node.kubernetes.io/unreachable"), tuple(names)
    )


@situation("new nodes whose network is not up")
def _() -> Situation:
    cluster, old = background(115, 20, busy=0.95)
    new = cluster.group("general", "m5.2xlarge", 30, karpenter=True)
    cluster.taint(new, "node.cilium.io/agent-not-ready")
    pod = cluster.pending("web", cpu=2)
    return Situation(cluster.objects, pod, "not-ready", ("30 of the 50", "agent-not-ready"), tuple(new) + tuple(old))


@situation("spread over zones, and the zone that should come next is full")
def _() -> Situation:
    cluster = EksCluster(116)
    names = cluster.group("general", "m5.2xlarge", 12)
    by_zone = {zone: names[number::3] for number, zone in enumerate(ZONES)}
    for zone, count in (("eu-west-1a", 2), ("eu-west-1b", 2), ("eu-west-1c", 1)):
        for name in by_zone[zone][:count]:
            cluster.run(name, cpu="500m", labels={"app": "web"})
    cluster.fill(by_zone["eu-west-1c"], cpu="7200m", labels={"app": "batch"})
    spec = {"topologySpreadConstraints": [make.spread(ZONE, labels={"app": "web"})]}
    pod = cluster.pending("web-6", cpu=1, labels={"app": "web"}, spec=spec)
    return Situation(
        cluster.objects,
        pod,
        "insufficient-resources",
        ("1 cpu", "4 nodes", "topology spread"),
        tuple(by_zone["eu-west-1c"]),
    )


@situation("spread over zones, and the zone that should come next is not for it")
def _() -> Situation:
    cluster = EksCluster(117)
    names = cluster.group("general", "m5.2xlarge", 8, zones=ZONES[:2])
    cluster.group("ml", "m5.2xlarge", 3, zones=ZONES[2:], taints=[make.taint("dedicated", "ml")])
    cluster.fill(names[:4], cpu="500m", labels={"app": "web"})
    spec = {"topologySpreadConstraints": [make.spread(ZONE, labels={"app": "web"})]}
    pod = cluster.pending("web-6", cpu=1, labels={"app": "web"}, spec=spec)
    return Situation(
        cluster.objects,
        pod,
        "topology-spread",
        ("topology.kubernetes.io/zone", "maxSkew 1", "eu-west-1c", "dedicated=ml"),
        tuple(names),
        ("raise-max-skew",),
    )


@situation("each node has a replica already")
def _() -> Situation:
    cluster = EksCluster(118)
    names = cluster.group("general", "m5.2xlarge", 10)
    cluster.fill(names, cpu="500m", labels={"app": "kafka"}, owner=("StatefulSet", "kafka"))
    pod = cluster.pending("kafka-10", cpu="500m", labels={"app": "kafka"}, spec=anti_affinity({"app": "kafka"}))
    return Situation(
        cluster.objects, pod, "pod-anti-affinity", ("app=kafka", "each of the 10 nodes"), tuple(names), ("add-node",)
    )


@situation("each zone has a replica already")
def _() -> Situation:
    cluster = EksCluster(119)
    names = cluster.group("general", "m5.2xlarge", 12)
    cluster.fill(names[:3], cpu="500m", labels={"app": "etcd"})
    pod = cluster.pending("etcd-3", cpu="500m", labels={"app": "etcd"}, spec=anti_affinity({"app": "etcd"}, ZONE))
    return Situation(
        cluster.objects, pod, "pod-anti-affinity", ("app=etcd", "topology.kubernetes.io/zone"), tuple(names)
    )


@situation("others want to be alone")
def _() -> Situation:
    cluster = EksCluster(120)
    names = cluster.group("general", "m5.2xlarge", 10)
    cluster.fill(names, cpu="500m", labels={"app": "db"}, spec=anti_affinity({"noisy": "yes"}))
    pod = cluster.pending("batch", cpu=1, labels={"noisy": "yes"})
    return Situation(cluster.objects, pod, "pod-anti-affinity", ("noisy=yes", "10 nodes"), tuple(names))


@situation("near pods that do not run")
def _() -> Situation:
    cluster, names = background(121, 25, busy=0.3)
    term = make.affinity_term(ZONE, {"app": "cache"})
    spec = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    pod = cluster.pending("web", cpu=1, spec=spec)
    return Situation(cluster.objects, pod, "pod-affinity", ("app=cache", "no such pod runs anywhere"), tuple(names))


def _near(topology_key: str, **labels: str) -> dict[str, object]:
    term = make.affinity_term(topology_key, labels)
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


@situation("near pods within a topology that no node is labelled with")
def _() -> Situation:
    cluster, names = background(126, 8, busy=0.3)
    cluster.fill(names[:2], cpu="100m", labels={"app": "cache"})
    pod = cluster.pending("web", cpu=1, spec=_near("example.com/rack", app="cache"))
    return Situation(
        cluster.objects,
        pod,
        "pod-affinity",
        ("app=cache", "no node has the label example.com/rack. Correct the topologyKey"),
        silent_about=("namespace", "no such pod runs"),
    )


@situation("near pods on a node without the topology's label")
def _() -> Situation:
    cluster, names = background(127, 8, busy=0.3)
    racked = cluster.group("racked", "m5.2xlarge", 2, labels={"example.com/rack": "r1"})
    cluster.fill(names[:1], cpu="100m", labels={"app": "cache"})
    pod = cluster.pending("web", cpu=1, spec=_near("example.com/rack", app="cache"))
    return Situation(
        cluster.objects,
        pod,
        "pod-affinity",
        (f"is on {names[0]}, which has no label example.com/rack. Label that node",),
        silent_about=(racked[0], "no such pod runs", "namespace"),
    )


@situation("all that would do are cordoned or not ready")
def _() -> Situation:
    cluster, _ = background(129, 3, busy=0.1)
    big = cluster.group("big", "m5.4xlarge", 2)
    cluster.cordon(big[:1])
    broken = next(item for item in cluster.objects if item["metadata"]["name"] == big[1])
    broken["spec"].setdefault("taints", []).append(make.taint("node.kubernetes.io/not-ready"))
    pod = cluster.pending("web", cpu=12)
    return Situation(cluster.objects, pod, "not-ready", ("Uncordon one, or find out what is wrong", *big), tuple(big))


@situation("near pods whose zone is full")
def _() -> Situation:
    cluster = EksCluster(122)
    names = cluster.group("general", "m5.2xlarge", 12)
    here = names[0::3]
    cluster.fill(here, cpu="7000m", labels={"app": "cache"})
    term = make.affinity_term(ZONE, {"app": "cache"})
    spec = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    pod = cluster.pending("web", cpu=2, spec=spec)
    return Situation(
        cluster.objects, pod, "insufficient-resources", ("2 cpu", "4 nodes", "app=cache", "910m free"), tuple(here)
    )


@situation("dedicated nodes chosen by label, and their taint forgotten")
def _() -> Situation:
    cluster, _ = background(123, 30, busy=0.3)
    taints = [make.taint("dedicated", "ml")]
    ours = cluster.group("ml", "m5.4xlarge", 4, labels={"dedicated": "ml"}, taints=taints)
    pod = cluster.pending("train", cpu=1, spec={"nodeSelector": {"dedicated": "ml"}})
    return Situation(
        cluster.objects,
        pod,
        "taint",
        ("4 nodes matching nodeSelector dedicated=ml", "Add a toleration for dedicated=ml:NoSchedule"),
        tuple(ours),
        ("tolerate",),
    )


@situation("gpu nodes of another team")
def _() -> Situation:
    cluster, _ = background(124, 30, busy=0.9)
    taints = [make.taint(GPU, "true"), make.taint("team", "vision")]
    gpus = cluster.group("gpu", "p4d.24xlarge", 3, taints=taints)
    pod = cluster.pending("train", requests={GPU: 4}, spec={"tolerations": [make.toleration(GPU)]})
    return Situation(
        cluster.objects, pod, "taint", ("3 nodes with nvidia.com/gpu", "team=vision"), tuple(gpus), ("add-node",)
    )


@situation("one cordoned node with room beside full ones")
def _() -> Situation:
    cluster, names = background(125, 10, busy=0.2)
    cluster.fill(names[:9], cpu="5500m")
    cluster.cordon([names[9]])
    pod = cluster.pending("web", cpu=2)
    return Situation(
        cluster.objects, pod, "insufficient-resources", ("2 cpu", "1 more node is cordoned"), tuple(names[:9])
    )
