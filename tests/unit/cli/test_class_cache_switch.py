"""`--no-class-cache` in every command that decides for many pods: no class is made, and the answers are the same."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubesched import simulate
from kubesched.cli import up as up_command
from kubesched.cli.main import main
from kubesched.k8s.client.credentials.stored import StaticCredentials
from kubesched.k8s.client.target import ServerTarget
from kubesched.live.live_scheduler import LiveScheduler
from kubesched.live.options import parse_flags, read_options
from kubesched.playground.playground import PlaygroundSettings, scheduler_options
from kubesched.scheduler.engine import cycle
from kubesched.scheduler.engine.class_cache import ClassCache
from kubesched.testing import make

EXAMPLE = Path(__file__).parents[3] / "examples" / "simulate"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The class caches that are made from here on."""
    caches: list[object] = []

    class Noted(ClassCache):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            caches.append(self)

    monkeypatch.setattr(cycle, "ClassCache", Noted)
    return caches


def test_simulate_gives_the_same_bytes_without_it(made: list[object]) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(main, ["simulate", "-f", str(EXAMPLE), "-o", "json", *arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    without = run("--no-class-cache")
    assert made == []
    assert run() == without
    assert len(made) == 1


def test_the_library_decides_the_same_without_it(made: list[object]) -> None:
    objects = [make.node("a", cpu=4), make.node("b", cpu=4), *(make.pod(f"p{number}", cpu=1) for number in range(9))]
    without = simulate(objects, seed=3, class_cache=False)
    assert made == []
    assert simulate(objects, seed=3).pods.to_rows() == without.pods.to_rows()
    assert len(made) == 1


@pytest.mark.parametrize(("flags", "n_made"), [([], 1), (["--no-class-cache"], 0), (["--no-class-cache=false"], 1)])
def test_run_has_one_unless_told_otherwise(made: list[object], flags: list[str], n_made: int) -> None:
    async def make_scheduler() -> None:
        target = ServerTarget(url="http://127.0.0.1:1", credentials=StaticCredentials((), ""))
        LiveScheduler(read_options(parse_flags(["--secure-port=0", *flags])), target)

    asyncio.run(make_scheduler())
    assert len(made) == n_made


def test_the_scheduler_of_a_playground_is_told() -> None:
    assert scheduler_options(None).keeps_classes
    assert not scheduler_options(None, keeps_classes=False).keeps_classes


@pytest.mark.parametrize(("flags", "keeps_classes"), [([], True), (["--no-class-cache"], False)])
def test_up_tells_its_playground(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], keeps_classes: bool
) -> None:
    told: list[PlaygroundSettings] = []

    async def note(settings: PlaygroundSettings, *_: object) -> int:
        told.append(settings)
        return 0

    monkeypatch.setattr(up_command, "_run_once", note)
    manifest = tmp_path / "node.json"
    manifest.write_text('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}')
    result = CliRunner().invoke(main, ["up", "--once", "-f", str(manifest), *flags])
    assert result.exit_code == 0, result.output
    assert [settings.keeps_classes for settings in told] == [keeps_classes]
