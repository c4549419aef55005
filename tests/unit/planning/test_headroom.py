"""Room to keep free: by amounts, from CapacityBuffers, and in every command that takes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kubesched
from kubesched.cli.main import main
from kubesched.planning.headroom import HeadroomError, headroom_pods, headroom_sets, is_headroom
from kubesched.testing import make

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "rs-a", "controller": True}
BUFFER = "apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: room, namespace: shop}\n"
TEMPLATE = """
---
apiVersion: v1
kind: PodTemplate
metadata: {name: small, namespace: shop}
template: {spec: {containers: [{name: c, resources: {requests: {cpu: 400m, memory: 1Gi}}}]}}
"""


def deployment(replicas: int | None = 10) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "priority": 7}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def nodes(n: int, cpu: str = "4") -> list[dict[str, Any]]:
    return [make.node(f"n{k}", cpu=cpu, memory="16Gi", labels={make.ZONE: "ab"[k % 2]}) for k in range(n)]


def buffer_file(tmp_path: Path, spec: str, rest: str = TEMPLATE) -> str:
    path = tmp_path / "buffers.yaml"
    path.write_text(f"{BUFFER}spec: {spec}\n{rest}")
    return str(path)


@pytest.mark.parametrize(
    ("spec", "n"),
    [
        pytest.param("{scalableRef: {kind: Deployment, name: web}, replicas: 3}", 3, id="replicas"),
        pytest.param("{scalableRef: {kind: Deployment, name: web}, percentage: 25}", 3, id="percentage, rounded up"),
        pytest.param("{scalableRef: {kind: Deployment, name: web}, percentage: 0}", 0, id="nothing"),
        pytest.param("{scalableRef: {kind: Deployment, name: web}, replicas: 5, percentage: 20}", 2, id="the smaller"),
        pytest.param("{scalableRef: {kind: Deployment, name: web}, replicas: 1, percentage: 80}", 1, id="smaller"),
        pytest.param("{scalableRef: {kind: Deployment, name: web}, replicas: 9, limits: {cpu: 2}}", 4, id="limits cap"),
        pytest.param("{podTemplateRef: {name: small}, limits: {cpu: 3, memory: 5Gi}}", 5, id="limits alone"),
        pytest.param("{podTemplateRef: {name: small}, replicas: 2, limits: {nvidia.com/gpu: 1}}", 2, id="of no matter"),
    ],
)
def test_how_many_pods_a_buffer_asks_room_for(tmp_path: Path, spec: str, n: int) -> None:
    cluster = kubesched.load([deployment(), *nodes(1)])
    pods = headroom_pods([buffer_file(tmp_path, spec)], cluster.found.objects)
    assert len(pods) == n
    assert all(is_headroom(pod.pod_key) and pod.namespace == "shop" for pod in pods)
    assert all(pod.spec.priority == -(10**9) and pod.spec.preemption_policy == "Never" for pod in pods)


def test_its_pods_have_the_labels_of_their_template(tmp_path: Path) -> None:
    """So spread and affinity count them with the others."""
    file = buffer_file(tmp_path, "{scalableRef: {kind: Deployment, name: web}, replicas: 1}")
    (found,) = headroom_sets([file], kubesched.load([deployment()]).found.objects)
    assert found.spec.template is not None
    assert found.spec.template.metadata.labels == {"app": "web"}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("{replicas: 3}", "spec: one of podTemplateRef and scalableRef is expected"),
        ("{podTemplateRef: {name: small}, scalableRef: {kind: Deployment, name: web}}", "spec: one of podTemplateRef"),
        ("{scalableRef: {kind: Deployment, name: wbe}, replicas: 3}", "there is no Deployment shop/wbe"),
        ("{podTemplateRef: {name: large}, replicas: 3}", "spec.podTemplateRef: there is no PodTemplate large"),
        ("{podTemplateRef: {name: small}}", "spec: nothing says how many"),
        ("{podTemplateRef: {name: small}, replicas: -1}", "spec.replicas: must not be negative, but is -1"),
        ("{podTemplateRef: {name: small}, limits: {cpu: lots}}", "spec.limits.cpu: "),
        ("{podTemplateRef: {name: small}, replicas: 1000000}", "room for more than 100,000 pods"),
    ],
)
def test_what_is_wrong_with_a_buffer_is_told_with_file_object_and_field(tmp_path: Path, spec: str, told: str) -> None:
    file = buffer_file(tmp_path, spec)
    with pytest.raises(HeadroomError) as error:
        headroom_sets([file], kubesched.load([deployment()]).found.objects)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
    if "100,000" not in told:
        assert str(error.value).startswith(f"{file}: CapacityBuffer shop/room: ")


@pytest.mark.parametrize("text", ["lots", "2x", "20x500m/", "n-1:zone", "9999999x1/1Gi"])
def test_what_is_no_room_is_refused(text: str) -> None:
    with pytest.raises(HeadroomError, match="keep"):
        headroom_sets([text], ())


def test_capacity_leaves_the_room_alone() -> None:
    cluster = nodes(2)
    free = kubesched.capacity(cluster, shapes=["1/1Gi"])
    kept = kubesched.capacity(cluster, shapes=["1/1Gi"], keep=["2x1/1Gi@a", "1x500m/1Gi"])
    assert (free.fits, kept.fits) == (8, 5)
    assert "Room for 3 pods is kept free." in kept.assumptions
    assert kubesched.capacity(cluster, shapes=["1/1Gi"], keep=["9x1/1Gi"]).assumptions[-1] == (
        "Of the room to keep, for 9 pods, there is none for 1 even now."
    )


def test_copies_that_preempt_do_not_take_the_room() -> None:
    urgent = make.pod("urgent", requests={"cpu": "1"}, priority=100)
    kept = kubesched.capacity(nodes(2), urgent, keep=["2x1/1Gi"], preemption="count")
    assert (kept.fits, kept.answers[0].victims) == (6, {})
    with pytest.raises(kubesched.KubeschedError, match="keep and let_lose exclude each other"):
        kubesched.capacity(nodes(2), urgent, keep=["2x1/1Gi"], preemption="count", let_lose=True)


def test_nodes_that_hold_the_room_stay() -> None:
    pod = make.pod("a-1", requests={"cpu": "1"}, on="n0", metadata={"ownerReferences": [OWNER]})
    cluster = [*nodes(4), pod]
    assert len(kubesched.consolidate(cluster).steps) == 3
    kept = kubesched.consolidate(cluster, keep=["5x1/1Gi"])
    assert len(kept.steps) == 2
    assert not any(is_headroom(move.pod) for step in kept.steps for move in step.moves)
    assert sum(node.after.get("cpu", 0) for node in kept.nodes) == 1000


def test_no_rule_of_a_peer_is_about_the_room() -> None:
    for rules in ("drain", "karpenter", "cluster-autoscaler"):
        assert len(kubesched.consolidate(nodes(3), rules=rules, keep=["2x1/1Gi"]).steps) == 2


@pytest.mark.parametrize("every", ["zone", "node"])
def test_an_outage_tells_of_the_room_only_if_it_is_lost(every: str) -> None:
    cluster = [*nodes(4), deployment(4)]
    held = kubesched.outage(cluster, every=every, keep=["2x500m/1Gi"])
    assert held.survives
    assert {loss.workload for result in held.results for loss in result.workloads} == {"Deployment web"}
    lost = kubesched.outage(cluster, every=every, keep=["14x1/1Gi"])
    assert not lost.survives
    assert {loss.workload for result in lost.results for loss in result.workloads if loss.missing} == {"room to keep"}


def test_optimal_and_plan_count_the_room(tmp_path: Path) -> None:
    cluster = [*nodes(4), deployment(4)]
    assert kubesched.optimal(cluster).least_nodes == 1
    assert kubesched.optimal(cluster, keep=["9x1/1Gi"]).least_nodes == 3
    file = buffer_file(tmp_path, "{scalableRef: {kind: Deployment, name: web}, percentage: 200}")
    machine = {"name": "m", "allocatable": {"cpu": "2", "memory": "8Gi", "pods": 20}, "offers": [{"price": 1}]}
    catalogue = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": [machine]}
    assert kubesched.plan([deployment(4)], catalogue, from_scratch=True).n_nodes == 1
    assert kubesched.plan([deployment(4)], catalogue, from_scratch=True, keep=[file]).n_nodes == 3


@pytest.mark.parametrize("command", ["capacity --shape 1/1Gi", "consolidate", "outage", "optimal"])
def test_each_command_takes_it(command: str, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes(4), deployment(4)]}))
    file = buffer_file(tmp_path, "{scalableRef: {kind: Deployment, name: web}, percentage: 25}")
    done = CliRunner().invoke(main, [*command.split(), "-f", str(cluster), "--keep", file, "--keep", "1x1/1Gi"])
    assert done.exit_code == 0, done.output
    wrong = CliRunner().invoke(main, [*command.split(), "-f", str(cluster), "--keep", "lots"])
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith('error: keep "lots" is neither of the form')
