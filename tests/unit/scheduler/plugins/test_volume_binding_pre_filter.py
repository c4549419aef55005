"""VolumeBinding, PreFilter: whether the claims of a pod can be used at all."""

from __future__ import annotations

import pytest
from storage_clusters import (
    StorageCluster,
    claim,
    ephemeral,
    node,
    pod,
    storage_class,
)

from kubesched.framework import OK, CycleState, Status
from kubesched.framework.status import SKIP
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.plugins.volume_binding import VolumeBinding

NODES = (node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"))


def pre_filter(cluster: StorageCluster, incoming: Pod) -> Status:
    return VolumeBinding(None, cluster).pre_filter(CycleState(), cluster.info(incoming), cluster.nodes).status


OWNED = pod("p", ephemeral("tmp"))


@pytest.mark.parametrize(
    ("incoming", "objects", "expected"),
    [
        pytest.param(pod("p"), (), SKIP, id="no claims"),
        pytest.param(pod("p", "c"), (claim("c", volume="pv"),), OK, id="a bound claim, whatever its volume"),
        pytest.param(
            pod("p", "c"), (), Status.unresolvable('persistentvolumeclaim "c" not found'), id="a missing claim"
        ),
        pytest.param(
            pod("p", "c"),
            (claim("c", volume="pv", phase="Lost"),),
            Status.unresolvable('persistentvolumeclaim "c" bound to non-existent persistentvolume "pv"'),
            id="a lost claim",
        ),
        pytest.param(
            pod("p", "c"),
            (claim("c", volume="pv", deleting=True),),
            Status.unresolvable('persistentvolumeclaim "c" is being deleted'),
            id="a claim that is being deleted",
        ),
        pytest.param(
            OWNED,
            (),
            Status.unresolvable('waiting for ephemeral volume controller to create the persistentvolumeclaim "p-tmp"'),
            id="an ephemeral volume's claim to come",
        ),
        pytest.param(
            OWNED,
            (claim("p-tmp", volume="pv"),),
            Status.unresolvable("PVC default/p-tmp was not created for pod default/p (pod is not owner)"),
            id="an ephemeral volume's claim of somebody else",
        ),
        pytest.param(
            OWNED, (claim("p-tmp", volume="pv", owner=OWNED.metadata.uid),), OK, id="an ephemeral volume's own claim"
        ),
        pytest.param(
            pod("p", "c"),
            (claim("c"), storage_class(mode="Immediate")),
            Status.unresolvable("pod has unbound immediate PersistentVolumeClaims"),
            id="an unbound claim of a class that binds at once",
        ),
        pytest.param(
            pod("p", "c"),
            (claim("c"),),
            Status.unresolvable("pod has unbound immediate PersistentVolumeClaims"),
            id="an unbound claim of a missing class",
        ),
        pytest.param(
            pod("p", "c"),
            (claim("c", storage_class=None),),
            Status.unresolvable("pod has unbound immediate PersistentVolumeClaims"),
            id="an unbound claim without a class",
        ),
        pytest.param(
            pod("p", "c"),
            (claim("c", volume="pv", bound=False), storage_class()),
            Status.unresolvable("pod has unbound immediate PersistentVolumeClaims"),
            id="a claim that names its volume and waits for the controller",
        ),
        pytest.param(pod("p", "c"), (claim("c"), storage_class()), OK, id="a claim that waits for its first consumer"),
        pytest.param(
            pod("p", "c"),
            (claim("c"), storage_class(mode=None)),
            Status.error('VolumeBindingMode not set for StorageClass "fast"'),
            id="a class that does not say when to bind",
        ),
    ],
)
def test_pre_filter_asks_whether_the_claims_can_be_used_at_all(
    incoming: Pod, objects: tuple[KubeObject, ...], expected: Status
) -> None:
    assert pre_filter(StorageCluster(*NODES, *objects), incoming) == expected
