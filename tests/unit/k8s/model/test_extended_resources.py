"""Which device class stands behind a resource."""

from __future__ import annotations

import pytest

from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.resource import DeviceClass, DeviceClassSpec, device_class_of

GPU = "example.com/gpu"


def _class(name: str, declares: str | None = None, created: str | None = None) -> DeviceClass:
    return DeviceClass(
        metadata=ObjectMeta(name=name, creation_timestamp=created),
        spec=DeviceClassSpec(extended_resource_name=declares),
    )


@pytest.mark.parametrize(
    ("resource", "classes", "expected"),
    [
        pytest.param(GPU, [], None, id="no classes"),
        pytest.param(GPU, [_class("a")], None, id="a class that declares no resource"),
        pytest.param(GPU, [_class("a", "example.com/nic"), _class("b", GPU)], "b", id="by the declared name"),
        pytest.param("deviceclass.resource.kubernetes.io/a", [_class("a", GPU)], "a", id="by the class's own name"),
        pytest.param(
            "deviceclass.resource.kubernetes.io/b", [_class("a", GPU)], None, id="a class that does not exist"
        ),
        pytest.param(
            GPU,
            [_class("a", GPU, "2026-01-01T00:00:00Z"), _class("b", GPU, "2026-01-02T00:00:00Z")],
            "b",
            id="the newer of two takes over",
        ),
        pytest.param(
            GPU,
            [_class("b", GPU, "2026-01-01T00:00:00Z"), _class("a", GPU, "2026-01-01T00:00:00Z")],
            "a",
            id="of two equally old ones the first by name",
        ),
        pytest.param(
            GPU, [_class("a", GPU), _class("b", GPU, "2026-01-01T00:00:00Z")], "b", id="without a time is the oldest"
        ),
    ],
)
def test_a_device_class_is_found_by_resource(resource: str, classes: list[DeviceClass], expected: str | None) -> None:
    found = device_class_of(resource, {item.name: item for item in classes})
    assert (found and found.name) == expected
