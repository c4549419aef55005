"""What a dump holds: one list for snapshots and documents; and what is said of a dump from which kinds are missing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from live_clusters import LiveCluster, Manifest

from kubesched.cli.main import main
from kubesched.k8s.dumped_kinds import ABSENCES, ALL_RESOURCES, kubectl_names
from kubesched.k8s.model.manifests import CLUSTER_KINDS
from kubesched.testing import make

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guides" / "dump.md").read_text()
HINT = "warning: to dump all kinds: kubesched snapshot -o FILE, or see docs/guides/dump.md"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def from_cluster(item: Manifest) -> Manifest:
    """With the uid that a server gives."""
    uid = f"{item['kind']}-{item['metadata']['name']}"
    return {**item, "metadata": {**item["metadata"], "uid": uid}}


def dump(path: Path, *items: Manifest, **fields: Any) -> Path:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", **fields, "items": [*map(from_cluster, items)]}))
    return path


ALWAYS_THERE = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kubernetes", "namespace": "default"}},
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "system-node-critical"}},
)
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}},
}


def asked_for(text: str) -> list[str]:
    """Each `kubectl get KINDS -A -o json` in a text."""
    joined = re.sub(r"\\\n\s*", "", text)
    return re.findall(r"kubectl get (\S+)\s+-A -o json", joined)


@pytest.mark.parametrize("page", ["README.md", "docs/guides/dump.md"])
def test_the_documents_dump_what_a_snapshot_holds(page: str) -> None:
    assert asked_for((ROOT / page).read_text()) == [kubectl_names()]


def test_no_other_page_has_a_dump_command_of_its_own() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        if page.name != "dump.md":
            assert asked_for(page.read_text()) == [], page


def test_the_page_says_of_every_kind_what_follows() -> None:
    rows = dict(re.findall(r"^\| (\w+) \| (.+) \|$", PAGE, re.MULTILINE))
    assert {one.kind.__name__: one.follows for one in ABSENCES}.items() <= rows.items()
    assert {kind for _, kind in CLUSTER_KINDS} <= rows.keys()


def test_a_snapshot_has_every_kind_that_the_server_has(tmp_path: Path) -> None:
    cluster = LiveCluster(tmp_path, [])
    template = {"spec": {"containers": [{"name": "c"}]}}
    specs = {
        "Deployment": {"replicas": 2, "template": template},
        "ResourceQuota": {"hard": {"pods": "3"}},
        "LimitRange": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
        "HorizontalPodAutoscaler": {"maxReplicas": 9, "scaleTargetRef": {"kind": "Deployment", "name": "x"}},
        "CronJob": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}},
    }
    for known in ALL_RESOURCES:
        metadata = {"name": "x", **({"namespace": "default"} if known.namespaced else {})}
        item = {"apiVersion": known.api_version, "kind": known.kind, "metadata": metadata}
        cluster.server.put({**item, "spec": specs[known.kind]} if known.kind in specs else item)
    path = tmp_path / "dump.json"
    result = cluster.run("snapshot", "-o", path)
    assert (result.exit_code, result.stderr) == (0, "")
    saved = json.loads(path.read_text())
    assert {item["kind"] for item in saved["items"]} == {kind for _, kind in CLUSTER_KINDS}
    assert set(saved["kubesched.dev/dumped"]) == {known.full_name for known in ALL_RESOURCES}
    kept = {item["kind"]: item.get("spec") for item in saved["items"]}
    assert {kind: kept[kind] for kind in specs} == specs


def test_a_snapshot_is_used_without_a_warning(tmp_path: Path) -> None:
    cluster = LiveCluster(tmp_path, [from_cluster(make.node("n")), make.pod("p"), CLAIM])
    path = tmp_path / "dump.yaml"
    cluster.run("snapshot", "-o", path)
    assert run("explain", "p", "-f", path).stderr == ""
    assert run("simulate", "-f", path).stderr == ""


def test_what_a_snapshot_was_not_allowed_to_read_is_told_with_what_follows(tmp_path: Path) -> None:
    cluster = LiveCluster(tmp_path, [from_cluster(make.node("n")), make.pod("p")])
    cluster.server.refuse("list", "storageclasses")
    path = tmp_path / "dump.json"
    cluster.run("snapshot", "-o", path)
    expected = f"warning: {path}: StorageClasses were not dumped: claims cannot be provisioned\n"
    assert run("explain", "p", "-f", path).stderr == expected


def test_a_kind_that_others_name_was_not_dumped(tmp_path: Path) -> None:
    path = dump(tmp_path / "dump.json", *ALWAYS_THERE, make.node("n"), make.pod("p"), CLAIM)
    assert run("explain", "p", "-f", path).stderr.splitlines() == [
        f"warning: {path}: no StorageClasses, although PersistentVolumeClaim default/data names fast: not dumped; "
        "claims cannot be provisioned",
        f"warning: {path}: PodDisruptionBudgets, CSIDrivers and VolumeAttachments may be missing, too: "
        "none are assumed",
        HINT,
    ]


def test_a_kind_that_every_cluster_has_was_not_dumped(tmp_path: Path) -> None:
    path = dump(tmp_path / "dump.json", make.node("n"), make.pod("p"), *ALWAYS_THERE[1:])
    told = run("explain", "p", "-f", path).stderr.splitlines()
    assert told[0] == (
        f"warning: {path}: no Namespaces, although every cluster has some: not dumped; "
        "namespace selectors match nothing"
    )
    assert told[-1] == HINT


def test_what_only_simulations_need_is_told_to_them(tmp_path: Path) -> None:
    owner = {"kind": "DaemonSet", "name": "agent", "uid": "u", "apiVersion": "apps/v1", "controller": True}
    pod = make.pod("p", metadata={"ownerReferences": [owner]})
    path = dump(tmp_path / "dump.json", *ALWAYS_THERE, make.node("n"), pod)
    assert run("explain", "p", "-f", path).stderr == ""
    (line, *_) = run("simulate", "-f", path).stderr.splitlines()
    assert "no DaemonSets, although Pod default/p belongs to DaemonSet agent: not dumped; new nodes get no pods" in line


def test_a_dump_that_has_no_trace_of_a_kind_is_believed(tmp_path: Path) -> None:
    path = dump(tmp_path / "dump.json", *ALWAYS_THERE, make.node("n"), make.pod("p"))
    assert run("explain", "p", "-f", path).stderr == ""


def test_manifests_that_somebody_wrote_are_no_dump(tmp_path: Path) -> None:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [make.node("n"), make.pod("p"), CLAIM]}))
    assert run("explain", "p", "-f", path).stderr == ""
