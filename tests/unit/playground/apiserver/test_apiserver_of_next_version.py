"""A server of v1.37: what it tells about itself, and what it makes of objects that one of v1.36 stored.

What it answers to requests for pod groups is compared with kube-apiserver v1.37.0-rc.1 in `test_apiserver_replay`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from apiserver_serving import running

from kubesched.playground.apiserver.kinds.registry import ALL_KINDS, NEXT, TODAY, kinds_of

_GROUP = "scheduling.k8s.io"
_OLD = f"/apis/{_GROUP}/v1alpha2/namespaces/default"
_NEW = f"/apis/{_GROUP}/v1beta1/namespaces/default"
_NEWEST = f"/apis/{_GROUP}/v1alpha3/namespaces/default"


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": f"{_GROUP}/v1alpha2", "kind": kind, "metadata": {"name": name}, "spec": spec}


def test_only_the_kinds_of_pod_groups_are_others() -> None:
    def names(version: str) -> set[tuple[str, str]]:
        return {(kind.api_version, kind.kind) for kind in kinds_of(version)}

    assert kinds_of(TODAY) is ALL_KINDS
    assert names(TODAY) - names(NEXT) == {(f"{_GROUP}/v1alpha2", kind) for kind in ("PodGroup", "Workload")}
    assert names(NEXT) - names(TODAY) == {
        (f"{_GROUP}/v1beta1", "PodGroup"),
        (f"{_GROUP}/v1beta1", "Workload"),
        (f"{_GROUP}/v1alpha3", "PodGroup"),
        (f"{_GROUP}/v1alpha3", "Workload"),
        (f"{_GROUP}/v1alpha3", "CompositePodGroup"),
    }


def test_it_says_which_version_it_is() -> None:
    async def body() -> list[Any]:
        async with running(version=NEXT) as client:
            version = (await client.ask("GET", "/version")).body
            document = (await client.ask("GET", f"/openapi/v3/apis/{_GROUP}/v1alpha3")).body
            return [version, document]

    version, document = asyncio.run(body())
    assert (version["minor"], version["emulationMinor"]) == ("37", "37")
    assert version["gitVersion"].startswith("v1.37.")
    assert "io.k8s.api.scheduling.v1alpha3.CompositePodGroup" in document["components"]["schemas"]


def test_groups_of_v1_36_are_read_in_the_fields_of_v1_37(tmp_path: Path) -> None:
    template = {"name": "t", "schedulingPolicy": {"basic": {}}, "disruptionMode": "PodGroup"}
    group = {
        "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "disruptionMode": "PodGroup",
    }

    async def write() -> None:
        async with running(tmp_path) as client:
            for kind, name, spec in (("Workload", "w", {"podGroupTemplates": [template]}), ("PodGroup", "g", group)):
                answer = await client.ask("POST", f"{_OLD}/{kind.lower()}s", _object(kind, name, spec))
                assert answer.status == 201, answer

    async def read() -> list[Any]:
        async with running(tmp_path, version=NEXT) as client:
            paths = (f"{_NEW}/podgroups/g", f"{_NEWEST}/podgroups/g", f"{_NEW}/workloads/w")
            found = [(await client.ask("GET", path)).body for path in paths]
            change = {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
            headers = {"Content-Type": "application/merge-patch+json"}
            changed = await client.ask("PATCH", f"{_NEW}/podgroups/g", change, **headers)
            assert changed.status == 200, changed
            return [*found, changed.body]

    asyncio.run(write())
    newer, newest, workload, changed = asyncio.run(read())
    assert newer["spec"]["disruptionMode"] == {"all": {}}
    assert newer["spec"]["workloadRef"] == {"workloadName": "w", "templateName": "t"}
    assert newest["spec"] == newer["spec"]
    assert workload["spec"]["podGroupTemplates"][0]["disruptionMode"] == {"all": {}}
    assert changed["spec"] == {**newer["spec"], "schedulingPolicy": {"gang": {"minCount": 3}}}
