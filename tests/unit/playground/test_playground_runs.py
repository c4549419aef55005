"""The whole playground: a cluster that schedules, and the command that runs it once."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.scripted_server.faults import until
from harness.workload_manifests import workload
from kubesched.cli.up import up
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.playground.apiserver.server import ServerSettings
from kubesched.playground.controllers.cluster_view import ClusterView
from kubesched.playground.hollow_nodes.fleet import NodeShape
from kubesched.playground.hollow_nodes.pod_plays import Delays
from kubesched.playground.playground import Playground, PlaygroundSettings
from kubesched.playground.settling import wait_settled


def test_a_deployment_is_made_scheduled_and_run(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    settings = PlaygroundSettings(
        ServerSettings(), kubeconfig, nodes=list(NodeShape().bodies(2)), delays=Delays(0.0, 0.0)
    )

    manifest = workload("Deployment", "web", replicas=6)
    manifest["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx"

    async def run() -> list[Pod]:
        async with Playground(settings) as playground:
            await playground.put_in([manifest])
            view = playground.controllers.view
            assert await wait_settled(view, lambda: playground.controllers.is_idle, 30.0, quiet_s=0.3)
            return list(view.of(Pod).values())

    pods = asyncio.run(run())
    assert len(pods) == 6
    assert {pod.spec.node_name for pod in pods} == {"node-0", "node-1"}
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600


def _dumped(kind: str, name: str, uid: str, owner: dict[str, Any] | None, spec: dict[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "shop", "uid": uid, "labels": {"app": "web"}}
    if owner is not None:
        named = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        kind_of_owner = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
        metadata["ownerReferences"] = [{**kind_of_owner, **named, "controller": True}]
    group = "v1" if kind in ("Pod", "Service") else "apps/v1"
    return {"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec}


def test_the_pods_of_a_dump_stay_where_they_were_and_belong_to_whom_they_belonged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    containers = {"containers": [{"name": "c", "image": "i"}]}
    selector = {"matchLabels": {"app": "web"}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": containers}
    own = _dumped("Deployment", "web", "u-d", None, {"replicas": 2, "selector": selector, "template": template})
    replicas = _dumped("ReplicaSet", "web-1", "u-r", own, {"replicas": 2, "selector": selector, "template": template})
    lost = _dumped("ReplicaSet", "other", "u-not-in-the-dump", None, {})
    pods = [
        _dumped("Pod", "web-1-a", "u-a", replicas, {**containers, "nodeName": "node-1"}),
        _dumped("Pod", "web-1-b", "u-b", replicas, {**containers, "nodeName": "node-1"}),
        _dumped("Pod", "orphan", "u-c", lost, {**containers, "nodeName": "node-0"}),
    ]
    pods[2]["metadata"]["labels"] = {"app": "other"}
    # A snapshot has the selectors of Services, and no more; the one of the API server is among them.
    service = _dumped("Service", "web", "u-s", None, {"selector": {"app": "web"}})
    server = _dumped("Service", "kubernetes", "u-k", None, {})
    server["metadata"]["namespace"] = "default"
    settings = PlaygroundSettings(
        ServerSettings(),
        tmp_path / "kubeconfig",
        nodes=list(NodeShape().bodies(2)),
        objects=[*pods, replicas, service, server, own],
        delays=Delays(0.0, 0.0),
    )

    async def run() -> dict[str, tuple[str, str]]:
        async with Playground(settings) as playground:
            view = playground.controllers.view
            assert await wait_settled(view, lambda: playground.controllers.is_idle, 30.0, quiet_s=0.3)
            owners = {pod.name: next(view.owners_of(pod), None) for pod in view.of(Pod).values()}
            return {
                pod.name: (pod.spec.node_name, "" if (owner := owners[pod.name]) is None else owner.name)
                for pod in view.of(Pod).values()
            }

    expected = {"web-1-a": ("node-1", "web-1"), "web-1-b": ("node-1", "web-1"), "orphan": ("node-0", "")}
    assert asyncio.run(run()) == expected
    assert "A controller failed" not in caplog.text


def _devices() -> list[dict[str, Any]]:
    group = "resource.k8s.io/v1"
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "gpu-0"}, {"name": "gpu-1"}]
    claim = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpus"}}]}}
    rule = {"taint": {"key": "broken", "effect": "NoSchedule"}, "deviceSelector": {"device": "gpu-0"}}
    pod = {
        "containers": [{"name": "c", "image": "i"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}],
    }
    return [
        {"apiVersion": group, "kind": "DeviceClass", "metadata": {"name": "gpus"}, "spec": {}},
        {
            "apiVersion": group,
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {"driver": "d.x", "pool": pool, "allNodes": True, "devices": devices},
        },
        {"apiVersion": f"{group}beta2", "kind": "DeviceTaintRule", "metadata": {"name": "rule"}, "spec": rule},
        {"apiVersion": group, "kind": "ResourceClaim", "metadata": {"name": "claim"}, "spec": claim},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod},
    ]


def test_a_rule_keeps_pods_off_a_device_and_drives_them_off(tmp_path: Path) -> None:
    settings = PlaygroundSettings(
        ServerSettings(), tmp_path / "kubeconfig", nodes=list(NodeShape().bodies(1)), delays=Delays(0.0, 0.0)
    )

    async def run() -> None:
        async with Playground(settings) as playground:
            view = playground.controllers.view
            await playground.put_in(_devices())
            await until(lambda: _allocated(view) == ["gpu-1"], 30.0)
            await until(lambda: bool(view.of(Pod)), 30.0)
            rule = _devices()[2]
            rule["metadata"]["name"] = "second"
            rule["spec"] = {"taint": {"key": "broken", "effect": "NoExecute"}, "deviceSelector": {"device": "gpu-1"}}
            await playground.put_in([rule])
            await until(lambda: not view.of(Pod), 30.0)
            await until(lambda: not _allocated(view), 30.0)

    asyncio.run(run())


def _allocated(view: ClusterView) -> list[str]:
    return [
        result.device
        for claim in view.of(ResourceClaim).values()
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results or ()
    ]


@pytest.mark.parametrize(
    ("cpu", "code", "told"),
    [
        pytest.param("1", 0, "1 of 1 pods scheduled, on 1 node", id="a pod that fits"),
        pytest.param("100", 1, "0 of 1 pods scheduled, on 0 nodes", id="a pod that does not fit"),
    ],
)
def test_once_ends_with_a_summary_and_a_code_for_ci(tmp_path: Path, cpu: str, code: int, told: str) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: "
        f'[{{name: c, image: i, resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}}}'
    )
    result = CliRunner().invoke(up, ["--once", "-f", str(file), "--nodes", "1", "--timeout", "30"])
    assert (result.exit_code, result.output.splitlines()[0]) == (code, told)


_GANG_GATES = "GenericWorkload=true,GangScheduling=true,WorkloadWithJob=true"
_JOB = """
apiVersion: batch/v1
kind: Job
metadata: {{name: training}}
spec:
  parallelism: {size}
  completions: {size}
  completionMode: Indexed
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: worker, image: trainer, resources: {{requests: {{cpu: "2"}}}}}}]
"""
_LONELY = """
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: gang}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
---
apiVersion: v1
kind: Pod
metadata: {name: lonely}
spec: {schedulingGroup: {podGroupName: gang}, containers: [{name: main, image: i}]}
"""


@pytest.mark.parametrize(
    ("manifest", "code", "told"),
    [
        pytest.param(_JOB.format(size=4), 0, "4 of 4 pods scheduled, on 1 node", id="a job that fits as a whole"),
        pytest.param(
            _JOB.format(size=5), 1, "0 of 5 pods scheduled, on 0 nodes", id="a job that lacks room for one pod"
        ),
        pytest.param(
            _LONELY,
            1,
            "pending: default/lonely: held back by the plugin GangScheduling",
            id="a gang that is not complete",
        ),
    ],
)
def test_gangs_are_scheduled_whole_or_not_at_all(tmp_path: Path, manifest: str, code: int, told: str) -> None:
    file = tmp_path / "gang.yaml"
    file.write_text(manifest)
    options = ["--once", "-f", str(file), "--nodes", "1", "--cpu", "8", "--timeout", "30"]
    result = CliRunner().invoke(up, [*options, "--feature-gates", _GANG_GATES])
    assert result.exit_code == code
    assert told in result.output.splitlines()


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3"])
@pytest.mark.parametrize(
    ("least", "code", "told"),
    [
        pytest.param(1, 0, "1 of 1 pods scheduled, on 1 node", id="complete"),
        pytest.param(2, 1, "pending: default/lonely: held back by the plugin GangScheduling", id="incomplete"),
    ],
)
def test_gangs_of_v1_37_are_put_in_and_scheduled(
    tmp_path: Path, version: str, least: int, code: int, told: str
) -> None:
    file = tmp_path / "gang.yaml"
    file.write_text(_LONELY.replace("v1alpha2", version).replace("minCount: 2", f"minCount: {least}"))
    options = ["--once", "-f", str(file), "--nodes", "1", "--timeout", "30", "--emulate", "1.37"]
    result = CliRunner().invoke(up, [*options, "--feature-gates", "GenericWorkload=true"])
    assert told in result.output.splitlines()
    assert result.exit_code == code


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param(["--once"], "--once needs -f", id="once without files"),
        pytest.param(["--data", "d", "--in-memory"], "specify either --data or --in-memory", id="kept and not kept"),
        pytest.param(["--in-memory", "--cpu", "lots"], "error: ", id="an amount that is none"),
        pytest.param(
            ["--in-memory", "--feature-gates", "GangScheduling=true"],
            "error: GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
            id="a gate that lacks another",
        ),
        pytest.param(
            ["--in-memory", "--emulate", "1.37", "--feature-gates", "GenericWorkload=true,GangScheduling=true"],
            "unrecognized feature gate: GangScheduling (in v1.37 it is part of GenericWorkload)",
            id="a gate that v1.37 does not have any more",
        ),
        pytest.param(["--in-memory", "--emulate", "9.99"], 'version "9.99" is not known', id="no version"),
        pytest.param(["--in-memory", "--feature-gates", "Nope=true"], "unrecognized feature gate: Nope", id="no gate"),
        pytest.param(["--in-memory", "-f", "/does/not/exist"], "error: /does/not/exist: No such file", id="no file"),
    ],
)
def test_mistakes_are_told_and_end_with_2(options: list[str], problem: str) -> None:
    result = CliRunner().invoke(up, options)
    assert result.exit_code == 2
    assert problem in result.output
