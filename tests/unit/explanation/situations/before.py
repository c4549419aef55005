"""Not looked at at all: gates, foreign schedulers, classes that are missing, clusters without nodes."""

from __future__ import annotations

from situations.eks import EksCluster, background
from situations.situation import Situation, situation


@situation("a scheduling gate")
def _() -> Situation:
    cluster, _ = background(301, 12, busy=0.3)
    spec = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    pod = cluster.pending("job", cpu=1, spec=spec)
    return Situation(cluster.objects, pod, "scheduling-gates", ("gate kueue.x-k8s.io/admission",))


@situation("two gates, and it would not fit either")
def _() -> Situation:
    cluster, _ = background(302, 12)
    spec = {"schedulingGates": [{"name": "a.example/quota"}, {"name": "b.example/image"}]}
    pod = cluster.pending("job", cpu=90, spec=spec)
    return Situation(cluster.objects, pod, "scheduling-gates", ("a.example/quota and b.example/image",))


@situation("a foreign scheduler")
def _() -> Situation:
    cluster, _ = background(303, 12, busy=0.3)
    pod = cluster.pending("job", cpu=1, spec={"schedulerName": "volcano"})
    return Situation(cluster.objects, pod, "foreign-scheduler", ('"volcano"', "not configured"))


@situation("a foreign scheduler, and no room either")
def _() -> Situation:
    cluster, _ = background(304, 300, busy=0.95)
    pod = cluster.pending("job", cpu=6, spec={"schedulerName": "yunikorn"})
    return Situation(cluster.objects, pod, "foreign-scheduler", ('"yunikorn"',))


@situation("a priority class that does not exist")
def _() -> Situation:
    cluster, _ = background(305, 12, busy=0.3)
    cluster.pending("job", cpu=1, spec={"priorityClassName": "high-priority"})
    del cluster.objects[-1]["spec"]["priority"]
    return Situation(
        cluster.objects, "shop/job", "missing-priority-class", ("PriorityClass high-priority does not exist",)
    )


@situation("a cluster without nodes")
def _() -> Situation:
    cluster = EksCluster(306)
    pod = cluster.pending("web", cpu=1)
    return Situation(cluster.objects, pod, "no-nodes", ("no nodes",))
