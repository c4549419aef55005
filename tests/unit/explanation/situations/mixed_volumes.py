"""Volumes and devices again, where more than one thing comes together; and what holds a pod before any node does."""

from __future__ import annotations

from kubesched.testing import make
from situations.eks import (
    GPU,
    EksCluster,
    background,
    bound,
    claim,
    device_claim,
    device_class,
    mounts,
    slice_of,
    storage_class,
    volume,
    with_device_claim,
)
from situations.situation import Situation, situation

DELETED_AT = "2026-01-01T00:00:00Z"


@situation("a volume in one zone, the gpus in another")
def _() -> Situation:
    cluster, _ = background(601, 60, busy=0.4)
    gpus = cluster.group("gpu", "p3.8xlarge", 4, zones=["eu-west-1b"], taints=[make.taint(GPU, "true")])
    cluster.add(*bound("checkpoints", "eu-west-1a"))
    spec = {**mounts("checkpoints"), "tolerations": [make.toleration(GPU)]}
    pod = cluster.pending("train", requests={GPU: 1}, spec=spec)
    says = ("claim checkpoints", "eu-west-1a", "4 nodes with nvidia.com/gpu", "eu-west-1b")
    return Situation(cluster.objects, pod, "volume-place", says, tuple(gpus), ("add-node",))


@situation("a class that makes volumes in another region")
def _() -> Situation:
    cluster, names = background(602, 300, busy=0.4)
    cluster.add(storage_class("gp3-us", zones=["us-east-1a", "us-east-1b"]), claim("data-db-0", "gp3-us"))
    pod = cluster.pending("db-0", cpu=1, spec=mounts("data-db-0"))
    says = ("claim data-db-0", "class gp3-us", "us-east-1a or us-east-1b", "no node is there", "eu-west-1a")
    return Situation(cluster.objects, pod, "volume-provisioning", says, tuple(names))


@situation("a class that goes by a label which nodes no longer have")
def _() -> Situation:
    cluster, names = background(603, 30, busy=0.4)
    old = "failure-domain.beta.kubernetes.io/zone"
    topology = [{"matchLabelExpressions": [{"key": old, "values": ["eu-west-1a"]}]}]
    cluster.add(storage_class("gp3-old", allowedTopologies=topology), claim("data", "gp3-old"))
    pod = cluster.pending("db", cpu=1, spec=mounts("data"))
    says = ("class gp3-old", f"only where {old}=eu-west-1a", f"no node has a label {old}")
    return Situation(cluster.objects, pod, "volume-provisioning", says, tuple(names), silent_about=("they are in",))


@situation("a claim for one pod, whose last user is terminating")
def _() -> Situation:
    cluster, names = background(604, 30, busy=0.4)
    cluster.add(*bound("data", "eu-west-1a"))
    cluster.objects[-2]["spec"]["accessModes"] = ["ReadWriteOncePod"]
    holder = cluster.run(names[0], "db-5f8-old", cpu=1, spec=mounts("data"))
    cluster.objects[-1]["metadata"]["deletionTimestamp"] = DELETED_AT
    pod = cluster.pending("db-5f9-new", cpu=1, spec=mounts("data"))
    says = ("claim data (ReadWriteOncePod)", f"shop/{holder}", "which is terminating")
    return Situation(cluster.objects, pod, "volume-in-use", says, (), ("free",))


@situation("the zone of a volume fell silent")
def _() -> Situation:
    cluster, names = background(605, 90, busy=0.3)
    cluster.not_ready(names[0::3])
    cluster.add(*bound("data", "eu-west-1a"))
    pod = cluster.pending("db-0", cpu=1, spec=mounts("data"))
    says = ("30 nodes in eu-west-1a with the volume of claim data", "not ready (node.kubernetes.io/unreachable)")
    return Situation(cluster.objects, pod, "not-ready", says, tuple(names[0::3]))


@situation("the zone of a volume is cordoned for an upgrade")
def _() -> Situation:
    cluster, names = background(606, 60, busy=0.5)
    cluster.cordon(names[2::3])
    cluster.add(*bound("data-pg-0", "eu-west-1c"))
    pod = cluster.pending("pg-0", cpu=1, spec=mounts("data-pg-0"))
    says = ("20 nodes in eu-west-1c with the volume of claim data-pg-0", "cordoned")
    return Situation(cluster.objects, pod, "cordoned", says, tuple(names[2::3]), ("uncordon", "add-node"))


@situation("the zone of a volume is kept for others")
def _() -> Situation:
    cluster = EksCluster(607)
    cluster.group("general", "m5.2xlarge", 20, zones=["eu-west-1a", "eu-west-1b"])
    others = cluster.group("ml", "m5.4xlarge", 5, zones=["eu-west-1c"], taints=[make.taint("dedicated", "ml")])
    cluster.add(*bound("data-pg-0", "eu-west-1c"))
    pod = cluster.pending("pg-0", cpu=1, spec=mounts("data-pg-0"))
    says = ("5 nodes in eu-west-1c with the volume of claim data-pg-0", "dedicated=ml:NoSchedule")
    return Situation(cluster.objects, pod, "taint", says, tuple(others), ("add-node",))


@situation("a volume and a node by name in another zone")
def _() -> Situation:
    cluster, names = background(608, 30, busy=0.3)
    cluster.add(*bound("data", "eu-west-1a"))
    pod = cluster.pending("db", cpu=1, spec={**mounts("data"), "nodeSelector": {make.HOSTNAME: names[1]}})
    says = (names[1], "10 nodes in eu-west-1a with the volume of claim data are others")
    return Situation(cluster.objects, pod, "node-affinity", says, tuple(names[0::3]))


@situation("a volume without a class that is too small")
def _() -> Situation:
    cluster, _ = background(609, 30, busy=0.3)
    small = volume("pv-small", "eu-west-1a", storage_class="")
    small["spec"]["capacity"]["storage"] = "5Gi"
    cluster.add(small, claim("data", ""))
    pod = cluster.pending("db", cpu=1, spec=mounts("data"))
    says = ("claim data is not bound", "no storage class", "pv-small has 5Gi", "20Gi")
    return Situation(cluster.objects, pod, "claim", says)


@situation("a volume that cannot be shared")
def _() -> Situation:
    cluster, _ = background(610, 30, busy=0.3)
    cluster.add(storage_class("nfs", mode="Immediate", provisioner="kubernetes.io/no-provisioner"))
    cluster.add(volume("nfs-1", "eu-west-1a", storage_class="nfs"))
    cluster.add(claim("shared", "nfs", accessModes=["ReadWriteMany"]))
    pod = cluster.pending("web", cpu=1, spec=mounts("shared"))
    says = ("claim shared is not bound", "nfs-1 allows ReadWriteOnce only", "ReadWriteMany")
    return Situation(cluster.objects, pod, "claim", says)


@situation("a released volume that nobody cleared")
def _() -> Situation:
    cluster, _ = background(611, 30, busy=0.3)
    cluster.add(storage_class("nfs", mode="Immediate", provisioner="kubernetes.io/no-provisioner"))
    cluster.add(volume("nfs-1", "eu-west-1a", claim="old-data", storage_class="nfs"), claim("data", "nfs"))
    cluster.objects[-2]["status"]["phase"] = "Released"
    pod = cluster.pending("web", cpu=1, spec=mounts("data"))
    says = ("claim data is not bound", "nfs-1 is released", "shop/old-data", "remove spec.claimRef of nfs-1")
    return Situation(cluster.objects, pod, "claim", says)


@situation("local disks are free on nodes that are full")
def _() -> Situation:
    cluster, names = background(612, 12, busy=0.3)
    cluster.add(storage_class("local-nvme", provisioner="kubernetes.io/no-provisioner"), claim("data", "local-nvme"))
    for number, name in enumerate(names[:2]):
        disk = volume(f"local-{number}", "eu-west-1a", storage_class="local-nvme")
        here = {"key": make.HOSTNAME, "operator": "In", "values": [name]}
        disk["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = [{"matchExpressions": [here]}]
        cluster.add(disk)
        cluster.run(name, cpu=5)
    pod = cluster.pending("db", cpu=2, spec=mounts("data"))
    says = ("2 cpu", "2 nodes with a volume for claim data", "538m free each")
    return Situation(cluster.objects, pod, "insufficient-resources", says, tuple(names[:2]))


@situation("the claim of an ephemeral volume is not there yet")
def _() -> Situation:
    cluster, _ = background(613, 30, busy=0.3)
    template = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    pod = cluster.pending("build", cpu=1, spec={"volumes": [scratch]})
    return Situation(cluster.objects, pod, "claim", ("claim build-scratch", "ephemeral volume", "does not exist yet"))


# -- devices -----------------------------------------------------------------------------------------------------------


@situation("devices too small for the selector")
def _() -> Situation:
    cluster, _ = background(614, 20, busy=0.3)
    gpus = cluster.group("dra", "p3.8xlarge", 3)
    cluster.add(device_class("gpu"), *(slice_of(name, 2) for name in gpus))
    large = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) >= 0'
    cluster.add(device_claim("mine", "gpu", selector=large))
    pod = cluster.pending("train", cpu=1, spec=with_device_claim("mine"))
    says = ("claim mine", "80Gi", "no node has one", "memory=40Gi")
    return Situation(cluster.objects, pod, "no-such-device", says, tuple(gpus))


@situation("devices with a taint")
def _() -> Situation:
    cluster, _ = background(615, 20, busy=0.3)
    gpus = cluster.group("dra", "p3.8xlarge", 2)
    cluster.add(device_class("gpu"))
    for name in gpus:
        cluster.add(slice_of(name, 2))
        for device in cluster.objects[-1]["spec"]["devices"]:
            device["taints"] = [{"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}]
    cluster.add(device_claim("mine", "gpu"))
    pod = cluster.pending("train", cpu=1, spec=with_device_claim("mine"))
    says = ("claim mine", "2 nodes", "tainted with gpu.nvidia.com/xid=79:NoSchedule")
    return Situation(cluster.objects, pod, "device-taint", says, tuple(gpus))


@situation("a shared device on a node that is cordoned")
def _() -> Situation:
    cluster, _ = background(616, 20, busy=0.3)
    gpus = cluster.group("dra", "p3.8xlarge", 2)
    cluster.add(device_class("gpu"), *(slice_of(name, 2) for name in gpus))
    cluster.add(device_claim("shared", "gpu", allocated=(gpus[0], ["gpu-0"])))
    cluster.cordon([gpus[0]])
    pod = cluster.pending("train-2", cpu=1, spec=with_device_claim("shared"))
    says = ("the only node that claim shared has devices for is cordoned", gpus[0])
    return Situation(cluster.objects, pod, "cordoned", says, (gpus[0],), ("uncordon",))


@situation("a shared device on a node of another team")
def _() -> Situation:
    cluster, _ = background(617, 20, busy=0.3)
    vision = cluster.group("dra", "p3.8xlarge", 2, labels={"team": "vision"})
    cluster.group("nlp", "p3.8xlarge", 2, labels={"team": "nlp"})
    cluster.add(device_class("gpu"), *(slice_of(name, 2) for name in vision))
    cluster.add(device_claim("shared", "gpu", allocated=(vision[0], ["gpu-0"])))
    spec = {**with_device_claim("shared"), "nodeSelector": {"team": "nlp"}}
    pod = cluster.pending("train-2", cpu=1, spec=spec)
    says = ("nodeSelector team=nlp", "the only node that claim shared has devices for has team=vision")
    return Situation(cluster.objects, pod, "node-affinity", says, (vision[0],))


@situation("two claims, and nobody publishes devices for one")
def _() -> Situation:
    cluster, _ = background(618, 10, busy=0.3)
    gpus = cluster.group("dra", "p3.8xlarge", 2)
    cluster.add(device_class("gpu"), device_class("nic", "nic.example.com"), *(slice_of(name, 2) for name in gpus))
    cluster.add(device_claim("gpus", "gpu"), device_claim("nics", "nic", driver="nic.example.com"))
    uses = [{"name": name, "resourceClaimName": f"{name}s"} for name in ("gpu", "nic")]
    pod = cluster.pending("train", cpu=1, spec={"resourceClaims": uses})
    says = ("claim nics", "class nic", "no node has any")
    return Situation(cluster.objects, pod, "no-such-device", says, tuple(gpus))


# -- before any node is looked at --------------------------------------------------------------------------------------


@situation("a gate, without which it would fit")
def _() -> Situation:
    cluster, _ = background(619, 40, busy=0.3)
    pod = cluster.pending("job", cpu=1, spec={"schedulingGates": [{"name": "example.com/wait"}]})
    says = ("gate example.com/wait", "it then fits on 40 of 40 nodes")
    return Situation(cluster.objects, pod, "scheduling-gates", says)


@situation("a gate, without which it would not fit either")
def _() -> Situation:
    cluster, _ = background(620, 30, busy=0.95)
    pod = cluster.pending("job", cpu=4, spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]})
    says = ("gate kueue.x-k8s.io/admission", "would not fit then either: needs 4 cpu", "398m free each")
    return Situation(cluster.objects, pod, "scheduling-gates", says)


@situation("a slip in the name of the scheduler")
def _() -> Situation:
    cluster, _ = background(621, 30, busy=0.3)
    pod = cluster.pending("web", cpu=1, spec={"schedulerName": "default-schedular"})
    says = ('"default-schedular"', "Did you mean default-scheduler?")
    return Situation(cluster.objects, pod, "foreign-scheduler", says)


@situation("a namespace that is being deleted")
def _() -> Situation:
    cluster, _ = background(622, 30, busy=0.3)
    leaving = {"name": "old", "deletionTimestamp": DELETED_AT}
    cluster.add({"apiVersion": "v1", "kind": "Namespace", "metadata": leaving, "status": {"phase": "Terminating"}})
    pod = cluster.pending("web", namespace="old", cpu=1)
    return Situation(cluster.objects, pod, "terminating", ("its namespace old is being deleted",))


@situation("a pod that is being deleted")
def _() -> Situation:
    cluster, _ = background(623, 30, busy=0.95)
    pod = cluster.pending("job-x2", cpu=4)
    leaving = {"deletionTimestamp": DELETED_AT, "finalizers": ["batch.kubernetes.io/job-tracking"]}
    cluster.objects[-1]["metadata"].update(leaving)
    says = ("it is being deleted", "batch.kubernetes.io/job-tracking")
    return Situation(cluster.objects, pod, "terminating", says, silent_about=("needs",))


@situation("a slip in the name of a priority class")
def _() -> Situation:
    cluster, _ = background(624, 12, busy=0.3)
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    cluster.add(high)
    pod = cluster.pending("job", cpu=1, spec={"priorityClassName": "hihg"})
    del cluster.objects[-1]["spec"]["priority"]
    says = ("PriorityClass hihg does not exist", "Did you mean high?")
    return Situation(cluster.objects, pod, "missing-priority-class", says)
