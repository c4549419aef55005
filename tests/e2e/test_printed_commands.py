"""Every command that README and docs print is run as it is printed, or is on the one list of those that cannot be.

Commands on files run in a directory that has the files of the page; those on a cluster, against a playground.
"""

from __future__ import annotations

import os
import re
import shutil
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
    (r"^(sudo|docker|helm) ", "needs root, a registry or Helm"),
    (r"^(POD|LEADER)=|^curl |port-forward|create --raw", "needs kubesched as pods that really run, or its key"),
    (r"get lease|delete lease|component=kube-scheduler", "needs schedulers as pods that really run, or static pods"),
    (r"^kubesched (run|extender) (?!--once)", "needs its own server and files; tests of its own start it"),
    (r"^kubesched up (?!--once)", "starts a playground that does not end by itself; tests of its own start it"),
    (r"--watch$", "waits for changes of the files; a test of its own makes some"),
    (r"^python examples/controller|get configmap greeting", "does not end by itself; a test of its own runs it"),
    (r"kubelet=stopped", "the walk with kubectl does it and looks at the outcome, a minute later"),
)
"""What is not run, and why."""

ENDLESS = re.compile(r" -w$")
"""Commands that go on until somebody stops them: they must not end, or fail, by themselves."""
STOPPED_AFTER_S = 3

FAILS = {
    r"^kubectl diff ": 1,  # there is a difference
    r"invalid\.yaml": 2,
}
"""Commands whose page says that they fail, and the exit code."""

ON_A_CLUSTER = re.compile(
    r"^(kubectl |TOKEN=|(\.venv/bin/)?kubesched snapshot|(\.venv/bin/)?kubesched explain \S+( --live.*)?$)"
    r"|--live|-f dump\.json$|--context prod"
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
    assert len(RUN) > 95
    for pattern, reason in NOT_RUN:
        assert any(re.search(pattern, one.command) for one in ALL), f"nothing is left that {reason}: {pattern}"


def prepared(folder: Path, page: Path) -> None:
    """The repository's files, those that the page shows under a name of their own, and those that a reader has."""
    for name in ("examples", "deploy"):
        (folder / name).symlink_to(ROOT / name)
    for name in ("cluster.yaml", "workload.yaml"):
        (folder / name).write_text((ROOT / "examples" / "simulate" / name).read_text())
    (folder / "pod.yaml").write_text(str(make.pod("new", namespace="shop")))
    (folder / "cluster.json").mkdir()
    for path in (ROOT / "examples" / "explain").iterdir():
        (folder / "cluster.json" / path.name).symlink_to(path)
    (folder / "cluster.json" / "web-1.yaml").write_text(str(make.pod("web-1", namespace="shop")))
    (folder / "policy.json").write_text('{"kind": "Policy", "apiVersion": "v1"}')
    (folder / "old-scheduler.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n"
    )
    (folder / "manifests").mkdir()
    (folder / "manifests" / "web.yaml").write_text(str(make.pod("web")))
    named = re.findall(r"^```(?:python|yaml)\n# ([\w.]+)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    for name, text in named:
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_text(text)


def problem_with(one: Printed, folder: Path, **environment: str) -> str:
    """What the command says if it does not end as its page has it; "" if it does."""
    beside = str(Path(sys.executable).parent)
    path = f"{beside}:{os.environ['PATH']}"
    command = one.command.replace(".venv/bin/", f"{beside}/")
    expected = next((code for pattern, code in FAILS.items() if re.search(pattern, one.command)), 0)
    if ENDLESS.search(command):
        command, expected = f"timeout {STOPPED_AFTER_S} {command}", 124
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, **environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    if done.returncode == expected:
        return ""
    return f"{one}: exit code {done.returncode}, not {expected}\n{done.stdout}{done.stderr}"


ON_FILES = [one for one in RUN if not one.is_on_a_cluster]


@pytest.mark.parametrize("page", sorted({one.page for one in ON_FILES}), ids=lambda page: page.stem)
def test_commands_on_files_work_as_printed(page: Path, tmp_path: Path) -> None:
    prepared(tmp_path, page)
    problems = [problem_with(one, tmp_path) for one in ON_FILES if one.page == page]
    assert not any(problems), "\n".join(filter(None, problems))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlayground]:
    with playground(tmp_path_factory.mktemp("printed"), "--in-memory") as running:
        yield running


@pytest.mark.skipif(why_no_kubectl() != "", reason=why_no_kubectl() or "kubectl is there")
def test_commands_on_a_cluster_work_as_printed(cluster: RunningPlayground, tmp_path: Path) -> None:
    prepared(tmp_path, ROOT / "README.md")
    shutil.rmtree(tmp_path / "cluster.json")
    environment = cluster.environment()
    cluster.does("create namespace shop")
    cluster.does("create deployment web --image=nginx -n shop")
    for name in ("report", "web-7f9c"):
        cluster.does(f'run {name} --image=nginx -n shop --overrides={{"spec":{{"nodeSelector":{{"disk":"tape"}}}}}}')
    of_us = [cluster.does(f"config view -o jsonpath={{.{sort}[0].name}}") for sort in ("clusters", "users")]
    cluster.does("config set-context prod --cluster={} --user={}".format(*of_us))
    cluster.until("get nodes", "Ready")
    problems = []
    for page in sorted({one.page for one in RUN if one.is_on_a_cluster}):
        cluster.kubectl("delete", "deployment", "web", "--ignore-not-found")
        for one in RUN:
            if one.page == page and one.is_on_a_cluster:
                here = Printed(one.page, one.command.replace("general-2", "node-0"))
                problems.append(problem_with(here, tmp_path, **environment))
    assert not any(problems), "\n".join(filter(None, problems))
