"""More replicas of a workload, as its controller makes them, and as quotas and limit ranges let them in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import kubesched
from kubesched.cli.main import main
from kubesched.planning.resting_workloads import NoSuchWorkloadError
from kubesched.testing import make
from kubesched.testing.make import Manifest


def workload(kind: str, name: str, replicas: int, cpu: str = "1", **spec: Any) -> Manifest:
    labels = {"app": name}
    pod: Manifest = make.pod(name, requests={"cpu": cpu}, labels=labels)
    template = {"metadata": {"labels": labels}, "spec": {**pod["spec"], **spec.pop("pod", {})}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def bound(kind: str, spec: Manifest, namespace: str = "shop") -> Manifest:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "bound", "namespace": namespace}, "spec": spec}


def nodes(n: int = 4, cpu: str = "4") -> list[Manifest]:
    return [make.node(f"n{i}", cpu=cpu, labels={make.ZONE: "ab"[i % 2]}) for i in range(n)]


def test_replicas_of_a_deployment_count_with_those_that_are_there() -> None:
    only_one_a_node = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    **make.affinity_term("kubernetes.io/hostname", {"app": "web"}),
                    "matchLabelKeys": ["pod-template-hash"],
                }
            ]
        }
    }
    web = workload("Deployment", "web", 3, pod={"affinity": only_one_a_node})
    report = kubesched.capacity([*nodes(), web], workloads=["deploy/shop/web"])
    assert (report.fits, report.answers[0].pod) == (1, "Deployment shop/web")
    assert "anti-affinity" in report.answers[0].message


def test_a_stateful_set_brings_its_claims() -> None:
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    db = workload("StatefulSet", "db", 2, volumeClaimTemplates=[claim])
    world = kubesched.world([*nodes(), storage, db])
    claims = set(world.cluster.objects.persistent_volume_claims)
    assert kubesched.capacity(world, workloads=["statefulset/shop/db"]).fits == 14
    assert set(world.cluster.objects.persistent_volume_claims) == claims
    quota = bound("ResourceQuota", {"hard": {"requests.storage": "5Gi"}})
    bounded = kubesched.capacity([*nodes(), storage, db, quota], workloads=["sts/shop/db"])
    assert (bounded.fits, bounded.answers[0].limit) == (3, "quota")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("deployment/shop/wbe", r'there is no deployment/shop/wbe \(did you mean "deployment/shop/web"\?\)'),
        ("web", "not of the form KIND/NAMESPACE/NAME"),
        ("daemonset/shop/agent", "a DaemonSet has no replicas"),
    ],
)
def test_what_is_no_workload_to_scale(name: str, message: str) -> None:
    agent = workload("DaemonSet", "agent", 1)
    with pytest.raises(NoSuchWorkloadError, match=message):
        kubesched.capacity([*nodes(), workload("Deployment", "web", 1), agent], workloads=[name])


def test_the_quota_may_stop_the_next_one() -> None:
    web = workload("Deployment", "web", 2)
    quota = bound("ResourceQuota", {"hard": {"requests.cpu": "5"}})
    world = kubesched.world([*nodes(), web, quota])
    answer = kubesched.capacity(world, workloads=["deployment/shop/web"]).answers[0]
    assert (answer.fits, answer.limit) == (3, "quota")
    assert (
        answer.message
        == "exceeded quota: bound, requested: requests.cpu=1, used: requests.cpu=5, limited: requests.cpu=5"
    )
    ignored = kubesched.capacity(world, workloads=["deployment/shop/web"], quota=False)
    assert (ignored.fits, ignored.answers[0].limit) == (14, "unschedulable")
    assert kubesched.capacity(world, shapes=["1/1Gi"]).fits == 14  # another namespace


def test_limit_ranges_fill_in_and_refuse() -> None:
    defaults = bound("LimitRange", {"limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}}]}, "default")
    plain = make.pod("plain")
    assert kubesched.capacity([*nodes(), defaults], plain).fits == 8
    most = bound("LimitRange", {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}, "default")
    answer = kubesched.capacity([*nodes(), most], shapes=["2/1Gi"]).answers[0]
    assert (answer.fits, answer.limit) == (0, "quota")
    assert "maximum cpu usage per Container is 1" in answer.message


def test_every_workload_the_one_with_the_least_room_first() -> None:
    items = [*nodes(), workload("Deployment", "web", 2), workload("StatefulSet", "db", 1, cpu="3")]
    report = kubesched.capacity([*items, workload("DaemonSet", "agent", 1, cpu="500m")], every=True)
    assert [one.pod for one in report.answers] == ["StatefulSet shop/db", "Deployment shop/web"]
    assert str(report).startswith(
        f"2 workloads; least room: StatefulSet shop/db: {report.fits} more fit; the next one: 0/4"
    )
    each = [
        kubesched.capacity([*items, workload("DaemonSet", "agent", 1, cpu="500m")], workloads=[name]).fits
        for name in ("statefulset/shop/db", "deployment/shop/web")
    ]
    assert [one.fits for one in report.answers] == each


def test_the_command(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    quota = bound("ResourceQuota", {"hard": {"pods": "6"}})
    items = [*nodes(), workload("Deployment", "web", 2), quota]
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["capacity", "-f", str(cluster), *arguments])

    told = run("--workload", "deployment/shop/web").stdout
    assert told.startswith("Deployment shop/web: 4 more fit; the next one: exceeded quota: bound, requested: pods=1")
    assert "14 more fit" in run("--workload", "deployment/shop/web", "--quota", "ignore").stdout
    assert run("--every", "workload").stdout.startswith("1 workload; least room: Deployment shop/web: 4 more fit")
    mistake = run("--workload", "deployment/shop/wbe")
    assert (mistake.exit_code, mistake.stderr.count("\n")) == (2, 1)
    assert "did you mean" in mistake.stderr
