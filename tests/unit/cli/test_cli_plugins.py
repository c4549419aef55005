"""`--plugin` on the commands, `simulate --watch`, and `up` with plugins that are read again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli.main import main
from kubesched.cli.up import reload_plugins
from kubesched.cli.watching import manifest_files, watch
from kubesched.k8s.model.core import Pod
from kubesched.playground.apiserver.server import ServerSettings
from kubesched.playground.hollow_nodes.fleet import NodeShape
from kubesched.playground.hollow_nodes.pod_plays import Delays
from kubesched.playground.playground import Playground, PlaygroundSettings
from kubesched.playground.settling import wait_settled
from kubesched.testing import make

PLUGIN = """
from kubesched.framework import OK, Status


class Quiet:
    name = "Quiet"

    def filter_node(self, cycle, pod, node):
        return Status.unschedulable("node(s) are quiet") if node.name == "{quiet}" else OK
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    objects = [make.node("a"), make.node("b"), make.pod("p", spec={"containers": [{"name": "c", "image": "i"}]})]
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(objects))
    (tmp_path / "quiet.py").write_text(PLUGIN.format(quiet="a"))
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "pluginPaths": ["quiet.py"],
        "profiles": [{"plugins": {"filter": {"enabled": [{"name": "Quiet"}]}}}],
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.mark.parametrize("how", [("--plugin", "quiet.py"), ("--config", "config.yaml")], ids=["flag", "configuration"])
def test_a_plugin_decides_in_explain_and_simulate(folder: Path, how: tuple[str, str]) -> None:
    options = (how[0], folder / how[1])
    explained = run("explain", "p", "-f", folder / "cluster.yaml", *options, "-o", "json")
    assert json.loads(explained.stdout)["explanation"]["best"] == ["b"]
    simulated = run("simulate", "-f", folder / "cluster.yaml", *options, "-o", "csv")
    assert (simulated.exit_code, ",b," in simulated.stdout) == (0, True)


def test_a_plugin_decides_in_bench(folder: Path) -> None:
    (folder / "quiet.py").write_text(PLUGIN.replace('node.name == "{quiet}"', "True"))
    result = run("bench", "basic", "--nodes", "3", "--pods", "2", "--plugin", folder / "quiet.py")
    assert result.exit_code == 1
    assert "node(s) are quiet" in result.stderr


def test_validate_knows_the_plugins_of_the_configuration(folder: Path) -> None:
    result = run("config", "validate", "--resolved", folder / "config.yaml")
    assert result.exit_code == 0
    assert "NodeDeclaredFeatures, Quiet\n" in result.stdout


def test_a_configuration_that_run_writes_finds_its_plugins_wherever_it_is(folder: Path, tmp_path: Path) -> None:
    written = tmp_path / "elsewhere" / "written.yaml"
    written.parent.mkdir()
    for options in (("--plugin", folder / "quiet.py"), ("--config", folder / "config.yaml")):
        assert run("run", *options, "--write-config-to", written).exit_code == 0
        assert yaml.safe_load(written.read_text())["pluginPaths"] == [str(folder / "quiet.py")]
        explained = run("explain", "p", "-f", folder / "cluster.yaml", "--config", written)
        assert "would go to b" in explained.stdout


COMMANDS = [
    pytest.param(("explain", "p", "-f", "cluster.yaml"), id="explain"),
    pytest.param(("simulate", "-f", "cluster.yaml"), id="simulate"),
    pytest.param(("bench", "basic", "--nodes", "1", "--pods", "1"), id="bench"),
    pytest.param(("run", "--master", "http://127.0.0.1:1"), id="run"),
    pytest.param(("up", "--once", "-f", "cluster.yaml"), id="up"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_cannot_be_used_is_told_in_one_line(
    folder: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "bad.py").write_text("import os\nimport nothing_of_that_name\n")
    result = run(*command, "--plugin", "bad.py")
    assert result.exit_code == 2
    told = "error: bad.py: line 2: ModuleNotFoundError: No module named 'nothing_of_that_name'"
    assert result.stderr.splitlines()[-1] == told


@pytest.mark.parametrize("command", COMMANDS[:2])
def test_an_emulated_version_takes_no_plugins(folder: Path, command: tuple[str, ...]) -> None:
    arguments = [folder / part if part == "cluster.yaml" else part for part in command]
    result = run(*arguments, "--plugin", folder / "quiet.py", "--emulate", "1.18")
    assert (result.exit_code, result.stderr) == (
        2,
        "error: plugins of your own run in today's scheduler only: give either them or --emulate\n",
    )


# -- simulate --watch --------------------------------------------------------------------------------------------------


def steps(*changes: Callable[[], object]) -> Callable[[], None]:
    """Pauses in which files change; after the last one somebody presses Ctrl-C."""
    left = list(changes)

    def pause() -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    return pause


def test_watching_runs_again_after_every_change_of_any_file_and_goes_on_after_a_mistake(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin, cluster = folder / "quiet.py", folder / "cluster.yaml"
    pause = steps(
        lambda: plugin.write_text(PLUGIN.format(quiet="b")),
        lambda: plugin.write_text("x = ("),
        lambda: plugin.write_text(PLUGIN.format(quiet="nothing")),
        lambda: cluster.write_text("{}"),
        lambda: cluster.write_text(yaml.safe_dump_all([make.node("c"), make.pod("p")])),
    )
    monkeypatch.setattr("kubesched.cli.simulate.watch", lambda work, files: watch(work, files, pause))
    result = run("simulate", "-f", cluster, "--plugin", plugin, "--watch", "-o", "csv", "--tie-break", "name")
    assert result.exit_code == 0
    nodes = [line.split(",") for line in result.stdout.splitlines() if line.startswith("default,p,")]
    assert [next(part for part in row if part in ("a", "b", "c")) for row in nodes] == ["b", "a", "a", "c"]
    assert f"error: {plugin}: line 1: SyntaxError: '(' was never closed" in result.stderr
    assert f"error: {cluster}: " in result.stderr
    assert result.stderr.count("changed\n") == 5


def test_watching_needs_files() -> None:
    result = run("simulate", "-f", "-", "--watch")
    assert (result.exit_code, "standard input can be read only once" in result.stderr) == (2, True)


def test_the_files_of_a_directory_are_watched_with_it(folder: Path) -> None:
    assert manifest_files([str(folder)]) == [folder, *sorted(folder.iterdir())]


# -- up --reload -------------------------------------------------------------------------------------------------------


def test_up_reloads_a_plugin_and_keeps_the_cluster(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = folder / "quiet.py"
    plugin.write_text(PLUGIN.format(quiet="node-0"))
    settings = PlaygroundSettings(
        ServerSettings(),
        folder / "kubeconfig",
        nodes=list(NodeShape().bodies(1)),
        delays=Delays(0.0, 0.0),
        has_server_process=False,
        plugin_files=[str(plugin)],
    )
    pods = [make.pod("p", spec={"containers": [{"name": "c", "image": "i"}]})]

    async def run_all() -> list[Pod]:
        async with Playground(settings) as playground:
            turn = asyncio.Event()

            async def pause() -> None:
                await turn.wait()
                turn.clear()

            async def settled() -> bool:
                controllers = playground.controllers
                return await wait_settled(controllers.view, lambda: controllers.is_idle, 30.0, quiet_s=0.1)

            reloading = asyncio.create_task(reload_plugins(playground, pause))
            await playground.put_in(pods)
            assert await settled()
            for text in ("x = (", PLUGIN.format(quiet="nothing")):
                await asyncio.sleep(0)
                plugin.write_text(text)
                turn.set()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            while not all(pod.spec.node_name for pod in playground.controllers.view.of(Pod).values()):
                await asyncio.sleep(0.01)
            reloading.cancel()
            return list(playground.controllers.view.of(Pod).values())

    (pod,) = asyncio.run(asyncio.wait_for(run_all(), 30.0))
    assert pod.spec.node_name == "node-0"
    told = capsys.readouterr()
    assert f"error: {plugin}: line 1: SyntaxError: '(' was never closed" in told.err
    assert "still running the previous plugins" in told.err
    assert f"{plugin} changed: reloaded Quiet" in told.out


def test_up_reloads_only_what_goes_on() -> None:
    result = run("up", "--once", "-f", "x.yaml", "--reload")
    assert (result.exit_code, "--once exits by itself" in result.stderr) == (2, True)
