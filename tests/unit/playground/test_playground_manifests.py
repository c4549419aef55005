"""Manifests for a playground: read whole, with validation errors told in one line; and kubeconfigs, merged."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
import yaml

from kubesched.playground.manifests import InvalidManifestError, named_namespaces, read_documents, split_nodes
from kubesched.playground.playground import InvalidKubeconfigError, merge_into, usual_path

TEXT = b"""
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: a}}
- {apiVersion: example.com/v1, kind: Odd, metadata: {name: b}, anything: [1]}
---
---
{"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}}
"""

NO_OBJECT = "a document is not a Kubernetes object: it needs apiVersion and kind"


def test_lists_are_taken_apart_and_nothing_is_left_out() -> None:
    nodes, others = split_nodes(read_documents(TEXT, "f"))
    assert [node["metadata"]["name"] for node in nodes] == ["a"]
    assert [(other["kind"], other.get("anything")) for other in others] == [("Odd", [1]), ("Pod", None)]


def test_namespaces_are_made_that_objects_name_and_nobody_creates() -> None:
    documents = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}},
        *(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{at}", **place}}
            for at, place in enumerate(({"namespace": "shop"}, {"namespace": "lab"}, {}, {"namespace": "shop"}))
        ),
    ]
    assert [made["metadata"]["name"] for made in named_namespaces(documents)] == ["shop"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(b"a: [", "f: line 2, column 1: not YAML: did not find expected node content", id="no YAML"),
        pytest.param(
            b"just text", "f: a document is not a Kubernetes object: it needs apiVersion and kind", id="a text"
        ),
        pytest.param(
            b"kind: Pod", "f: a document is not a Kubernetes object: it needs apiVersion and kind", id="no version"
        ),
        pytest.param(b"{apiVersion: v1, kind: Pod}", "f: a Pod has no metadata.name", id="no name"),
    ],
)
def test_mistakes_name_the_file_and_the_object(text: bytes, problem: str) -> None:
    with pytest.raises(InvalidManifestError) as error:
        read_documents(text, "f")
    assert str(error.value).startswith(problem)
    assert "\n" not in str(error.value)


def _config(name: str, server: str) -> str:
    return yaml.safe_dump(
        {
            "clusters": [{"name": name, "cluster": {"server": server}}],
            "users": [{"name": name, "user": {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
    )


def test_merging_keeps_what_is_there_and_replaces_its_own(tmp_path: Path) -> None:
    mine, added = tmp_path / "sub" / "config", tmp_path / "added"
    added.write_text(_config("kubesched", "https://new"))
    merge_into(mine, added)
    mine.write_text(_config("work", "https://work"))
    merge_into(mine, added)
    merge_into(mine, added)
    found = yaml.safe_load(mine.read_text())
    assert [(one["name"], one["cluster"]["server"]) for one in found["clusters"]] == [
        ("work", "https://work"),
        ("kubesched", "https://new"),
    ]
    assert found["current-context"] == "kubesched"
    assert stat.S_IMODE(mine.stat().st_mode) == 0o600


def test_a_file_that_is_no_kubeconfig_is_left_alone(tmp_path: Path) -> None:
    mine, added = tmp_path / "config", tmp_path / "added"
    added.write_text(_config("kubesched", "https://new"))
    mine.write_text("just text")
    with pytest.raises(InvalidKubeconfigError, match="not a kubeconfig"):
        merge_into(mine, added)
    assert mine.read_text() == "just text"


def test_kubectl_s_own_file_is_the_first_of_the_environment() -> None:
    assert usual_path({"KUBECONFIG": "/a:/b"}) == Path("/a")
    assert usual_path({}).parts[-2:] == (".kube", "config")


def test_merging_writes_to_where_a_symbolic_link_leads(tmp_path: Path) -> None:
    mine, real, added = tmp_path / "config", tmp_path / "dotfiles" / "config", tmp_path / "added"
    real.parent.mkdir()
    real.write_text(_config("work", "https://work"))
    mine.symlink_to(real)
    added.write_text(_config("kubesched", "https://new"))
    merge_into(mine, added)
    assert mine.is_symlink()
    assert [one["name"] for one in yaml.safe_load(real.read_text())["clusters"]] == ["work", "kubesched"]


def test_a_kubeconfig_that_cannot_be_written_is_left_alone_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, added = tmp_path / "config", tmp_path / "added"
    mine.write_text(_config("work", "https://work"))
    added.write_text(_config("kubesched", "https://new"))
    before = mine.read_text()

    def fail(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InvalidKubeconfigError) as refused:
        merge_into(mine, added)
    assert str(refused.value) == f"{mine}: No space left on device"
    assert mine.read_text() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["added", "config"]
