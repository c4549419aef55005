"""What in-tree plugins say their answers depend on."""

from __future__ import annotations

from typing import Any, cast

import pytest
from small_clusters import pod_info

from kubesched.framework import Handle
from kubesched.framework.caching import FollowsPods, Scope
from kubesched.k8s.model import manifests
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.dynamic_resources import DynamicResources
from kubesched.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from kubesched.scheduler.plugins.registry import REGISTRY
from kubesched.scheduler.plugins.volume_binding import VolumeBinding
from kubesched.scheduler.plugins.volume_restrictions import VolumeRestrictions
from kubesched.scheduler.plugins.volume_zone import VolumeZone

HANDLE = cast(Handle, Cluster())
"""A cluster without objects."""
CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
TOKEN = {"name": "v", "projected": {"sources": []}}
EPHEMERAL = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
DISK = {"name": "v", "gcePersistentDisk": {"pdName": "d"}}


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_plugin_says_what_its_answers_depend_on(name: str) -> None:
    plugin: Any = REGISTRY[name]
    for extension_point in ("filter", "score"):
        takes_part = hasattr(plugin, extension_point) or hasattr(plugin, f"{extension_point}_node")
        assert isinstance(getattr(plugin, f"{extension_point}_scope", None), Scope) == takes_part


def test_the_plugins_that_look_at_other_pods_follow_them() -> None:
    followers = {name for name, factory in REGISTRY.items() if isinstance(factory(None, HANDLE), FollowsPods)}
    assert followers == {"InterPodAffinity", "PodTopologySpread"}


@pytest.mark.parametrize(
    ("plugin", "volume", "scope"),
    [
        pytest.param(VolumeBinding, TOKEN, Scope.NODE, id="binding has nothing to say on a token"),
        pytest.param(VolumeBinding, CLAIM, Scope.CLUSTER, id="binding looks at claims"),
        pytest.param(VolumeBinding, EPHEMERAL, Scope.CLUSTER, id="binding looks at claims that are made for the pod"),
        pytest.param(VolumeZone, TOKEN, Scope.NODE, id="zones do not matter to a token"),
        pytest.param(VolumeZone, CLAIM, Scope.CLUSTER, id="zones are those of a claim's volume"),
        pytest.param(VolumeRestrictions, TOKEN, Scope.NODE, id="a token is not restricted"),
        pytest.param(VolumeRestrictions, CLAIM, Scope.CLUSTER, id="a claim may be for one pod only"),
        pytest.param(VolumeRestrictions, DISK, Scope.CLUSTER, id="a disk may be in use"),
        pytest.param(NodeVolumeLimits, TOKEN, Scope.NODE, id="a token is not attached"),
        pytest.param(NodeVolumeLimits, CLAIM, Scope.CLUSTER, id="a claim's volume is attached"),
        pytest.param(NodeVolumeLimits, EPHEMERAL, Scope.CLUSTER, id="so is one that is made for the pod"),
    ],
)
def test_volumes_matter_to_pods_that_have_such(plugin: Any, volume: dict[str, Any], scope: Scope) -> None:
    assert plugin(None, HANDLE).filter_scope_for(pod_info(volumes=[volume])) is scope


def test_devices_matter_to_pods_that_need_some() -> None:
    plugin = DynamicResources(None, HANDLE)
    assert plugin.filter_scope_for(pod_info()) is plugin.score_scope_for(pod_info()) is Scope.NODE
    claiming = pod_info(resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
    assert plugin.filter_scope_for(claiming) is Scope.CLUSTER


def test_extended_resources_may_stand_for_devices() -> None:
    device_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}}
    cluster = Cluster.from_objects(manifests.from_dicts([device_class]).objects)
    requests = {"resources": {"requests": {"deviceclass.resource.kubernetes.io/gpu": "1"}}}
    asking = pod_info(containers=[{"name": "main", "image": "app", **requests}])
    assert DynamicResources(None, HANDLE).filter_scope_for(asking) is Scope.NODE
    assert DynamicResources(None, cast(Handle, cluster)).filter_scope_for(asking) is Scope.CLUSTER
