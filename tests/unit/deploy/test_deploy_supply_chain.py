"""What goes into the image is known: components, licences, the base image by its digest, and no unpinned actions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy_files import DEPLOY, ROOT

DIGEST = "sha256:" + "0123456789abcdef" * 4
PERMISSIVE = {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "MIT", "MIT-0", "PSF-2.0", "Zlib"}
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
LOCKED = re.findall(r"^([a-z0-9._-]+)==(\S+)", (ROOT / "requirements-run.lock").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sbom")
    command = [sys.executable, str(ROOT / "tools" / "sbom.py"), "--output", str(folder)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert outcome.returncode == 0, outcome.stderr
    return folder


def _listed(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "kubesched.cdx.json").read_text())
    return found


def test_every_locked_package_is_a_component(written: Path) -> None:
    listed = _listed(written)
    assert (listed["bomFormat"], listed["specVersion"]) == ("CycloneDX", "1.5")
    assert [(one["name"], one["version"]) for one in listed["components"]] == LOCKED
    assert all(one["purl"] == f"pkg:pypi/{one['name']}@{one['version']}" for one in listed["components"])
    assert all(one["properties"] for one in listed["components"]), "with the hashes that the lock allows"
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", listed["serialNumber"])


def test_the_graph_leads_from_us_to_every_component(written: Path) -> None:
    listed = _listed(written)
    graph = {one["ref"]: one["dependsOn"] for one in listed["dependencies"]}
    reached, waiting = set(), [listed["metadata"]["component"]["bom-ref"]]
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            waiting.extend(graph[one])
    assert reached == set(graph)


def test_every_licence_lets_users_do_what_ours_does(written: Path) -> None:
    for one in _listed(written)["components"]:
        (licence,) = one["licenses"]
        parts = set(re.split(r" (?:AND|OR) ", licence["expression"]))
        assert parts <= PERMISSIVE, one["name"]


def test_the_table_and_the_texts_have_every_package(written: Path) -> None:
    table, texts = ((written / name).read_text() for name in ("licences.md", "licence-texts.txt"))
    for name, version in LOCKED:
        assert f"| {name} | {version} | " in table
        assert f"\n{name} {version}: " in texts


def test_the_same_lock_gives_the_same_bytes(written: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "sbom.py"), "--output", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in written.iterdir()
    }


def test_a_package_that_is_not_as_locked_is_told(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_text("click==0.0.1 \\\n    --hash=sha256:" + "0" * 64 + "\n")
    command = [sys.executable, str(ROOT / "tools" / "sbom.py"), "--lock", str(lock), "--output", str(tmp_path / "o")]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert outcome.returncode == 1
    assert re.fullmatch(r"error: click: \S+ is installed, 0\.0\.1 is locked; run `make setup`\n", outcome.stderr)


def _build(tmp_path: Path, *arguments: str, base: str = "", digest: str = DIGEST) -> tuple[int, str, str, Path]:
    """Runs the script in a copy, with a docker that only says what it was asked."""
    work = tmp_path / "work"
    (work / "deploy").mkdir(parents=True)
    script = work / "deploy" / "build-image.sh"
    script.write_bytes((DEPLOY / "build-image.sh").read_bytes())
    script.chmod(0o755)
    programs = tmp_path / "bin"
    programs.mkdir()
    docker = programs / "docker"
    docker.write_text(f'#!/bin/sh\nif [ "$1" = image ]; then echo "python@{digest}"; else echo docker "$@"; fi\n')
    docker.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHON_IMAGE": base}
    outcome = subprocess.run(
        [str(script), *arguments], capture_output=True, text=True, check=False, timeout=60, env=environment
    )
    return outcome.returncode, outcome.stdout, outcome.stderr, work / "deploy" / "base-image.txt"


def test_the_image_is_built_on_a_digest(tmp_path: Path) -> None:
    base = f"python:3.11-slim@{DIGEST}"
    code, said, _, _ = _build(tmp_path, "registry.example.com/kubesched:0.1.0", base=base)
    assert code == 0
    assert f"--build-arg PYTHON_IMAGE={base} --tag registry.example.com/kubesched:0.1.0" in said


@pytest.mark.parametrize(
    "base", ["", "python:3.11-slim", "python:3.11-slim@sha256:abc", f"python@{DIGEST}\nx", f"@{DIGEST}"]
)
def test_a_base_image_without_a_digest_is_refused(tmp_path: Path, base: str) -> None:
    code, said, error, _ = _build(tmp_path, "x", base=base)
    assert (code, said) == (2, "")
    assert error.startswith("error: the base image must be named by its digest")


def test_the_digest_is_renewed_from_the_registry(tmp_path: Path) -> None:
    code, said, _, file = _build(tmp_path, "--renew")
    assert (code, file.read_text()) == (0, f"python:3.11-slim@{DIGEST}\n")
    assert "commit it" in said


def test_a_registry_that_gives_no_digest_changes_nothing(tmp_path: Path) -> None:
    code, _, error, file = _build(tmp_path, "--renew", digest="none")
    assert (code, file.exists()) == (2, False)
    assert error.startswith("error: ")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_uses_only_pinned_actions_and_few_rights(path: Path) -> None:
    text = path.read_text()
    for action in re.findall(r"uses:\s*(\S+)", text):
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), f"{action} is not pinned by a commit"
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert not any("${{" in command for command in commands), "nothing from outside becomes part of a command"


def test_there_is_a_workflow() -> None:
    assert WORKFLOWS
