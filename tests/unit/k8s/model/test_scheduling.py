"""Pod groups as v1.36 and v1.37 write them."""

from __future__ import annotations

from kubesched.k8s.model.core import Pod, PodSpec, SchedulingGroup
from kubesched.k8s.model.manifests import from_dicts
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.scheduling import PodGroup, Workload, group_key_of


def _group(version: str, spec: dict[str, object]) -> PodGroup:
    manifest = {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "team"},
        "spec": spec,
    }
    (found,) = from_dicts([manifest]).objects
    assert isinstance(found, PodGroup)
    return found


def test_a_gang_of_v1alpha2() -> None:
    found = _group(
        "v1alpha2",
        {
            "schedulingPolicy": {"gang": {"minCount": 3}},
            "podGroupTemplateRef": None,
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
            "disruptionMode": "PodGroup",
            "priority": 7,
        },
    )
    assert (found.key, found.min_count, found.topology_key, found.priority) == ("team/g", 3, "rack", 7)
    assert found.is_evicted_whole


def test_a_basic_group_needs_no_number_of_pods() -> None:
    found = _group("v1alpha2", {"schedulingPolicy": {"basic": {}}, "disruptionMode": "Pod"})
    assert (found.min_count, found.topology_key, found.priority, found.is_evicted_whole) == (0, "", 0, False)


def test_disruption_modes_of_v1beta1_are_a_union() -> None:
    assert _group("v1beta1", {"schedulingPolicy": {"basic": {}}, "disruptionMode": {"all": {}}}).is_evicted_whole
    assert not _group("v1beta1", {"schedulingPolicy": {"basic": {}}, "disruptionMode": {"single": {}}}).is_evicted_whole


def test_a_workload_is_read_with_its_templates() -> None:
    manifest = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "team"},
        "spec": {"podGroupTemplates": [{"name": "t", "schedulingPolicy": {"gang": {"minCount": 2}}}]},
    }
    (found,) = from_dicts([manifest]).objects
    assert isinstance(found, Workload)
    assert found.spec.pod_group_templates is not None
    assert found.spec.pod_group_templates[0].name == "t"


def test_a_pod_names_its_group_within_its_namespace() -> None:
    named = PodSpec(scheduling_group=SchedulingGroup("g"))
    assert group_key_of(Pod(ObjectMeta("p", "team"), named)) == "team/g"
    assert group_key_of(Pod(ObjectMeta("p", "team"), PodSpec(scheduling_group=SchedulingGroup()))) == ""
    assert group_key_of(Pod(ObjectMeta("p", "team"))) == ""
