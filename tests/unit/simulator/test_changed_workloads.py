"""A manifest of a workload over a dump that has it: what is there is adopted, scaled or rolled out, as its controller
would after `kubectl apply`."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from simulated_clusters import notes, pods, records, run, workload

import kubesched
from kubesched.explanation.layout import Style
from kubesched.k8s.model.apps import Deployment, ReplicaSet
from kubesched.k8s.model.manifests import from_dicts
from kubesched.k8s.workloads.templates import same_template
from kubesched.simulator.loading import SIMULATED_KINDS
from kubesched.simulator.report_text import render_report
from kubesched.simulator.virtual.cluster import VirtualCluster
from kubesched.testing import make
from kubesched.testing.make import Manifest

NODES = [make.node("a", cpu="8"), make.node("b", cpu="8")]


def stored(item: Manifest, uid: str, **labels: str) -> Manifest:
    """As an API server returns it: with a uid, defaults, canonical amounts, and what others wrote into the template."""
    item = copy.deepcopy(item)
    item["metadata"]["uid"] = uid
    template = item["spec"]["template"]
    template["metadata"]["labels"].update(labels)
    template["metadata"]["creationTimestamp"] = None
    template["spec"] |= {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst"}
    template["spec"] |= {"schedulerName": "default-scheduler", "securityContext": {}, "tolerations": []}
    for container in template["spec"]["containers"]:
        container |= {"imagePullPolicy": "Always", "terminationMessagePath": "/dev/termination-log"}
        container["resources"] = {"requests": {"cpu": "500m"}, "limits": {}}
    return item


def owned(name: str, owner: Manifest, node: str, **labels: str) -> Manifest:
    reference = {"kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    return make.pod(
        name,
        on=node,
        labels={"app": "web", **labels},
        metadata={"uid": f"uid-{name}", "ownerReferences": [{**reference, "controller": True}]},
        status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    )


def of_deployment() -> tuple[list[Manifest], Manifest]:
    """A dump of a Deployment of two, and the manifest it was made from."""
    written = workload("Deployment", "web", replicas=2, pod={"cpu": 0.5})
    deployment = stored(written, "uid-deployment")
    replica_set = stored({**written, "kind": "ReplicaSet"}, "uid-set", **{"pod-template-hash": "5f6d7c"})
    replica_set["metadata"] |= {"name": "web-5f6d7c", "annotations": {"deployment.kubernetes.io/revision": "4"}}
    reference = {"kind": "Deployment", "name": "web", "uid": "uid-deployment", "controller": True}
    replica_set["metadata"]["ownerReferences"] = [reference]
    there = [owned(f"web-5f6d7c-{letter}", replica_set, node) for letter, node in (("x", "a"), ("y", "b"))]
    return [*NODES, deployment, replica_set, *there], written


def survivors(cluster: VirtualCluster) -> set[str]:
    return {record.key.partition("/")[2] for record in records(cluster) if record.was_there and not record.is_gone}


def changed(written: Manifest, **spec: Any) -> Manifest:
    item = copy.deepcopy(written)
    item["spec"] |= spec
    return item


def test_pods_of_a_dump_count_with_those_that_their_deployment_gets() -> None:
    dump, written = of_deployment()
    cluster = run(*dump, changed(written, replicas=5))
    assert {record.workload for record in records(cluster)} == {"Deployment web"}


def test_workloads_to_which_nothing_happened_are_told_in_one_line() -> None:
    dump, written = of_deployment()
    quiet = []
    for number in range(12):
        owner = stored(workload("ReplicaSet", f"quiet-{number}", replicas=1), f"uid-{number}")
        quiet += [owner, owned(f"quiet-{number}-0", owner, "a")]
    report = kubesched.simulate([*dump, *quiet, changed(written, replicas=3)])
    text = str(report)
    assert "and 12 workloads whose 12 pods stay where they were (-o wide)" in text
    assert "Deployment web  3 Running" in text and "quiet-3" not in text
    assert "quiet-3" in render_report(report, Style(wide=True))


@pytest.mark.parametrize("has_deployment", [True, False])
def test_a_deployment_of_the_same_template_is_scaled(has_deployment: bool) -> None:
    dump, written = of_deployment()
    dump = [item for item in dump if has_deployment or item["kind"] != "Deployment"]
    cluster = run(*dump, changed(written, replicas=5))
    assert {known.name: known.spec.replicas for known in cluster.store.of(ReplicaSet).values()} == {"web-5f6d7c": 5}
    assert survivors(cluster) == {"web-5f6d7c-x", "web-5f6d7c-y"}
    assert len(pods(cluster)) == 5 == len(records(cluster))


def test_a_deployment_that_shrinks_loses_pods_and_makes_none() -> None:
    dump, written = of_deployment()
    cluster = run(*dump, changed(written, replicas=1))
    assert len(survivors(cluster)) == 1 and len(records(cluster)) == 2


def test_a_manifest_that_does_not_say_how_many_leaves_them() -> None:
    dump, written = of_deployment()
    del written["spec"]["replicas"]
    cluster = run(*dump, written)
    assert len(survivors(cluster)) == 2 == len(records(cluster))


def test_a_restart_that_somebody_ordered_stays() -> None:
    dump, written = of_deployment()
    for item in dump:
        if item["kind"] in ("Deployment", "ReplicaSet"):
            item["spec"]["template"]["metadata"]["annotations"] = {"kubectl.kubernetes.io/restartedAt": "2026-01-01"}
    cluster = run(*dump, changed(written, replicas=3))
    assert len(survivors(cluster)) == 2 and len(records(cluster)) == 3


def test_a_changed_template_is_a_rolling_update() -> None:
    dump, written = of_deployment()
    new = changed(written, template=workload("Deployment", "web", pod={"cpu": "700m"})["spec"]["template"])
    cluster = run(*dump, new)
    sizes = {known.name == "web-5f6d7c": known.spec.replicas for known in cluster.store.of(ReplicaSet).values()}
    assert sizes == {True: 0, False: 2}
    assert survivors(cluster) == set()
    assert [record.requests["cpu"] for record in records(cluster) if not record.is_gone] == [700, 700]


def of_set(kind: str) -> tuple[list[Manifest], Manifest]:
    written = workload(kind, "web", pod={"cpu": 0.5}, **({"replicas": 2} if kind == "StatefulSet" else {}))
    there = stored(written, "uid-of-set")
    revision = {"controller-revision-hash": "web-7c9f6b"}
    names = ("web-0", "web-1") if kind == "StatefulSet" else ("web-x", "web-y")
    return [
        *NODES,
        there,
        *(owned(name, there, node, **revision) for name, node in zip(names, "ab", strict=True)),
    ], written


def test_a_stateful_set_is_scaled() -> None:
    dump, written = of_set("StatefulSet")
    cluster = run(*dump, changed(written, replicas=3))
    assert survivors(cluster) == {"web-0", "web-1"}
    assert [pod.name for pod in pods(cluster)] == ["web-0", "web-1", "web-2"]


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_sets_keep_the_pods_of_the_same_template_and_roll_those_of_another(kind: str) -> None:
    dump, written = of_set(kind)
    assert len(survivors(run(*dump, written))) == 2
    new = changed(written, template=workload(kind, "web", pod={"cpu": "700m"})["spec"]["template"])
    cluster = run(*dump, new)
    assert survivors(cluster) == set()
    assert [record.requests["cpu"] for record in records(cluster) if not record.is_gone] == [700, 700]


def of_job() -> tuple[list[Manifest], Manifest]:
    written = workload("Job", "web", parallelism=1, completions=4, pod={"cpu": 0.5, "restartPolicy": "Never"})
    job = stored(written, "uid-job", **{"controller-uid": "uid-job", "batch.kubernetes.io/job-name": "web"})
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    job["status"] = {"succeeded": 1, "startTime": "2026-01-01T00:00:00Z"}
    return [*NODES, job, owned("web-x", job, "a")], written


def test_a_job_runs_more_at_a_time_and_keeps_its_count() -> None:
    dump, written = of_job()
    cluster = run(*dump, changed(written, parallelism=3))
    assert survivors(cluster) == {"web-x"}
    assert len(pods(cluster)) == 3  # four are wanted, one has succeeded before


def test_the_template_of_a_job_cannot_be_changed() -> None:
    dump, written = of_job()
    other = workload("Job", "web", pod={"cpu": "700m", "restartPolicy": "Never"})["spec"]["template"]
    cluster = run(*dump, changed(written, template=other))
    assert survivors(cluster) == {"web-x"} and len(records(cluster)) == 1
    (note,) = notes(cluster, "FailedCreate")
    assert 'Job.batch "web" is invalid: spec.template: field is immutable' in note


def test_templates_that_make_other_pods_are_not_the_same() -> None:
    def template(**spec: Any) -> Any:
        item = workload("Deployment", "web", pod=spec)
        (found,) = from_dicts([item], kinds=SIMULATED_KINDS).objects
        assert isinstance(found, Deployment)
        return found.spec.template

    assert same_template(template(cpu="0.5"), template(cpu="500m"))
    assert same_template(template(), template(restartPolicy="Always", tolerations=[]))
    for other in ({"cpu": "600m"}, {"nodeSelector": {"disk": "ssd"}}, {"terminationGracePeriodSeconds": 5}):
        assert not same_template(template(cpu="0.5"), template(**{"cpu": "0.5", **other}))
    assert not same_template(template(), template(annotations={"restarted": "now"}))
    assert same_template(template(), template(annotations={"restarted": "now"}), without=("restarted",))
