"""What is written to the server has all that the model leaves out, and what the rules changed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from harness.workload_manifests import objects, workload
from kubesched.k8s.model.apps import Deployment, ReplicaSet
from kubesched.k8s.model.core import PodTemplateSpec
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.model.volumes import PersistentVolumeClaimVolumeSource, Volume
from kubesched.k8s.workloads.daemon_sets import tied_to_node
from kubesched.k8s.workloads.deployments import sync_deployment
from kubesched.k8s.workloads.templates import pod_from_template
from kubesched.playground.controllers.whole_objects import (
    FINGERPRINT_NOTE,
    claim_body,
    driver_name,
    metadata_body,
    pod_body,
    replica_set_body,
)

WHOLE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}, "annotations": {"note": "kept"}},
    "spec": {
        "containers": [{"name": "c", "image": "i", "command": ["run"], "env": [{"name": "A", "value": "b"}]}],
        "dnsPolicy": "ClusterFirst",
        "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}],
    },
}


def _typed() -> PodTemplateSpec:
    return msgspec.convert(WHOLE, PodTemplateSpec)


def _owner() -> Deployment:
    (found,) = objects(workload("Deployment", "web"))
    assert isinstance(found, Deployment)
    return replace(found, metadata=replace(found.metadata, uid="u"))


def test_a_pod_has_all_of_its_template() -> None:
    body = pod_body(pod_from_template(_typed(), _owner(), "web-1"), WHOLE, _typed())
    assert body["spec"] == WHOLE["spec"]
    assert body["metadata"]["annotations"] == {"note": "kept"}
    (reference,) = body["metadata"]["ownerReferences"]
    assert (reference["uid"], reference["controller"], reference["blockOwnerDeletion"]) == ("u", True, True)


def test_what_the_rules_changed_is_changed_and_nothing_else() -> None:
    typed = _typed()
    pod = pod_from_template(typed, _owner(), "web-1", spec=tied_to_node(typed.spec, "n"))
    spec = pod_body(pod, WHOLE, typed)["spec"]
    field = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]
    assert field == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    assert {key: value for key, value in spec.items() if key != "affinity"} == WHOLE["spec"]


def test_volumes_that_the_rules_added_stand_beside_whole_ones() -> None:
    typed = _typed()
    claimed = Volume("data", persistent_volume_claim=PersistentVolumeClaimVolumeSource("data-web-0"))
    changed = replace(typed.spec, volumes=(claimed, *(typed.spec.volumes or ())))
    spec = pod_body(pod_from_template(typed, _owner(), "web-0", spec=changed), WHOLE, typed)["spec"]
    assert spec["volumes"][0]["persistentVolumeClaim"] == {"claimName": "data-web-0"}
    assert spec["volumes"][1:] == WHOLE["spec"]["volumes"]


def test_a_replica_set_has_the_whole_template_and_the_label_of_its_own() -> None:
    owner = _owner()
    owner = replace(owner, spec=replace(owner.spec, template=_typed(), replicas=2))
    (action,) = sync_deployment(owner, [], {}).actions
    assert isinstance(action.item, ReplicaSet)
    body = replica_set_body(action.item, {"template": WHOLE, "minReadySeconds": 3})
    label = body["metadata"]["labels"]["pod-template-hash"]
    assert body["spec"]["template"]["metadata"]["labels"] == {"app": "web", "pod-template-hash": label}
    assert body["spec"]["template"]["spec"] == WHOLE["spec"]
    assert (body["spec"]["replicas"], body["spec"]["minReadySeconds"]) == (2, 3)


def test_a_claim_of_a_stateful_set_has_the_whole_spec_of_its_template() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "dataSource": {"kind": "VolumeSnapshot", "name": "s"}}
    owner_spec = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": spec}]}
    planned = PersistentVolumeClaim(metadata=ObjectMeta(name="data-db-0", namespace="default"))
    assert claim_body(planned, owner_spec, "db")["spec"] == spec


def test_the_fingerprint_of_a_template_is_never_written() -> None:
    assert "annotations" not in metadata_body(ObjectMeta(name="p", annotations={FINGERPRINT_NOTE: "x"}))


@pytest.mark.parametrize(
    ("provisioner", "driver"),
    [
        pytest.param("ebs.csi.aws.com", "ebs.csi.aws.com", id="a driver already"),
        pytest.param("pretend.example/disk", "pretend.example.disk", id="with a slash"),
        pytest.param(
            "Example_Com/" + "x" * 80, "example.com." + "x" * 51, id="long, and with letters that drivers lack"
        ),
    ],
)
def test_any_provisioner_makes_a_driver(provisioner: str, driver: str) -> None:
    assert driver_name(provisioner) == driver
