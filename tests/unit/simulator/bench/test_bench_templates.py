"""Template files: parsed once, filled in for every object."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.k8s.model.core import Node, Pod
from kubesched.simulator.bench.object_factory import ObjectFactory
from kubesched.simulator.bench.operations import WorkloadError
from kubesched.simulator.bench.templates import load_template, parse_template

POD = """
apiVersion: v1
kind: Pod
metadata:
  name: pod-{{ .Index }}
  labels:
    app: app-{{ Mod .Index 2 }}
    quoted: "{{ .Index }}"
    "{{ .Index }}": key
spec:
  containers:
  - name: app
    ports:
    - hostPort: 80{{ Mod .Index 2 }}
    resources:
      requests: {cpu: 100m, memory: 1Gi}
"""


def test_plain_scalars_are_read_again_and_quoted_ones_stay_texts() -> None:
    template = parse_template(POD, "pod.yaml")
    manifest = template.manifest(template.values(3, 5))
    assert manifest["metadata"] == {"name": "pod-3", "labels": {"app": "app-1", "quoted": "3", "3": "key"}}
    assert manifest["spec"]["containers"][0]["ports"] == [{"hostPort": 801}]


def test_an_expression_may_open_a_scalar() -> None:
    template = parse_template("{apiVersion: v1, kind: Pod, x: [{{ DivideInt 30 .Count }}Mi]}", "pod.yaml")
    assert template.manifest(template.values(0, 4))["x"] == ["7Mi"]


def test_a_time_stays_a_text() -> None:
    template = parse_template("{apiVersion: v1, kind: Pod, x: 2026-01-01T00:00:00Z}", "pod.yaml")
    assert template.manifest()["x"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("- 1", "pod.yaml: not a Kubernetes object", id="a list"),
        pytest.param("kind: Pod", "pod.yaml: apiVersion: a text is required", id="no version"),
        pytest.param("a: [", "pod.yaml: line 2, column 1: not YAML", id="no YAML"),
        pytest.param("{apiVersion: v1, kind: Pod, x: {{ Foo }}}", "unknown function 'Foo'", id="an unknown function"),
        pytest.param("{apiVersion: v1, kind: Pod, x: \ue000}", "private use area", id="a character that is taken"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_file(text: str, problem: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        parse_template(text, "pod.yaml")
    assert str(refused.value).startswith("pod.yaml")
    assert problem in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"absent\.yaml: No such file or directory"):
        load_template(tmp_path / "absent.yaml")


def test_pods_alike_differ_in_name_and_uid_and_share_nothing() -> None:
    template, factory = parse_template(POD, "pod.yaml"), ObjectFactory()
    first, second, third = (factory.make_pod(template, i, 3, "shop") for i in (0, 1, 2))
    assert [pod.pod_key for pod in (first, second, third)] == ["shop/pod-0", "shop/pod-1", "shop/pod-2"]
    assert len({pod.metadata.uid for pod in (first, second, third)}) == 3
    assert first.spec == third.spec != second.spec
    assert first.spec.containers[0] is not third.spec.containers[0]


def test_a_pod_made_among_many_is_as_one_made_alone() -> None:
    template = parse_template(POD, "pod.yaml")
    for index in range(3):
        alone = ObjectFactory().make(template, index, 3, namespace="shop")
        assert ObjectFactory().make_pod(template, index, 3, "shop") == alone


def test_generated_names_are_numbered() -> None:
    template = parse_template("{apiVersion: v1, kind: Pod, metadata: {generateName: web-}}", "pod.yaml")
    factory = ObjectFactory()
    assert [factory.make_pod(template, 0, 1, ns).name for ns in ("a", "b", "a")] == ["web-0", "web-1", "web-2"]


def test_a_namespace_is_given_only_to_what_lives_in_one() -> None:
    factory = ObjectFactory()
    node = factory.make(parse_template("{apiVersion: v1, kind: Node}", "node.yaml"), namespace="shop")
    pod = factory.make(parse_template("{apiVersion: v1, kind: Pod}", "pod.yaml"), namespace="shop")
    assert isinstance(node, Node)
    assert isinstance(pod, Pod)
    assert (node.key, pod.key) == ("node-0", "shop/pod-0")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("{apiVersion: v1, kind: Secret}", "kind: v1 Secret is not a kind", id="an unknown kind"),
        pytest.param("{apiVersion: v1, kind: Pod, spec: {priority: x}}", "spec.priority: expected int", id="a field"),
    ],
)
def test_an_object_that_cannot_be_made_is_refused_with_file_and_field(text: str, problem: str) -> None:
    with pytest.raises(WorkloadError, match=problem) as refused:
        ObjectFactory().make(parse_template(text, "any.yaml"))
    assert str(refused.value).startswith("any.yaml: ")
