"""What kubectl makes of the overlays. Needs kubectl, but no cluster."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from deploy_files import DEPLOY, OVERLAYS, Manifest, container_of, only, read_one
from deploy_rights import CLUSTER, READ, rights, rights_in

from kubesched.scheduler.config import load

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed, so overlays are not built")
each_overlay = pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)


@functools.cache
def built(folder: Path) -> list[Manifest]:
    command = [KUBECTL or "kubectl", "kustomize", str(folder)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert outcome.returncode == 0, outcome.stderr
    return list(yaml.safe_load_all(outcome.stdout))


@each_overlay
def test_an_overlay_has_every_object(overlay: Path) -> None:
    assert sorted(manifest["kind"] for manifest in built(overlay)) == [
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "Deployment",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    ]


@each_overlay
def test_the_pod_mounts_the_configuration_that_was_made(overlay: Path) -> None:
    deployment, made = only(built(overlay), "Deployment"), only(built(overlay), "ConfigMap")
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    (mounted,) = [volume["configMap"]["name"] for volume in volumes if "configMap" in volume]
    assert mounted == made["metadata"]["name"] != "kubesched-config", "with a hash of its content"


@each_overlay
def test_the_lease_may_be_changed_by_its_true_name(overlay: Path) -> None:
    """Kustomize rewrites names in roles when they are those of objects it renames."""
    text = only(built(overlay), "ConfigMap")["data"]["config.yaml"]
    election = load(text.encode(), "config.yaml").leader_election
    role = only(built(overlay), "Role")
    names = [name for rule in role["rules"] for name in rule.get("resourceNames", ())]
    assert names == [election.resource_name]
    assert role["metadata"]["namespace"] == election.resource_namespace


@each_overlay
def test_the_image_is_the_one_of_the_overlay(overlay: Path) -> None:
    (image,) = read_one(overlay / "kustomization.yaml")["images"]
    container = container_of(only(built(overlay), "Deployment"))
    assert container["image"] == f"{image['newName']}:{image['newTag']}"


def test_in_the_place_of_kube_scheduler_it_may_run_on_the_control_plane() -> None:
    pod = only(built(DEPLOY / "overlays" / "replace"), "Deployment")["spec"]["template"]["spec"]
    assert [toleration["key"] for toleration in pod["tolerations"]] == ["node-role.kubernetes.io/control-plane"]
    assert len(pod["topologySpreadConstraints"]) == 2, "the patch adds and takes nothing away"


@each_overlay
def test_components_can_be_added(overlay: Path, tmp_path: Path) -> None:
    """By the lines that stand in each overlay as a comment."""
    copy = tmp_path / "deploy"
    shutil.copytree(DEPLOY, copy)
    edited = copy / overlay.relative_to(DEPLOY) / "kustomization.yaml"
    text = edited.read_text().replace("# components:\n", "components:\n").replace("#   - ../", "  - ../")
    edited.write_text(text)
    assert only(built(edited.parent), "ServiceMonitor")["spec"]["endpoints"]
    assert only(built(edited.parent), "NetworkPolicy")["spec"]["policyTypes"] == ["Ingress", "Egress"]
    arguments = container_of(only(built(edited.parent), "Deployment"))["args"]
    assert "--tls-cert-file=/etc/kubesched-serving/tls.crt" in arguments
    assert "--feature-gates=GenericWorkload=true,GangScheduling=true" in arguments
    role = set(rights_in(only(built(edited.parent), "ClusterRole")))
    groups = rights(("scheduling.k8s.io",), "podgroups compositepodgroups", READ)
    assert role - CLUSTER == groups | rights(("scheduling.k8s.io",), "podgroups/status", ("patch",))
