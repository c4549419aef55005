"""Every command that README and docs print is run as it is printed, or is on the one list of those that cannot be.

Commands on files run in a directory that has the files of the page; those on a cluster, against a playground.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playground_process import RunningPlayground, playground, why_no_kubectl

from harness.tutorial import GUIDES
from kubesched.k8s.certificates import Authority, key_pem, new_key
from kubesched.testing import make

ROOT = Path(__file__).parents[2]
LESSONS = ROOT / "docs" / "learn"
"""Each a walk of many steps on a playground, with tests of its own; so are the guides among GUIDES."""
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if LESSONS not in page.parents and page not in GUIDES),
]
WITHIN_S = 60

NOT_RUN: tuple[tuple[str, str], ...] = (
    (r"^git clone ", "the repository has no public address yet"),
    (r"pip install ", "would change the environment that the tests run in; that its extra exists is tested"),
    (r"^docker |^sudo ", "needs a registry, or the control plane's own machine"),
    (r"^helm ", "needs Helm; a test compares the chart's objects with those of the overlays"),
    (r"port-forward", "needs pods that really run: hollow nodes have no network"),
    (r"^python examples/controller|get configmap greeting", "does not end by itself; a test of its own runs it"),
    (r"^kubesched (replay --exact|debug) ", "needs the journal of a scheduler; a test of its own makes one"),
)
"""What is not run, and why."""

NAMED_ONLY = re.compile(r"^make ")
"""What they run, other tests run, too, or takes long. That make knows them, with all that they need, is asked of it."""

ENDLESS = re.compile(
    r" -w$| --watch$|^curl -N |^(\.venv/bin/)?kubesched (run|extender|record|shadow) (?!.*--(print-config|from ))"
    r"|^kubesched up (?!--once)"
)
"""Commands that go on until somebody stops them: they must not end, or fail, by themselves."""
STOPPED_AFTER_S = 3

OURS_TAKEN = re.compile(r"address already in use|cannot listen on|port is (in use|taken)", re.IGNORECASE)
"""Servers have their usual ports. Whoever runs the tests may have another one there."""

FAILS = {
    r"^kubesched check examples/check/check.yaml$": 1,  # the example is not N+1
    r"^kubectl diff ": 1,  # there is a difference
    r"invalid\.yaml": 2,
}
"""Commands whose page says that they fail, and the exit code."""

ON_A_CLUSTER = re.compile(
    r"^(kubectl |[A-Z]+=|curl |(\.venv/bin/)?kubesched (snapshot|run|extender|record|shadow) (?!.*--from )"
    r"|(\.venv/bin/)?kubesched explain \S+( --live.*)?$)"
    r"|--live|-f dump\.json$|--context prod"
)
ASSIGNMENT = re.compile(r"^[A-Z]+=")
PLACEHOLDERS = {"general-2": "node-0", '"NODE"': '"node-0"'}
"""What a reader puts their own name in for. `PORT` is the page's."""


@dataclass(frozen=True, slots=True)
class Printed:
    page: Path
    command: str

    @property
    def is_on_a_cluster(self) -> bool:
        return ON_A_CLUSTER.search(self.command) is not None

    @property
    def is_named_only(self) -> bool:
        return NAMED_ONLY.search(self.command) is not None

    @property
    def why_not(self) -> str:
        return next((reason for pattern, reason in NOT_RUN if re.search(pattern, self.command)), "")

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.command}"


def printed(page: Path) -> Iterator[Printed]:
    blocks = re.findall(r"^ *```(console|sh|shell|bash)\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL)
    for language, body in blocks:
        lines = [line.strip() for line in _joined(body.replace("\\\n", "\0")).splitlines()]
        if language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        commands = (re.sub(r"\s+# .*$", "", line.replace("\0", "\\\n").replace("\1", "\n")) for line in lines)
        yield from (Printed(page, command) for command in commands if command and not command.startswith("#"))


def _joined(body: str) -> str:
    """Here-documents as one line each."""
    return re.sub(r"<<(\w+)\n.*?^\1$", lambda found: found[0].replace("\n", "\1"), body, flags=re.MULTILINE | re.DOTALL)


ALL = [one for page in PAGES for one in printed(page)]
RUN = [one for one in ALL if not one.why_not and not one.is_named_only]


def test_most_commands_are_found_and_no_reason_is_left_over() -> None:
    assert len(ALL) > 140
    assert len([one for one in ALL if one.why_not]) < 14
    assert len(RUN) > 120
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
    aws = {"InstanceType": "m7i.large", "VCpuInfo": {"DefaultVCpus": 128}, "MemoryInfo": {"SizeInMiB": 8192}}
    stands_in_for(folder, "aws", json.dumps({"InstanceTypes": [aws]}))
    (folder / "prices.csv").write_text("instanceType,zone,capacityType,hourly\nm7i.large,a,on-demand,0.1008\n")
    (folder / "karpenter.yaml").write_text(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec: {template: {spec: {}}}\n"
    )
    (folder / "dump.json").write_text(
        f"{make.node('a', labels={make.ZONE: 'a'})}\n---\n{make.pod('new', requests={'cpu': '100'})}"
    )
    (folder / "manifests").mkdir()
    (folder / "manifests" / "web.yaml").write_text(str(make.pod("web")))
    named = re.findall(r"^```(?:python|yaml)\n# ([\w.]+)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    for name, text in named:
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_text(text)


def stands_in_for(folder: Path, command: str, prints: str) -> None:
    """A cloud's own command, which would need an account."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / command).write_text(f"#!/bin/sh\ncat <<'END'\n{prints}\nEND\n")
    (folder / "bin" / command).chmod(0o755)


def problem_with(one: Printed, folder: Path, **environment: str) -> str:
    """What the command says if it does not end as its page has it; "" if it does."""
    beside = str(Path(sys.executable).parent)
    path = f"{folder / 'bin'}:{beside}:{os.environ['PATH']}"
    command = one.command.replace(".venv/bin/", f"{beside}/").removesuffix(" &")
    expected = next((code for pattern, code in FAILS.items() if re.search(pattern, one.command)), 0)
    if ENDLESS.search(one.command):
        command, expected = f"timeout {STOPPED_AFTER_S} {command}", STOPPED
    done = subprocess.run(
        ["timeout", str(WITHIN_S), "bash", "-c", command],
        cwd=folder,
        env={**os.environ, **environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == expected or (expected == STOPPED and OURS_TAKEN.search(done.stderr)):
        return ""
    return f"{one}: exit code {done.returncode}, not {expected}\n{done.stdout}{done.stderr}"


STOPPED = 124
"""What `timeout` ends with."""

ON_FILES = [one for one in RUN if not one.is_on_a_cluster]
MADE = [one for one in ALL if one.is_named_only]


@pytest.mark.parametrize("page", sorted({one.page for one in ON_FILES}), ids=lambda page: page.stem)
def test_commands_on_files_work_as_printed(page: Path, tmp_path: Path) -> None:
    prepared(tmp_path, page)
    problems = [problem_with(one, tmp_path, HOME=str(tmp_path)) for one in ON_FILES if one.page == page]
    assert not any(problems), "\n".join(filter(None, problems))


@pytest.mark.parametrize("command", sorted({one.command for one in MADE}))
def test_make_knows_what_is_printed(command: str) -> None:
    done = subprocess.run(["bash", "-c", f"{command} --dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_extras_that_are_printed_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    asked = [name for one in ALL for name in re.findall(r"pip install .*\[(\w+)\]", one.command)]
    assert asked and set(asked) <= extras.keys()


# -- on a cluster ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlayground]:
    with playground(tmp_path_factory.mktemp("printed"), "--in-memory") as running:
        yield running


@contextmanager
def scheduling(cluster: RunningPlayground, config: Path, *options: str) -> Iterator[bool]:
    """`kubesched run` under a configuration, as a Deployment would run it. Whether it could start."""
    command = [sys.executable, "-m", "kubesched", "run", "--config", str(config), *options]
    process = subprocess.Popen(command, env=cluster.environment(), stderr=subprocess.DEVNULL)
    try:
        time.sleep(STOPPED_AFTER_S)
        yield process.poll() is None
    finally:
        process.terminate()
        process.wait(timeout=WITHIN_S)


def furnished(cluster: RunningPlayground) -> None:
    """What the pages speak of: a namespace with pods that wait, a context, a Policy, schedulers as pods."""
    cluster.does("create namespace shop")
    cluster.does("create deployment web --image=nginx -n shop")
    for name in ("report", "web-7f9c"):
        cluster.does(f'run {name} --image=nginx -n shop --overrides={{"spec":{{"nodeSelector":{{"disk":"tape"}}}}}}')
    of_us = [cluster.does(f"config view -o jsonpath={{.{sort}[0].name}}") for sort in ("clusters", "users")]
    cluster.does("config set-context prod --cluster={} --user={}".format(*of_us))
    policy = 'policy.cfg={"kind":"Policy","apiVersion":"v1"}'
    cluster.does(f"create configmap scheduler-policy -n kube-system --from-literal={policy}")
    there = '{"spec":{"nodeName":"node-2"}}'  # not where a page drains: nobody would replace it
    cluster.does(f"run kube-scheduler-a --image=x -n kube-system --labels=component=kube-scheduler --overrides={there}")
    waits = '{"spec":{"schedulerName":"nobody"}}'
    cluster.does(
        f"run kubesched-lost --image=x -n kube-system --labels=app.kubernetes.io/name=kubesched --overrides={waits}"
    )
    cluster.until("get nodes", "Ready")


def with_certificates(folder: Path) -> None:
    """Files that a page names, and that a reader has from elsewhere."""
    now, key = datetime.now(UTC), new_key()
    authority = Authority.create("test", now, timedelta(days=1))
    host = "plugins.kube-system.svc"
    certificate = authority.server_certificate(host, [host], key, now, timedelta(days=1))
    for name, text in (("tls.crt", certificate), ("tls.key", key_pem(key)), ("scheduler-ca.crt", authority.pem)):
        (folder / name).write_bytes(text)


def assigned(command: str, folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """The variable that a command sets, for those that follow it on the page."""
    name = command.partition("=")[0]
    said = subprocess.run(
        ["bash", "-c", f'{command}\nprintf %s "${name}"'],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: said.stdout}


@pytest.mark.skipif(why_no_kubectl() != "", reason=why_no_kubectl() or "kubectl is there")
def test_commands_on_a_cluster_work_as_printed(cluster: RunningPlayground, tmp_path: Path) -> None:
    furnished(cluster)
    page_url = re.match(r"http://127.0.0.1:(\d+)/#(?:key=)?(.*)", cluster.page_url)
    assert page_url is not None
    home = tmp_path / "home"
    (home / ".kube").mkdir(parents=True)
    shutil.copy(cluster.kubeconfig, home / ".kube" / "config")
    environment = {**cluster.environment(), "HOME": str(home), "KEY": page_url[2]}
    problems = []
    with (
        scheduling(cluster, ROOT / "deploy" / "base" / "config.yaml") as is_served,
        scheduling(cluster, ROOT / "deploy" / "overlays" / "replace" / "config.yaml", "--secure-port", "0") as is_led,
    ):
        assert is_led
        for page in sorted({one.page for one in RUN if one.is_on_a_cluster}):
            cluster.kubectl("delete", "deployment", "web", "--ignore-not-found")
            folder = tmp_path / page.stem
            folder.mkdir()
            prepared(folder, page)
            shutil.rmtree(folder / "cluster.json")
            with_certificates(folder)
            for one in RUN:
                if one.page != page or not one.is_on_a_cluster or ("localhost:10259" in one.command and not is_served):
                    continue
                command = one.command.replace(":PORT/", f":{page_url[1]}/")
                for general, own in PLACEHOLDERS.items():
                    command = command.replace(general, own)
                problems.append(problem_with(Printed(page, command), folder, **environment))
                if ASSIGNMENT.search(command):
                    environment |= assigned(command, folder, environment)
                if command.startswith("kubectl create --raw"):  # it was bound by hand; the page goes on without it
                    cluster.does("delete pod kubesched-lost -n kube-system --now")
            cluster.kubectl("annotate", "node", "node-1", "kubesched.dev/kubelet-")
    assert not any(problems), "\n".join(filter(None, problems))
