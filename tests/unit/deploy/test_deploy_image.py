"""The image can be built: a reader's check of deploy/Dockerfile, its context and its locks."""

from __future__ import annotations

import fnmatch
import json
import re
import tomllib
from pathlib import Path

import pytest
from deploy_files import BASE, DEPLOY, OVERLAYS, ROOT, container_of, only, read_one, resources_of

from kubesched.live.serving.settings import DEFAULT_PORT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DEPLOYMENT = only(resources_of(BASE), "Deployment")
BUILDING = [DEPLOY / "Dockerfile", ROOT / "docs" / "guides" / "run-beside-kube-scheduler.md"]
"""Where `docker build` is shown."""
_PIN = re.compile(r"^([a-z0-9.-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)
_NAME = re.compile(r"^[A-Za-z0-9._-]+")


def instructions() -> list[tuple[str, str]]:
    """(instruction, arguments), continued lines joined and comments left out."""
    lines = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage, from its FROM on."""
    found: list[list[tuple[str, str]]] = []
    for instruction in instructions():
        if instruction[0] == "FROM":
            found.append([])
        if found:
            found[-1].append(instruction)
    return found


def copied() -> list[str]:
    """What COPY takes from the context."""
    sources = [rest.split()[:-1] for word, rest in instructions() if word == "COPY" and "--from=" not in rest]
    return [source for group in sources for source in group]


def pins(lock: str) -> dict[str, tuple[str, frozenset[str]]]:
    """(version, hashes) of each package."""
    found = _PIN.findall((ROOT / lock).read_text())
    return {name: (version, frozenset(re.findall(r"[0-9a-f]{64}", hashes))) for name, version, hashes in found}


def is_ignored(path: str) -> bool:
    """By .dockerignore, where the last pattern that matches decides."""
    ignored = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern = line.removeprefix("!").replace("**/", "*")
            if fnmatch.fnmatch(path, pattern):
                ignored = not line.startswith("!")
    return ignored


def test_there_are_only_instructions_that_docker_knows() -> None:
    known = {"ARG", "FROM", "ENV", "WORKDIR", "RUN", "COPY", "LABEL", "USER", "EXPOSE", "ENTRYPOINT"}
    assert {word for word, _ in instructions()} <= known
    assert instructions()[0] == ("ARG", "PYTHON_IMAGE"), "no default: a tag can be moved"


def test_both_stages_have_the_same_python() -> None:
    assert [stage[0][1] for stage in stages()] == ["${PYTHON_IMAGE} AS build", "${PYTHON_IMAGE}"]


@pytest.mark.parametrize("source", copied())
def test_what_is_copied_exists_and_is_in_the_context(source: str) -> None:
    assert (ROOT / source).exists()
    assert not is_ignored(source)


@pytest.mark.parametrize("path", [".git", ".venv", "tests", "docs", "requirements.lock", "src/kubesched/__pycache__"])
def test_nothing_else_is_in_the_context(path: str) -> None:
    assert is_ignored(path)


def test_the_last_stage_installs_nothing_and_runs_as_nobody() -> None:
    last = stages()[-1]
    commands = " ".join(rest for word, rest in last if word == "RUN")
    assert "install" not in commands.replace("uninstall", "")
    assert [rest for word, rest in last if word == "COPY"] == ["--from=build /opt/kubesched /opt/kubesched"]
    security = DEPLOYMENT["spec"]["template"]["spec"]["securityContext"]
    assert ("USER", f"{security['runAsUser']}:{security['runAsGroup']}") in last
    assert ("EXPOSE", str(DEFAULT_PORT)) in last


def test_the_image_runs_the_scheduler() -> None:
    (entry,) = [rest for word, rest in instructions() if word == "ENTRYPOINT"]
    assert json.loads(entry) == ["kubesched", "run"]
    assert "kubesched" in PROJECT["scripts"]
    assert "command" not in container_of(DEPLOYMENT)


def test_packages_come_by_their_hashes() -> None:
    commands = [part for word, rest in stages()[0] if word == "RUN" for part in rest.split("&&")]
    installs = [part for part in commands if re.search(r"\bpip\b.* (install|wheel) ", part)]
    assert len(installs) == 4
    assert all("--require-hashes" in part or "--no-index" in part for part in installs)


@pytest.mark.parametrize("lock", ["requirements-run.lock", "requirements-build.lock"])
def test_a_lock_of_the_image_is_part_of_the_one_that_tests_run_with(lock: str) -> None:
    ours, tested = pins(lock), pins("requirements.lock")
    assert len(ours) == (ROOT / lock).read_text().count("==")
    assert {name: tested.get(name) for name in ours} == ours, "run `make lock`"


def test_the_lock_of_what_runs_has_all_dependencies_and_no_tools() -> None:
    locked, extras = pins("requirements-run.lock").keys(), PROJECT["optional-dependencies"]
    runs = {_NAME.findall(line)[0].lower() for line in (*PROJECT["dependencies"], *extras["re2"])}
    assert runs <= locked
    tools = {_NAME.findall(line)[0].lower() for line in extras["dev"]} - runs
    assert locked & (tools | {"pip", "setuptools", "wheel"}) == set()


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_an_overlay_says_where_the_image_of_this_version_is(overlay: Path) -> None:
    (image,) = read_one(overlay / "kustomization.yaml")["images"]
    assert image["name"] == container_of(DEPLOYMENT)["image"]
    assert image["newTag"] == PROJECT["version"]


@pytest.mark.parametrize("path", BUILDING, ids=lambda path: path.name)
def test_the_image_that_is_built_is_the_one_that_overlays_name(path: Path) -> None:
    images = [read_one(overlay / "kustomization.yaml")["images"][0] for overlay in OVERLAYS]
    (expected,) = {f"{image['newName']}:{image['newTag']}" for image in images}
    named = re.findall(r"[a-z.]+/kubesched:[^\s`\"']+", path.read_text())
    assert set(named) == {expected}
