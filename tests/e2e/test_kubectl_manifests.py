"""A real kubectl carries whole manifests to `kubesched up` and back: nothing changes by itself, and nothing is lost."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from playground_process import WITHIN_S, RunningPlayground, Said, playground, why_no_kubectl

_WHY_NOT = why_no_kubectl()
pytestmark = pytest.mark.skipif(bool(_WHY_NOT), reason=_WHY_NOT)

_DATA = Path(__file__).parents[1] / "data"

_NEVER_UNCHANGED = {
    "many-kinds": {
        "secret/registry",
        "pod/lone",
        "statefulset.apps/db",
        "poddisruptionbudget.policy/web",
        "networkpolicy.networking.k8s.io/web",
        "resourceclaimtemplate.resource.k8s.io/gpu",
        "resourceclaim.resource.k8s.io/gpu",
    },
    "monitoring": {
        "deployment.apps/grafana",
        "deployment.apps/prometheus-adapter",
        "poddisruptionbudget.policy/alertmanager-main",
        "poddisruptionbudget.policy/prometheus-adapter",
        "poddisruptionbudget.policy/prometheus-k8s",
    },
}
"""What kubectl calls configured however often it is applied, to kube-apiserver too: its patch changes nothing."""

_EDITOR = """
import sys, yaml
path = sys.argv[1]
with open(path) as file:
    found = yaml.safe_load(file)
for item in found["items"] if found["kind"] == "List" else [found]:
    item["metadata"].setdefault("annotations", {})["noted"] = "in an editor"
with open(path, "w") as file:
    yaml.safe_dump(found, file)
"""


def _definition(plural: str, kind: str) -> dict[str, Any]:
    """Enough of the Prometheus operator's kinds for its objects to be kept."""
    open_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": open_object, "status": open_object}}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": schema}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlayground]:
    with playground(tmp_path_factory.mktemp("manifests"), "--nodes", "3", "--cpu", "64") as running:
        definitions = [_definition("prometheuses", "Prometheus"), _definition("alertmanagers", "Alertmanager")]
        running.does("apply -f -", yaml.safe_dump_all(definitions))
        running.does("wait --for=condition=Established crd --all --timeout=60s")
        yield running


@dataclass(frozen=True)
class Manifest:
    """The objects of a file, and kubectl commands about them in one namespace."""

    cluster: RunningPlayground
    objects: list[dict[str, Any]]
    namespace: str

    def kubectl(self, *words: str, objects: list[dict[str, Any]] | None = None, **environment: str) -> Said:
        text = yaml.safe_dump_all(self.objects if objects is None else objects)
        return self.cluster.kubectl(*words, "--namespace", self.namespace, stdin=text, **environment)

    def all_are(self, outcome: str, *words: str, objects: list[dict[str, Any]] | None = None, **more: str) -> None:
        """One line for each object, and each with this outcome."""
        said = self.kubectl(*words, objects=objects, **more)
        lines = said.out.splitlines()
        assert said.code == 0, said.all
        assert [line for line in lines if outcome not in line] == []
        assert len(lines) == len(self.objects)

    def stays_under(self, objects: list[dict[str, Any]]) -> None:
        """Applied once more, they are unchanged."""
        said = self.kubectl("apply", "-f", "-", objects=objects)
        outcomes = dict(line.rsplit(" ", 1) for line in said.out.splitlines())
        assert (said.code, len(outcomes)) == (0, len(objects)), said.all
        assert {name for name, one in outcomes.items() if one != "unchanged"} == _NEVER_UNCHANGED[self.namespace]
        assert set(outcomes.values()) <= {"unchanged", "configured"}


@pytest.fixture(
    params=[
        pytest.param(("kubectl/many-kinds.yaml", "many-kinds"), id="one of each kind"),
        pytest.param(("manifests/kube-prometheus.yaml", "monitoring"), id="Prometheus and its own kinds"),
    ]
)
def manifest(cluster: RunningPlayground, request: pytest.FixtureRequest) -> Iterator[Manifest]:
    path, namespace = request.param
    found = [item for item in yaml.safe_load_all((_DATA / path).read_text()) if item and item["kind"] != "Namespace"]
    cluster.does(f"create namespace {namespace}")
    cluster.until(f"get serviceaccounts --namespace {namespace}", "default")
    yield Manifest(cluster, found, namespace)
    cluster.does(f"delete namespace {namespace}")


def _with_label(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**item, "metadata": {**item["metadata"], "labels": {**item["metadata"].get("labels", {}), "changed": "yes"}}}
        for item in objects
    ]


def test_manifests_go_there_and_back(manifest: Manifest, tmp_path: Path) -> None:
    new = manifest.kubectl("diff", "-f", "-")
    assert (new.code, new.err) == (1, "")
    manifest.all_are(" created", "apply", "-f", "-")
    manifest.stays_under(manifest.objects)
    same = manifest.kubectl("diff", "-f", "-")
    assert (same.code, same.all) == (0, "")

    changed = _with_label(manifest.objects)
    differing = manifest.kubectl("diff", "-f", "-", objects=changed)
    assert differing.code == 1, differing.err
    assert differing.out.splitlines().count('+    changed: "yes"') == len(changed)
    manifest.all_are(" configured", "apply", "-f", "-", objects=changed)

    file, editor = tmp_path / "manifest.yaml", tmp_path / "editor.py"
    file.write_text(yaml.safe_dump_all(manifest.objects))
    editor.write_text(_EDITOR)
    manifest.all_are(" edited", "edit", "-f", str(file), KUBE_EDITOR=f"{sys.executable} {editor}")
    manifest.stays_under(changed)

    _carried_back(manifest, str(file))
    kept = yaml.safe_load(manifest.kubectl("get", "-f", str(file), "-o", "yaml").out)["items"]
    assert {item["metadata"]["annotations"]["noted"] for item in kept} == {"in an editor"}
    assert {item["metadata"]["labels"]["changed"] for item in kept} == {"yes"}

    manifest.all_are(" deleted", "delete", "-f", str(file))
    assert manifest.kubectl("get", "-f", str(file), "--ignore-not-found").all == ""


def _carried_back(manifest: Manifest, file: str) -> None:
    """`kubectl get -o yaml | kubectl apply -f -`; again where a controller wrote meanwhile, as a user would."""
    deadline_s = time.monotonic() + WITHIN_S
    while True:
        held = manifest.kubectl("get", "-f", file, "-o", "yaml").out
        said = manifest.cluster.kubectl("apply", "-f", "-", stdin=held)
        if said.code == 0 or "the object has been modified" not in said.err or time.monotonic() > deadline_s:
            break
    assert said.code == 0, said.all
    assert len(said.out.splitlines()) == len(manifest.objects)


def test_manifests_are_applied_by_the_server(manifest: Manifest) -> None:
    manifest.all_are(" serverside-applied", "apply", "--server-side", "-f", "-")
    manifest.all_are(" serverside-applied", "apply", "--server-side", "-f", "-")
    differing = manifest.kubectl("diff", "--server-side", "-f", "-", objects=_with_label(manifest.objects))
    assert differing.code == 1, differing.err
    assert differing.out.splitlines().count('+    changed: "yes"') == len(manifest.objects)
