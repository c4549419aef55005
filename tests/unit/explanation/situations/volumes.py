"""Volumes, claims, classes; devices and their claims."""

from __future__ import annotations

from kubesched.testing import make
from situations.eks import (
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

ZONE = make.ZONE


@situation("a volume in a zone without nodes")
def _() -> Situation:
    cluster = EksCluster(201)
    names = cluster.group("general", "m5.2xlarge", 10, zones=["eu-west-1a", "eu-west-1b"])
    cluster.add(*bound("data", "eu-west-1c"))
    pod = cluster.pending("db", cpu=1, spec=mounts("data"))
    return Situation(
        cluster.objects,
        pod,
        "volume-place",
        ("claim data", "pvc-data", "eu-west-1c", "no node is there", "eu-west-1a or eu-west-1b"),
        tuple(names),
        ("add-node",),
    )


@situation("a volume in a zone whose nodes are full")
def _() -> Situation:
    cluster = EksCluster(202)
    names = cluster.group("general", "m5.2xlarge", 90)
    here = names[1::3]
    cluster.fill(here, cpu="7000m")
    cluster.add(*bound("data", "eu-west-1b"))
    pod = cluster.pending("db", cpu=2, spec=mounts("data"))
    return Situation(
        cluster.objects,
        pod,
        "insufficient-resources",
        ("2 cpu", "30 nodes", "eu-west-1b", "claim data", "910m free each"),
        tuple(here),
    )


@situation("a volume in one zone, a node selector for another")
def _() -> Situation:
    cluster, names = background(203, 30, busy=0.3)
    cluster.add(*bound("data", "eu-west-1a"))
    pod = cluster.pending("db", cpu=1, spec={**mounts("data"), "nodeSelector": {ZONE: "eu-west-1b"}})
    return Situation(
        cluster.objects, pod, "node-affinity", ("eu-west-1b", "claim data", "eu-west-1a"), tuple(names[0::3])
    )


@situation("two volumes in two zones")
def _() -> Situation:
    cluster, _ = background(204, 30, busy=0.3)
    cluster.add(*bound("data", "eu-west-1a"), *bound("logs", "eu-west-1c"))
    pod = cluster.pending("db", cpu=1, spec=mounts("data", "logs"))
    return Situation(
        cluster.objects, pod, "volume-place", ("different places", "data in eu-west-1a", "logs in eu-west-1c")
    )


@situation("a claim that does not exist")
def _() -> Situation:
    cluster, _ = background(205, 15, busy=0.3)
    cluster.add(*bound("data-db-0", "eu-west-1a"))
    pod = cluster.pending("db", cpu=1, spec=mounts("data-bd-0"))
    return Situation(cluster.objects, pod, "claim", ("claim data-bd-0 does not exist", "there is data-db-0"))


@situation("a claim of a class that does not exist")
def _() -> Situation:
    cluster, _ = background(206, 15, busy=0.3)
    cluster.add(claim("data", "gp4"))
    pod = cluster.pending("db", cpu=1, spec=mounts("data"))
    return Situation(cluster.objects, pod, "claim", ("claim data", "storage class gp4 does not exist", "gp3"))


@situation("a claim without a class")
def _() -> Situation:
    cluster, _ = background(207, 15, busy=0.3)
    cluster.add(claim("data", None))
    pod = cluster.pending("db", cpu=1, spec=mounts("data"))
    return Situation(cluster.objects, pod, "claim", ("claim data is not bound", "no storage class"))


@situation("a claim whose volume is not made yet")
def _() -> Situation:
    cluster, _ = background(208, 15, busy=0.3)
    cluster.add(claim("data", "gp2"))
    pod = cluster.pending("db", cpu=1, spec=mounts("data"))
    return Situation(cluster.objects, pod, "claim", ("claim data is not bound", "ebs.csi.aws.com", "gp2", "20Gi"))


@situation("a class that makes volumes where there are no nodes")
def _() -> Situation:
    cluster, names = background(209, 24, busy=0.3)
    cluster.add(storage_class("gp3-d", zones=["eu-west-1d"]), claim("data", "gp3-d"))
    pod = cluster.pending("db", cpu=1, spec=mounts("data"))
    return Situation(
        cluster.objects,
        pod,
        "volume-provisioning",
        ("claim data", "gp3-d", "eu-west-1d", "no node is there"),
        tuple(names),
    )


@situation("local volumes are used up")
def _() -> Situation:
    cluster, names = background(210, 12, busy=0.3)
    cluster.add(storage_class("local-nvme", provisioner="kubernetes.io/no-provisioner"), claim("data", "local-nvme"))
    cluster.add(volume("local-1", "eu-west-1a", claim="other", storage_class="local-nvme"))
    pod = cluster.pending("db", cpu=1, spec=mounts("data"))
    return Situation(cluster.objects, pod, "volume-provisioning", ("claim data", "local-nvme", "20Gi"), tuple(names))


@situation("a bound claim whose volume was deleted")
def _() -> Situation:
    cluster, _ = background(211, 12, busy=0.3)
    cluster.add(claim("data", "gp3", volume="pvc-gone"))
    pod = cluster.pending("db", cpu=1, spec=mounts("data"))
    return Situation(cluster.objects, pod, "claim", ("claim data", "pvc-gone", "does not exist"))


@situation("a claim that one pod may use, and does")
def _() -> Situation:
    cluster, names = background(212, 12, busy=0.3)
    cluster.add(*bound("data", "eu-west-1a"))
    cluster.objects[-2]["spec"]["accessModes"] = ["ReadWriteOncePod"]
    holder = cluster.run(names[0], "db-old-0", cpu=1, spec=mounts("data"))
    pod = cluster.pending("db", cpu=1, spec=mounts("data"))
    return Situation(cluster.objects, pod, "volume-in-use", ("claim data", f"shop/{holder}", names[0]), ())


@situation("devices are all allocated")
def _() -> Situation:
    cluster, _ = background(213, 20, busy=0.3)
    gpus = cluster.group("dra", "p3.8xlarge", 3)
    cluster.add(device_class("gpu"))
    for number, name in enumerate(gpus):
        cluster.add(slice_of(name, 2), device_claim(f"used-{number}", "gpu", count=1, allocated=(name, ["gpu-0"])))
    cluster.add(device_claim("mine", "gpu", count=2))
    pod = cluster.pending("train", cpu=1, spec=with_device_claim("mine"))
    return Situation(
        cluster.objects,
        pod,
        "insufficient-devices",
        ("claim mine", "2 devices of class gpu", "3 nodes", "1 of 2"),
        tuple(gpus),
    )


@situation("no device that the selector picks")
def _() -> Situation:
    cluster, _ = background(214, 20, busy=0.3)
    gpus = cluster.group("dra", "p3.8xlarge", 3)
    cluster.add(device_class("gpu"), *(slice_of(name, 2) for name in gpus))
    cluster.add(device_claim("mine", "gpu", selector='device.attributes["gpu.nvidia.com"].model == "h100"'))
    pod = cluster.pending("train", cpu=1, spec=with_device_claim("mine"))
    return Situation(
        cluster.objects, pod, "no-such-device", ("claim mine", "h100", "no node has one", "model=a100"), tuple(gpus)
    )


@situation("devices on a node without room")
def _() -> Situation:
    cluster, _ = background(215, 20, busy=0.3)
    gpus = cluster.group("dra", "p3.8xlarge", 2)
    cluster.fill(gpus, cpu=30)
    cluster.add(device_class("gpu"), *(slice_of(name, 2) for name in gpus), device_claim("mine", "gpu"))
    pod = cluster.pending("train", cpu=4, spec=with_device_claim("mine"))
    return Situation(
        cluster.objects, pod, "insufficient-resources", ("4 cpu", "2 nodes", "class gpu", "1850m free"), tuple(gpus)
    )


@situation("a device class that does not exist")
def _() -> Situation:
    cluster, _ = background(216, 12, busy=0.3)
    cluster.add(device_class("gpu"), device_claim("mine", "gpus"))
    pod = cluster.pending("train", cpu=1, spec=with_device_claim("mine"))
    return Situation(cluster.objects, pod, "device-claim", ("device class gpus does not exist",))


@situation("a device claim that does not exist")
def _() -> Situation:
    cluster, _ = background(217, 12, busy=0.3)
    pod = cluster.pending("train", cpu=1, spec=with_device_claim("mine"))
    return Situation(cluster.objects, pod, "device-claim", ("resource claims are not ready", "shop/mine"))


@situation("a claim allocated on a node that is full")
def _() -> Situation:
    cluster, _ = background(218, 12, busy=0.3)
    gpus = cluster.group("dra", "p3.8xlarge", 2)
    cluster.fill(gpus[:1], cpu=31)
    cluster.add(device_class("gpu"), *(slice_of(name, 2) for name in gpus))
    cluster.add(device_claim("mine", "gpu", allocated=(gpus[0], ["gpu-1"])))
    pod = cluster.pending("train", cpu=4, spec=with_device_claim("mine"))
    return Situation(cluster.objects, pod, "insufficient-resources", ("4 cpu", gpus[0], "claim mine"), (gpus[0],))


@situation("more devices than any node has")
def _() -> Situation:
    cluster, _ = background(219, 10, busy=0.2)
    gpus = cluster.group("dra", "p3.8xlarge", 2)
    cluster.add(device_class("gpu"), *(slice_of(name, 2) for name in gpus), device_claim("mine", "gpu", count=4))
    pod = cluster.pending("train", cpu=1, spec=with_device_claim("mine"))
    return Situation(cluster.objects, pod, "insufficient-devices", ("4 devices of class gpu", "ask for 2"), tuple(gpus))


@situation("a selector that has no answer for a device")
def _() -> Situation:
    cluster, names = background(220, 10, busy=0.2)
    cluster.add(device_class("gpu"), slice_of(names[0], 1))
    cluster.add(device_claim("mine", "gpu", selector='device.attributes["x"].nope == 3'))
    pod = cluster.pending("train", cpu=1, spec=with_device_claim("mine"))
    return Situation(cluster.objects, pod, "device-claim", ("cannot be selected", "no such key: nope"))


@situation("a claim template that does not exist")
def _() -> Situation:
    cluster, _ = background(221, 10, busy=0.2)
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "big-gpu"}]}
    pod = cluster.pending("train", cpu=1, spec=spec)
    return Situation(cluster.objects, pod, "device-claim", ("template big-gpu does not exist",))


@situation("a volume that is being made for a node that is cordoned")
def _() -> Situation:
    cluster, names = background(222, 10, busy=0.2)
    cluster.add(claim("data", "gp3"))
    cluster.objects[-1]["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": names[2]}
    cluster.cordon([names[2]])
    pod = cluster.pending("db", cpu=1, spec=mounts("data"))
    return Situation(
        cluster.objects, pod, "cordoned", ("the only node with the volume of claim data", names[2]), (names[2],)
    )


@situation("a disk of a node that is gone")
def _() -> Situation:
    cluster, names = background(223, 10, busy=0.2)
    local = volume("local-1", "eu-west-1a", claim="data", storage_class="local")
    gone = {"key": make.HOSTNAME, "operator": "In", "values": ["ip-10-0-9-9.eu-west-1.compute.internal"]}
    local["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = [{"matchExpressions": [gone]}]
    cluster.add(local, claim("data", "local", volume="local-1"))
    pod = cluster.pending("db", cpu=1, spec=mounts("data"))
    return Situation(cluster.objects, pod, "volume-place", ("on node ip-10-0-9-9", "which is not there"), tuple(names))
