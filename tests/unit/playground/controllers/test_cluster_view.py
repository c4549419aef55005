"""What controllers know: their own writes at once, news in whatever order, and nothing twice."""

from __future__ import annotations

import msgspec
import pytest

from harness.workload_manifests import workload
from kubesched.k8s.model.apps import Deployment
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject, ObjectMeta, OwnerReference
from kubesched.playground.controllers.cluster_view import ClusterView
from kubesched.playground.controllers.whole_objects import DeploymentDocument


def _pod(version: int, *, uid: str = "u1", node: str = "", owner: str = "") -> Pod:
    owners = (OwnerReference(kind="ReplicaSet", name="o", uid=owner, controller=True),) if owner else None
    metadata = ObjectMeta(name="p", namespace="d", uid=uid, resource_version=str(version), owner_references=owners)
    pod = Pod(metadata=metadata)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


def _document(image: str, version: int = 1) -> DeploymentDocument:
    manifest = workload("Deployment", "web")
    manifest["spec"]["template"]["spec"]["containers"][0]["command"] = [image]
    manifest["metadata"] |= {"uid": "u-web", "resourceVersion": str(version)}
    return msgspec.json.decode(msgspec.json.encode(manifest), type=DeploymentDocument)


def test_older_news_does_not_replace_newer() -> None:
    view = ClusterView()
    view.put(_pod(5, node="n"))
    view.put(_pod(4))
    found = view.find(Pod, "d/p")
    assert found is not None and found.spec.node_name == "n"
    assert [pod.name for pod in view.pods_on("n")] == ["p"]


def test_what_was_removed_does_not_come_back_by_late_news() -> None:
    view = ClusterView()
    view.put(_pod(5))
    view.remove(_pod(5))
    view.put(_pod(6))
    assert view.find(Pod, "d/p") is None
    assert view.is_gone("u1")


def test_an_object_made_anew_under_the_same_name_takes_the_place_of_the_old() -> None:
    view = ClusterView()
    heard: list[tuple[str, str]] = []
    view.listen(lambda before, after: heard.append((_uid(before), _uid(after))))
    view.put(_pod(5))
    view.put(_pod(9, uid="u2"))
    assert heard == [("", "u1"), ("u1", ""), ("", "u2")]


def test_owned_objects_follow_their_owner_references() -> None:
    view = ClusterView()
    view.put(_pod(1, owner="o1"))
    assert [pod.name for pod in view.owned("o1", Pod)] == ["p"]
    assert view.pods_without_owner("d") == []
    view.put(_pod(2))
    assert view.owned("o1", Pod) == []
    assert [pod.name for pod in view.pods_without_owner("d")] == ["p"]


@pytest.mark.parametrize(
    ("commands", "are_alike"),
    [
        pytest.param(("a", "a"), True, id="the same template"),
        pytest.param(("a", "b"), False, id="templates that differ in what the model leaves out"),
    ],
)
def test_templates_differ_for_the_rules_when_they_differ_at_all(commands: tuple[str, str], are_alike: bool) -> None:
    templates = []
    for command in commands:
        view = ClusterView()
        view.put(_document(command))
        deployment = view.find(Deployment, "default/web")
        assert deployment is not None
        templates.append(deployment.spec.template)
        container = view.whole(deployment).spec["template"]["spec"]["containers"][0]
        assert container["command"] == [command]
    assert (templates[0] == templates[1]) is are_alike


def _uid(item: KubeObject | None) -> str:
    return "" if item is None else item.metadata.uid
