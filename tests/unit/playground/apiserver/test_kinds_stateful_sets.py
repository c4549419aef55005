"""A stateful set's template is checked as its pods get it: with the volumes of its claims."""

from __future__ import annotations

from typing import Any

import pytest
from written_objects import container, errors, resource_of

from kubesched.playground.apiserver.served_resource import Object


def _stateful_set(mounted: str, **pod: Any) -> Object:
    mounts = [{"name": mounted, "mountPath": "/d"}]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container(volumeMounts=mounts)], **pod}}
    claim: Object = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
    selector = {"matchLabels": {"a": "b"}}
    return {"spec": {"selector": selector, "template": template, "volumeClaimTemplates": [claim]}}


@pytest.mark.parametrize(
    ("mounted", "pod", "expected"),
    [
        pytest.param("data", {}, [], id="the volume of a claim"),
        pytest.param("own", {"volumes": [{"name": "own", "emptyDir": {}}]}, [], id="a volume of its own"),
        pytest.param("data", {"hostname": "Not.A.Name", "subdomain": "_"}, [], id="names that the controller sets"),
        pytest.param(
            "other",
            {},
            ['spec.template.spec.containers[0].volumeMounts[0].name: Not found: "other"'],
            id="a volume that nobody has",
        ),
    ],
)
def test_a_stateful_set_mounts_the_volumes_of_its_claims(mounted: str, pod: Object, expected: list[str]) -> None:
    found = errors(resource_of("apps/v1", "statefulsets"), _stateful_set(mounted, **pod))
    assert found == expected
