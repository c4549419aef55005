"""The guides lead to files that exist, and to objects by the names they have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from deploy_files import BASE, DEPLOY, ROOT, container_of, only, read_one, resources_of

GUIDES = [ROOT / "docs" / "guides" / f"{name}-kube-scheduler.md" for name in ("replace", "run-beside")]
PAGES = [*GUIDES, ROOT / "docs" / "reference" / "rbac.md", DEPLOY / "README.md"]
OBJECTS = resources_of(BASE)
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
each_guide = pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)


def anchors(page: Path) -> set[str]:
    headings = [heading.lower() for heading in _HEADING.findall(page.read_text())]
    return {re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in headings}


def test_there_is_a_guide_for_each_overlay() -> None:
    overlays = sorted(path.name for path in (DEPLOY / "overlays").iterdir())
    assert overlays == ["beside", "replace"]
    assert all(path.exists() for path in GUIDES)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_to_a_page_and_a_heading(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text()):
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), f"{target}#{anchor}"


@each_guide
def test_files_that_a_guide_names_exist(guide: Path) -> None:
    named = set(re.findall(r"\bdeploy/[\w./-]*\w", guide.read_text()))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@each_guide
def test_objects_that_a_guide_names_are_ours_or_of_kubeadm(guide: Path) -> None:
    text = guide.read_text()
    deployment = only(OBJECTS, "Deployment")["metadata"]
    assert set(re.findall(r"deployment/([\w-]+)", text)) == {deployment["name"]}
    selectors = set(re.findall(r"-n kube-system .*-l ([\w./=-]+)", text))
    ours = f"app.kubernetes.io/name={deployment['labels']['app.kubernetes.io/name']}"
    assert ours in selectors
    assert selectors <= {ours, "component=kube-scheduler"}


@each_guide
def test_yaml_in_a_guide_can_be_read(guide: Path) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", guide.read_text(), re.MULTILINE | re.DOTALL)
    documents = [yaml.safe_load(block) for block in blocks]
    (images,) = [document["images"] for document in documents if "images" in document]
    overlay = "beside" if "beside" in guide.stem else "replace"
    assert images == read_one(DEPLOY / "overlays" / overlay / "kustomization.yaml")["images"]
    assert images[0]["name"] == container_of(only(OBJECTS, "Deployment"))["image"]
