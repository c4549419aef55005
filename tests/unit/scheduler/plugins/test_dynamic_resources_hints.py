"""DynamicResources: which changes are worth another attempt."""

from __future__ import annotations

import pytest
from device_clusters import DeviceCluster, claim, device_class, held, node, pod, read_claim, read_pod, request

from kubesched.framework.events import ActionType, EventResource, Hint, HintFunction
from kubesched.testing.make import Manifest

TEMPLATE = {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}]}
MINE = claim("mine", request())


def hint(world: DeviceCluster, resource: EventResource) -> HintFunction:
    (found,) = [entry.hint for entry in world.plugin.events_to_register() if entry.event.resource is resource]
    assert found is not None
    return found


def test_events_cover_all_that_the_plugin_looks_at() -> None:
    world = DeviceCluster(node("n"))
    registered = {entry.event.resource: entry for entry in world.plugin.events_to_register()}
    assert {resource: entry.hint is not None for resource, entry in registered.items()} == {
        EventResource.NODE: False,
        EventResource.RESOURCE_CLAIM: True,
        EventResource.POD: True,
        EventResource.DEVICE_CLASS: False,
        EventResource.RESOURCE_SLICE: False,
    }
    on_node = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
    assert registered[EventResource.NODE].event.action == on_node


@pytest.mark.parametrize(
    ("claims", "old", "new", "expected"),
    [
        pytest.param([], None, claim("other", request()), Hint.SKIP, id="the pod's own is still missing"),
        pytest.param([MINE], None, MINE, Hint.QUEUE, id="the pod's own came"),
        pytest.param([MINE], None, claim("other", request()), Hint.SKIP, id="another one came"),
        pytest.param([MINE], MINE, MINE, Hint.SKIP, id="nothing that matters changed"),
        pytest.param([MINE], MINE, held("mine", "n/d"), Hint.QUEUE, id="the pod's own was allocated"),
        pytest.param(
            [MINE], held("other", "n/d"), claim("other", request()), Hint.QUEUE, id="another one gave its devices back"
        ),
        pytest.param(
            [MINE], held("other", "n/d"), held("other", "n/d", by=("x",)), Hint.SKIP, id="another one is used"
        ),
    ],
)
def test_claims_that_change(claims: list[Manifest], old: Manifest | None, new: Manifest, expected: Hint) -> None:
    world = DeviceCluster(node("n"), device_class(), pod("mine"), *claims)
    ask = hint(world, EventResource.RESOURCE_CLAIM)
    assert ask(world.pod(), None if old is None else read_claim(old), read_claim(new)) is expected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(pod(spec=TEMPLATE), Hint.SKIP, id="its claim is still not known"),
        pytest.param(
            pod(spec=TEMPLATE, status={"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "none"}]}),
            Hint.SKIP,
            id="its claim is known by name only",
        ),
        pytest.param(
            pod(spec=TEMPLATE, status={"resourceClaimStatuses": [{"name": "c"}]}), Hint.QUEUE, id="it needs no claim"
        ),
        pytest.param(pod(name="other"), Hint.SKIP, id="another pod"),
    ],
)
def test_pods_that_change(changed: Manifest, expected: Hint) -> None:
    world = DeviceCluster(node("n"), pod(spec=TEMPLATE))
    assert hint(world, EventResource.POD)(world.pod(), None, read_pod(changed)) is expected
