"""Places again, where more than one thing comes together: near misses, closed zones, numbers, names, namespaces."""

from __future__ import annotations

from kubesched.testing import make
from situations.eks import GPU, ZONES, EksCluster, anti_affinity, background, required_node_affinity
from situations.situation import Situation, situation

ZONE = make.ZONE
OVER_ZONES = make.spread(ZONE, labels={"app": "web"})


def near(labels: dict[str, str], key: str = make.HOSTNAME) -> make.Manifest:
    terms = [make.affinity_term(key, labels)]
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@situation("arm64 by the name that others have for it")
def _() -> Situation:
    cluster, _ = background(501, 40, busy=0.3)
    arm = cluster.group("arm", "m6g.2xlarge", 20)
    pod = cluster.pending("web", cpu=2, spec=required_node_affinity("kubernetes.io/arch", "In", "aarch64"))
    says = ("kubernetes.io/arch=aarch64", "Did you mean arm64?")
    return Situation(cluster.objects, pod, "node-affinity", says, (*arm, *_names(cluster)), ("correct",))


@situation("a machine with more cpus than any")
def _() -> Situation:
    cluster, names = background(502, 30, busy=0.3)
    for name in names:
        cluster.node(name)["metadata"]["labels"]["karpenter.k8s.aws/instance-cpu"] = "8"
    pod = cluster.pending("batch", cpu=1, spec=required_node_affinity("karpenter.k8s.aws/instance-cpu", "Gt", "15"))
    says = ("karpenter.k8s.aws/instance-cpu>15", "the highest is 8, on 30 nodes")
    return Situation(cluster.objects, pod, "node-affinity", says, tuple(names))


@situation("not in the only group that there is")
def _() -> Situation:
    cluster, names = background(503, 30, busy=0.3)
    pod = cluster.pending("web", cpu=1, spec=required_node_affinity("eks.amazonaws.com/nodegroup", "NotIn", "general"))
    says = ("eks.amazonaws.com/nodegroup!=general", "every node has eks.amazonaws.com/nodegroup=general (30)")
    return Situation(cluster.objects, pod, "node-affinity", says, tuple(names))


@situation("a label that nobody has put on any node")
def _() -> Situation:
    cluster, names = background(504, 30, busy=0.3)
    pod = cluster.pending("db", cpu=1, spec={"nodeSelector": {"disktype": "ssd"}})
    says = ("disktype=ssd", "no node has a label disktype", "Label the nodes")
    return Situation(cluster.objects, pod, "node-affinity", says, tuple(names), ("label-node",))


@situation("windows where all is linux")
def _() -> Situation:
    cluster, names = background(505, 30, busy=0.3)
    pod = cluster.pending("iis", cpu=1, spec={"nodeSelector": {"kubernetes.io/os": "windows"}})
    return Situation(
        cluster.objects,
        pod,
        "node-affinity",
        ("kubernetes.io/os=windows", "all 30 nodes have"),
        tuple(names),
    )


@situation("windows nodes whose taint is not tolerated")
def _() -> Situation:
    cluster, _ = background(506, 40, busy=0.95)
    windows = cluster.group("windows", "m5.2xlarge", 3, taints=[make.taint("os", "windows")])
    for name in windows:
        cluster.node(name)["metadata"]["labels"]["kubernetes.io/os"] = "windows"
    pod = cluster.pending("iis", cpu=1, spec={"nodeSelector": {"kubernetes.io/os": "windows"}})
    says = ("3 nodes matching nodeSelector kubernetes.io/os=windows", "os=windows:NoSchedule")
    return Situation(cluster.objects, pod, "taint", says, tuple(windows), ("tolerate",))


@situation("a toleration for another value")
def _() -> Situation:
    cluster, _ = background(507, 30, busy=0.3)
    gpus = cluster.group("gpu", "p3.8xlarge", 4, taints=[make.taint(GPU, "present")])
    wrong = make.toleration(GPU, operator="Equal", value="true", effect="NoSchedule")
    pod = cluster.pending("train", requests={GPU: 1}, spec={"tolerations": [wrong]})
    says = ("4 nodes with nvidia.com/gpu", "nvidia.com/gpu=present:NoSchedule", "is for nvidia.com/gpu=true:NoSchedule")
    return Situation(cluster.objects, pod, "taint", says, tuple(gpus), ("tolerate",))


@situation("a toleration for another effect")
def _() -> Situation:
    cluster, _ = background(508, 30, busy=0.95)
    spot = cluster.group("spot", "m5.2xlarge", 6, taints=[make.taint("spot", "true")], labels={"capacity": "spot"})
    wrong = {"nodeSelector": {"capacity": "spot"}, "tolerations": [make.toleration("spot", effect="NoExecute")]}
    pod = cluster.pending("batch", cpu=1, spec=wrong)
    says = ("6 nodes matching nodeSelector capacity=spot", "spot=true:NoSchedule", "is for spot:NoExecute")
    return Situation(cluster.objects, pod, "taint", says, tuple(spot), ("tolerate",))


@situation("a virtual node is free, the real ones are full")
def _() -> Situation:
    cluster, names = background(509, 30, busy=0.95)
    cluster.group("virtual", "m5.24xlarge", 1, taints=[make.taint("virtual-kubelet.io/provider", "azure")])
    pod = cluster.pending("web", cpu=2)
    says = ("2 cpu", "30 nodes whose taints it tolerates", "398m free each")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(names))


@situation("only the control plane has room")
def _() -> Situation:
    cluster, names = background(510, 10, busy=0.97)
    cluster.group("control", "m5.2xlarge", 3, taints=[make.taint("node-role.kubernetes.io/control-plane")])
    pod = cluster.pending("web", cpu=1)
    return Situation(
        cluster.objects, pod, "insufficient-resources", ("1 cpu", "10 nodes", "238m free each"), tuple(names)
    )


@situation("the pool that a label picks is cordoned")
def _() -> Situation:
    cluster, _ = background(511, 50, busy=0.3)
    pool = cluster.group("memory", "r5.2xlarge", 6)
    cluster.cordon(pool)
    spec = {"nodeSelector": {"eks.amazonaws.com/nodegroup": "memory"}}
    pod = cluster.pending("cache", cpu=1, memory="40Gi", spec=spec)
    says = ("6 nodes matching nodeSelector eks.amazonaws.com/nodegroup=memory", "are cordoned")
    return Situation(cluster.objects, pod, "cordoned", says, tuple(pool), ("uncordon",))


@situation("the disks of all nodes are full")
def _() -> Situation:
    cluster, names = background(512, 12, busy=0.3)
    cluster.taint(names, "node.kubernetes.io/disk-pressure")
    pod = cluster.pending("web", cpu=1)
    says = ("12 nodes", "under pressure (node.kubernetes.io/disk-pressure)")
    return Situation(cluster.objects, pod, "not-ready", says, tuple(names))


@situation("new nodes are not initialized, old ones are full")
def _() -> Situation:
    cluster, names = background(513, 12, busy=0.95)
    new = cluster.group("general", "m5.2xlarge", 3)
    cluster.taint(new, "node.cloudprovider.kubernetes.io/uninitialized", "true")
    pod = cluster.pending("web", cpu=2)
    says = ("2 cpu", "12 of the 15 nodes have 398m free each", "3 more nodes are not ready")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(names))


@situation("an autoscaler takes most nodes away")
def _() -> Situation:
    cluster = EksCluster(514)
    names = cluster.group("general", "m5.2xlarge", 12)
    cluster.taint(names[:9], "ToBeDeletedByClusterAutoscaler", "1")
    cluster.fill(names[9:], cpu="7500m")
    pod = cluster.pending("web", cpu=1)
    says = ("9 of the 12 nodes are about to be removed", "the other 3 have less than 1 cpu free")
    return Situation(cluster.objects, pod, "not-ready", says, tuple(names))


@situation("the network of a zone is down, the others are full")
def _() -> Situation:
    cluster = EksCluster(515)
    names = cluster.group("general", "m5.2xlarge", 30)
    cluster.taint(names[0::3], "node.kubernetes.io/network-unavailable")
    full = [name for name in names if name not in names[0::3]]
    cluster.fill(full, cpu="7500m")
    pod = cluster.pending("web", cpu=1)
    says = ("1 cpu", "20 of the 30 nodes", "10 more nodes are not ready (node.kubernetes.io/network-unavailable)")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(full))


@situation("spread that counts a tainted zone")
def _() -> Situation:
    cluster = EksCluster(516)
    names = cluster.group("general", "m5.2xlarge", 8, zones=ZONES[:2])
    cluster.group("ml", "m5.2xlarge", 3, zones=ZONES[2:], taints=[make.taint("dedicated", "ml")])
    cluster.fill(names[:4], cpu="500m", labels={"app": "web"})
    spec = {"topologySpreadConstraints": [{**OVER_ZONES, "nodeTaintsPolicy": "Ignore"}]}
    pod = cluster.pending("web-6", cpu=1, labels={"app": "web"}, spec=spec)
    says = ("maxSkew 1", "eu-west-1c should come next", "3 nodes there: taint dedicated=ml:NoSchedule")
    return Situation(cluster.objects, pod, "topology-spread", says, tuple(names))


@situation("spread that does not count a tainted zone, and the other is full")
def _() -> Situation:
    cluster = EksCluster(517)
    names = cluster.group("general", "m5.2xlarge", 8, zones=ZONES[:2])
    cluster.group("ml", "m5.2xlarge", 3, zones=ZONES[2:], taints=[make.taint("dedicated", "ml")])
    cluster.fill(names[0:4:2], cpu="500m", labels={"app": "web"})
    cluster.fill(names[1::2], cpu="7500m")
    spec = {"topologySpreadConstraints": [{**OVER_ZONES, "nodeTaintsPolicy": "Honor"}]}
    pod = cluster.pending("web-6", cpu=1, labels={"app": "web"}, spec=spec)
    says = ("1 cpu", "4 nodes", "topology spread on topology.kubernetes.io/zone allows", "410m free each")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(names[1::2]))


@situation("spread of one revision only, and the zone that is left is cordoned")
def _() -> Situation:
    cluster = EksCluster(518)
    names = cluster.group("general", "m5.2xlarge", 6)
    labels = {"app": "web", "pod-template-hash": "7d9f"}
    cluster.fill(names[:2], cpu="500m", labels=labels)
    cluster.fill([names[2]], cpu="500m", pods=3, labels={"app": "web", "pod-template-hash": "old"})
    cluster.cordon([names[2], names[5]])
    spec = {"topologySpreadConstraints": [{**OVER_ZONES, "matchLabelKeys": ["pod-template-hash"]}]}
    pod = cluster.pending("web-3", cpu=1, labels=labels, spec=spec)
    says = ("2 nodes that its topology spread on topology.kubernetes.io/zone allows", "cordoned")
    return Situation(cluster.objects, pod, "cordoned", says, (names[2], names[5]))


@situation("more domains wanted than there are")
def _() -> Situation:
    cluster = EksCluster(519)
    names = cluster.group("general", "m5.2xlarge", 9)
    cluster.fill(names[:3], cpu="500m", labels={"app": "web"})
    spec = {"topologySpreadConstraints": [{**OVER_ZONES, "minDomains": 4}]}
    pod = cluster.pending("web-4", cpu=1, labels={"app": "web"}, spec=spec)
    says = ("there are 3 domains, and minDomains is 4", "lower minDomains to 3")
    return Situation(cluster.objects, pod, "topology-spread", says, tuple(names), ("raise-max-skew", "relax"))


@situation("spread over racks that no node is labelled with")
def _() -> Situation:
    cluster, names = background(520, 20, busy=0.3)
    rack = make.spread("topology.example.com/rack", labels={"app": "web"})
    spec = {"topologySpreadConstraints": [rack]}
    pod = cluster.pending("web", cpu=1, labels={"app": "web"}, spec=spec)
    says = ("needs the label topology.example.com/rack, which none of the 20 nodes has",)
    return Situation(cluster.objects, pod, "topology-spread", says, tuple(names))


@situation("spread over gpu nodes that are in one zone only")
def _() -> Situation:
    cluster, _ = background(521, 30, busy=0.3)
    gpus = cluster.group("gpu", "g5.2xlarge", 4, zones=["eu-west-1b"])
    cluster.run(gpus[0], cpu=1, requests={GPU: 1}, labels={"app": "web"})
    spec = {"topologySpreadConstraints": [OVER_ZONES]}
    pod = cluster.pending("web-2", requests={GPU: 1}, labels={"app": "web"}, spec=spec)
    says = ("topology spread", "eu-west-1b 1", "has no nvidia.com/gpu")
    return Situation(cluster.objects, pod, "topology-spread", says, tuple(gpus))


@situation("spread over nodes of which one fell silent")
def _() -> Situation:
    cluster = EksCluster(522)
    names = cluster.group("general", "m5.2xlarge", 5)
    cluster.fill(names[:4], cpu="500m", labels={"app": "web"})
    cluster.not_ready([names[4]])
    spec = {"topologySpreadConstraints": [make.spread(make.HOSTNAME, labels={"app": "web"})]}
    pod = cluster.pending("web-5", cpu=1, labels={"app": "web"}, spec=spec)
    says = ("the only node that its topology spread on kubernetes.io/hostname allows is not ready", names[4])
    return Situation(cluster.objects, pod, "not-ready", says, (names[4],))


@situation("near pods of another namespace")
def _() -> Situation:
    cluster, names = background(523, 20, busy=0.3)
    other = cluster.run(names[0], "redis-0", namespace="default", cpu="100m", labels={"app": "redis"})
    pod = cluster.pending("api", cpu=1, spec=near({"app": "redis"}))
    says = ("app=redis", "none runs in namespace shop", f"default/{other}")
    return Situation(cluster.objects, pod, "pod-affinity", says, tuple(names))


@situation("anti-affinity against pods of every namespace")
def _() -> Situation:
    cluster = EksCluster(524)
    names = cluster.group("general", "m5.2xlarge", 3)
    cluster.fill(names, cpu="100m", namespace="default", labels={"tier": "db"})
    spec = anti_affinity({"tier": "db"})
    (term,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    term["namespaceSelector"] = {}
    pod = cluster.pending("db", cpu=1, labels={"tier": "db"}, spec=spec)
    return Situation(
        cluster.objects, pod, "pod-anti-affinity", ("tier=db", "each of the 3 nodes", "default/"), tuple(names)
    )


@situation("gpus are free, but each gpu node has a replica")
def _() -> Situation:
    cluster, _ = background(525, 40, busy=0.3)
    gpus = cluster.group("gpu", "p3.8xlarge", 3)
    cluster.fill(gpus, cpu=1, requests={GPU: 1}, labels={"app": "infer"})
    pod = cluster.pending("infer-4", requests={GPU: 1}, labels={"app": "infer"}, spec=anti_affinity({"app": "infer"}))
    says = ("app=infer", "each of the 3 nodes with nvidia.com/gpu")
    return Situation(cluster.objects, pod, "pod-anti-affinity", says, tuple(gpus))


@situation("a node asked for by name is cordoned")
def _() -> Situation:
    cluster, names = background(526, 30, busy=0.3)
    cluster.cordon([names[4]])
    pod = cluster.pending("debug", cpu="100m", spec={"nodeSelector": {make.HOSTNAME: names[4]}})
    says = ("the only node that it asks for by name is cordoned", names[4])
    return Situation(cluster.objects, pod, "cordoned", says, (names[4],), ("uncordon",))


@situation("a daemon's pod whose node is gone")
def _() -> Situation:
    cluster, _ = background(527, 10, busy=0.3)
    spec = required_node_affinity("x", "Exists")
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    gone = {"key": "metadata.name", "operator": "In", "values": ["ip-10-0-1-1.eu-west-1.compute.internal"]}
    required["nodeSelectorTerms"] = [{"matchFields": [gone]}]
    pod = cluster.pending("fluent-bit-x7k2p", cpu="100m", spec=spec)
    says = ("ip-10-0-1-1.eu-west-1.compute.internal", "no node is called so", "The node is gone")
    return Situation(cluster.objects, pod, "node-affinity", says, silent_about=("there is",))


def _names(cluster: EksCluster) -> list[str]:
    return [item["metadata"]["name"] for item in cluster.objects if item["kind"] == "Node"]
