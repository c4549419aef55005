"""Every command that README and docs print is run as it is printed, or is on the one list of those that cannot be.

Commands on files run in a directory that has the files of the page; those on a cluster, against a playground.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playground_process import RunningPlayground, playground, why_no_kubectl

from kubesched.testing import make

ROOT = Path(__file__).parents[2]
LESSONS = ROOT / "docs" / "learn"
"""Each a walk of many steps on a playground, with tests of its own."""
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if LESSONS not in page.parents)]
WITHIN_S = 120

NOT_RUN: tuple[tuple[str, str], ...] = (
    (r"^make ", "runs the tests, builds an image, or starts what other tests start"),
    (r"^git clone |^pip install ", "needs the network"),
    (r"^(sudo|docker|helm) ", "needs root, a registry or a cluster with pods that run"),
    (r"^(POD|LEADER|TOKEN)=|^curl |port-forward|create --raw", "needs kubesched as pods of a real cluster, or its key"),
    (r"^kubectl (-n kube-system|.* -k deploy/)", "needs kubesched as pods of a real cluster"),
    (r"schedulerName=kubesched|app=hello|^kubectl get events|pod hello|kubectl run hello", "follows on those"),
    (r"^kubesched (up|run|extender) (?!--once)|--watch$", "does not end by itself; tests of its own start it"),
    (r"^python examples/controller|team-a", "the controller does not end by itself; a test of its own runs it"),
    (r"^kubesched bench basic (affinity|--nodes 20000|-o json)", "takes minutes"),
    (r"--context prod", "a context of somebody's own"),
    (r" -w$", "does not end by itself; the walk with kubectl follows such a list"),
    (r"broken\.py|invalid\.yaml", "fails on purpose; the page's own test compares what it prints"),
    (
        r"kubelet=stopped|drain node-0|uncordon|rollout|set image",
        "the walk with kubectl does it and looks at the outcome",
    ),
    (r"plugin list", "lists the plugins of whoever runs it"),
    (
        r"policy\.json|old-scheduler\.yaml|extender\.token",
        "a file of somebody's own; other tests have such",
    ),
    (r"shop/web-7f9c", "a pod of somebody's own"),
    (r"^kubesched up --once --nodes 10 -f manifests/", "manifests of somebody's own; its tests run it on others"),
    (r"plugin (new|check)", "the plugin tools' own tests run both"),
)
"""What is not run, and why."""

ON_A_CLUSTER = re.compile(
    r"^(kubectl |(\.venv/bin/)?kubesched snapshot|(\.venv/bin/)?kubesched explain \S+( --live.*)?$)|--live"
)


@dataclass(frozen=True, slots=True)
class Printed:
    page: Path
    command: str

    @property
    def is_on_a_cluster(self) -> bool:
        return ON_A_CLUSTER.search(self.command) is not None

    @property
    def why_not(self) -> str:
        return next((reason for pattern, reason in NOT_RUN if re.search(pattern, self.command)), "")

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.command}"


def printed(page: Path) -> Iterator[Printed]:
    blocks = re.findall(r"^ *```(console|sh|shell|bash)\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL)
    for language, body in blocks:
        lines = [line.strip() for line in body.replace("\\\n", "\0").splitlines()]
        if language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        commands = (re.sub(r"\s+# .*$", "", line.replace("\0", "\\\n")) for line in lines)
        yield from (Printed(page, command) for command in commands if command and not command.startswith("#"))


ALL = [one for page in PAGES for one in printed(page)]
RUN = [one for one in ALL if not one.why_not]


def test_most_commands_are_found_and_no_reason_is_left_over() -> None:
    assert len(ALL) > 100
    for pattern, reason in NOT_RUN:
        assert any(re.search(pattern, one.command) for one in ALL), f"nothing is left that {reason}: {pattern}"


def prepared(folder: Path, page: Path) -> None:
    """The repository's files, and those that the page shows under a name of their own."""
    for name in ("examples", "deploy"):
        (folder / name).symlink_to(ROOT / name)
    for name in ("cluster.yaml", "workload.yaml"):
        (folder / name).write_text((ROOT / "examples" / "simulate" / name).read_text())
    (folder / "pod.yaml").write_text(str(make.pod("new", namespace="shop")))
    (folder / "cluster.json").symlink_to(ROOT / "examples" / "explain" / "cluster.yaml")
    named = re.findall(r"^```(?:python|yaml)\n# ([\w.]+)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    for name, text in named:
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_text(text)


def run(one: Printed, folder: Path, **environment: str) -> None:
    beside = str(Path(sys.executable).parent)
    path = f"{beside}:{os.environ['PATH']}"
    command = one.command.replace(".venv/bin/", f"{beside}/")
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, **environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, f"{one}\n{done.stdout}{done.stderr}"


ON_FILES = [one for one in RUN if not one.is_on_a_cluster]


@pytest.mark.parametrize("page", sorted({one.page for one in ON_FILES}), ids=lambda page: page.stem)
def test_commands_on_files_work_as_printed(page: Path, tmp_path: Path) -> None:
    prepared(tmp_path, page)
    for one in ON_FILES:
        if one.page == page:
            if "cluster.json" in one.command:
                (tmp_path / "cluster.json").unlink()
                (tmp_path / "cluster.json").symlink_to(ROOT / "examples" / "explain")
            run(one, tmp_path)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlayground]:
    with playground(tmp_path_factory.mktemp("printed"), "--in-memory") as running:
        yield running


@pytest.mark.skipif(why_no_kubectl() != "", reason=why_no_kubectl() or "kubectl is there")
def test_commands_on_a_cluster_work_as_printed(cluster: RunningPlayground, tmp_path: Path) -> None:
    prepared(tmp_path, ROOT / "README.md")
    cluster.does("create namespace shop")
    cluster.does("create deployment web --image=nginx -n shop")
    cluster.does('run report --image=nginx -n shop --overrides={"spec":{"nodeSelector":{"disk":"tape"}}}')
    cluster.until("get nodes", "Ready")
    for one in RUN:
        if one.is_on_a_cluster:
            command = one.command.replace("general-2", "node-0")
            if command.startswith("kubectl create deployment web"):
                cluster.kubectl("delete", "deployment", "web", "--ignore-not-found")
            run(Printed(one.page, command), tmp_path, **cluster.environment())
