"""What kubectl sends when a manifest is applied, edited, replaced and applied again: answered as by the real server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from apiserver_serving import TestClient, serve

_SERVICES = "/api/v1/namespaces/default/services"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_MERGE = "application/merge-patch+json"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _service(*ports: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "s"}, "spec": {"ports": list(ports), **spec}}


def _pod_template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "x"}], **spec}}


def test_an_address_changed_beside_a_cleared_list_is_judged_by_itself() -> None:
    # kubectl clears the list when what it applied before had it, and the new manifest has the one address only
    async def body(client: TestClient) -> None:
        await client.ask("POST", _SERVICES, _service({"port": 80}))
        patch = {"spec": {"clusterIP": "10.1.2.3x", "clusterIPs": None}}
        refused = await client.ask("PATCH", f"{_SERVICES}/s", patch, Content_Type=_MERGE)
        assert refused.status == 422
        assert refused.message == (
            'Service "s" is invalid: spec.clusterIPs[0]: Invalid value: "10.1.2.3x": '
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        )
        patch["spec"]["clusterIP"] = "10.1.2.3"
        refused = await client.ask("PATCH", f"{_SERVICES}/s", patch, Content_Type=_MERGE)
        assert refused.message == (
            'Service "s" is invalid: spec.clusterIPs[0]: Invalid value: ["10.1.2.3"]: may not change once set'
        )

    serve(body)


def test_a_node_port_stays_with_the_name_of_its_port() -> None:
    async def body(client: TestClient) -> None:
        before = _service({"name": "web", "port": 80}, {"name": "admin", "port": 81}, type="NodePort")
        made = await client.ask("POST", _SERVICES, before)
        web, admin = (port["nodePort"] for port in made.body["spec"]["ports"])
        after = _service({"name": "admin", "port": 80}, {"name": "web", "port": 8080}, type="NodePort")
        replaced = await client.ask("PUT", f"{_SERVICES}/s", after)
        assert [port["nodePort"] for port in replaced.body["spec"]["ports"]] == [admin, web]
        taken = _service({"name": "web", "port": 80}, {"name": "other", "port": 82, "nodePort": web}, type="NodePort")
        replaced = await client.ask("PUT", f"{_SERVICES}/s", taken)
        given, asked = (port["nodePort"] for port in replaced.body["spec"]["ports"])
        assert asked == web
        assert given not in (web, 0)

    serve(body)


def test_a_node_port_that_a_changed_service_has_twice_is_told_alone() -> None:
    async def body(client: TestClient) -> None:
        ports = [{"port": 80, "nodePort": 30001}, {"port": 81, "nodePort": 30001}]
        await client.ask("POST", _SERVICES, _service(ports[0], type="NodePort"))
        refused = await client.ask("PATCH", f"{_SERVICES}/s", {"spec": {"ports": ports}}, Content_Type=_MERGE)
        assert (refused.status, refused.message) == (500, "duplicate nodePort: {TCP 30001}")
        assert "reason" not in refused.body

    serve(body)


@pytest.mark.parametrize(
    ("kind", "again"),
    [
        pytest.param("Deployment", {"minReadySeconds": 5}, id="deployment"),
        pytest.param("ReplicaSet", {"minReadySeconds": 5}, id="replica set"),
        pytest.param("StatefulSet", {"minReadySeconds": 5}, id="stateful set"),
        pytest.param("DaemonSet", {"template": {"metadata": {"annotations": {"n": "2"}}}}, id="daemon set"),
    ],
)
def test_who_changes_a_workload_is_warned_of_its_template_again(kind: str, again: dict[str, Any]) -> None:
    async def body(client: TestClient) -> None:
        path = f"/apis/apps/v1/namespaces/default/{kind.lower()}s"
        template = _pod_template(nodeSelector={"beta.kubernetes.io/os": "linux"})
        spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
        warned = "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14"
        made = await client.ask("POST", path, {"metadata": {"name": "w"}, "spec": spec})
        assert warned in made.headers["Warning"]
        labelled = {"metadata": {"labels": {"l": "x"}}}
        assert "Warning" not in (await client.ask("PATCH", f"{path}/w", labelled, Content_Type=_MERGE)).headers
        changed = await client.ask("PATCH", f"{path}/w", {"spec": again}, Content_Type=_MERGE)
        assert warned in changed.headers["Warning"]

    serve(body)


def test_a_probe_of_grpc_asks_for_the_nameless_service() -> None:
    async def body(client: TestClient) -> None:
        container = {"name": "c", "image": "x", "livenessProbe": {"grpc": {"port": 9555}}}
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [container]}}
        made = await client.ask("POST", "/api/v1/namespaces/default/pods", pod)
        assert made.body["spec"]["containers"][0]["livenessProbe"]["grpc"] == {"port": 9555, "service": ""}

    serve(body)


def test_a_job_replaced_by_its_manifest_misses_the_selector_that_it_was_given() -> None:
    async def body(client: TestClient) -> None:
        job = {"metadata": {"name": "j"}, "spec": {"template": _pod_template(restartPolicy="Never")}}
        assert (await client.ask("POST", _JOBS, job)).status == 201
        refused = await client.ask("PUT", f"{_JOBS}/j", job)
        assert [cause["message"] for cause in refused.body["details"]["causes"]][:3] == [
            "Required value",
            'Invalid value: {"app":"a"}: `selector` does not match template `labels`',
            "Invalid value: null: field is immutable",
        ]
        fields = ["spec.selector", "spec.template.metadata.labels", "spec.selector", "spec.template"]
        assert [cause["field"] for cause in refused.body["details"]["causes"]] == fields

    serve(body)


def test_the_kept_configuration_is_written_as_kubectl_writes_it() -> None:
    async def body(client: TestClient) -> None:
        path = "/api/v1/namespaces/default/configmaps/c?fieldManager=kubectl"
        metadata = {"name": "c", "namespace": "default"}
        mine = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        with_note = {**mine, "metadata": {**metadata, "annotations": {_LAST_APPLIED: "{}"}}}
        await client.ask("POST", "/api/v1/namespaces/default/configmaps", with_note)
        sent = {**mine, "data": {"run": "a < b && c > d; echo ü \u2028"}}
        applied = await client.ask("PATCH", path, sent, Content_Type="application/apply-patch+yaml")
        kept = applied.body["metadata"]["annotations"][_LAST_APPLIED]
        assert r'{"run":"a \u003c b \u0026\u0026 c \u003e d; echo ü \u2028"}' in kept
        assert json.loads(kept) == sent

    serve(body)


def test_a_write_of_its_status_changes_annotations_of_a_deployment_but_neither_labels_nor_generation() -> None:
    async def body(client: TestClient) -> None:
        spec = {"selector": {"matchLabels": {"app": "a"}}, "template": _pod_template()}
        await client.ask("POST", _DEPLOYMENTS, {"metadata": {"name": "d", "labels": {"app": "a"}}, "spec": spec})
        patch = {"metadata": {"annotations": {"a": "b"}, "labels": {"l": "x"}}}
        told = await client.ask("PATCH", f"{_DEPLOYMENTS}/d/status", patch, Content_Type=_MERGE)
        metadata = told.body["metadata"]
        assert (metadata["annotations"], metadata["labels"], metadata["generation"]) == ({"a": "b"}, {"app": "a"}, 1)
        changed = await client.ask("PATCH", f"{_DEPLOYMENTS}/d", patch, Content_Type=_MERGE)
        metadata = changed.body["metadata"]
        assert (metadata["labels"], metadata["generation"]) == ({"app": "a", "l": "x"}, 1)
        patch["metadata"]["annotations"]["a"] = "c"
        changed = await client.ask("PATCH", f"{_DEPLOYMENTS}/d", patch, Content_Type=_MERGE)
        assert changed.body["metadata"]["generation"] == 2

    serve(body)
