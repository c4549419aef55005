"""The moments of a journal, and the page with a slider over them."""

from __future__ import annotations

import asyncio
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from live_journal import N_NODES, N_PODS, write_journal

from harness.headless_browser import NOTICE, has_browser, open_page
from kubesched.cli.main import main
from kubesched.simulator.replay.exact import ExactReplay, Moments

GRAVE = ("serious", "critical")


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("journal") / "here"
    write_journal(directory)
    return directory


@pytest.fixture(scope="module")
def page(journal: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "moments.html"
    result = CliRunner().invoke(main, ["debug", str(journal), "--report", str(path)])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Reproduced all ")
    return path


def _moments(journal: Path, most: int = 1_000) -> Moments:
    replay = ExactReplay(journal)
    return Moments.of(replay, replay.attempts(), most)


def test_the_changes_add_up_to_the_cluster_of_each_moment(journal: Path) -> None:
    found = _moments(journal)
    assert found.is_whole and len(found.found) > N_PODS
    nodes: dict[str, Any] = {}
    pods: dict[str, str | None] = {}
    for moment in found.found:
        nodes |= moment.nodes
        pods |= moment.pods
        assert len(nodes) == N_NODES
        assert pods[moment.attempt.pod] == ""  # it waits
        for name, then in nodes.items():
            assert then.cpu_used_milli == 200 * sum(node == name for node in pods.values())
    assert sum(bool(node) for node in pods.values()) == N_PODS


def test_asking_why_at_every_attempt_changes_none(journal: Path) -> None:
    """Among equally good nodes it is drawn: an explanation must not take part in that."""
    found = _moments(journal)
    assert found.replay.difference == ""
    assert found.replay.n_bound == N_PODS
    assert all(moment.why for moment in found.found)


def test_why_in_the_terminal_changes_nothing_either(journal: Path) -> None:
    replay = ExactReplay(journal)
    for attempt in replay.attempts():
        waiting = next((key for key in replay.loop.cluster.pending if not replay.loop.cluster.is_assumed(key)), None)
        if waiting is not None:
            assert replay.why(waiting)
        assert attempt.pod
    assert replay.difference == ""


def test_a_page_of_a_part_begins_where_the_commands_end(journal: Path, tmp_path: Path) -> None:
    path = tmp_path / "part.html"
    result = CliRunner().invoke(main, ["debug", str(journal), "-c", "next 10", "--report", str(path)])
    assert result.exit_code == 0, result.output
    data = _data(path)
    assert data["first"] == 11
    assert len(data["moments"][0]["nodes"]) == N_NODES
    assert sum(bool(node) for node in data["moments"][0]["pods"].values()) == 10


def test_a_long_journal_is_cut(journal: Path) -> None:
    found = _moments(journal, most=5)
    assert not found.is_whole and len(found.found) == 5


def _data(path: Path) -> dict[str, Any]:
    text = path.read_text()
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert match is not None
    data: dict[str, Any] = json.loads(match[1].replace("<\\/", "</"))
    return data


def test_the_page_needs_nothing_else_and_is_its_owners(page: Path) -> None:
    text = page.read_text()
    assert page.stat().st_mode & 0o777 == 0o600
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=.?https?:", text)


@pytest.mark.skipif(not has_browser(), reason=NOTICE)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_slider_in_a_browser(page: Path, tmp_path: Path, dark: bool) -> None:
    axe = (resources.files("axe_core_python") / "axe.min.js").read_text()

    async def run() -> None:
        async with open_page(page.as_uri(), tmp_path / "browser", size=(1280, 900), dark=dark) as browser:

            async def told() -> str:
                return str(await browser.evaluate("document.getElementById('told').textContent"))

            async def press(key: str, shift: bool = False) -> None:
                event = f"new KeyboardEvent('keydown', {{key: {key!r}, shiftKey: {str(shift).lower()}, bubbles: true}})"
                await browser.evaluate(f"document.body.dispatchEvent({event})")

            await browser.wait_for("document.querySelector('#nodes li')")
            assert (await told()).startswith("default/p0 goes to n")
            await press("ArrowRight")
            assert (await told()).startswith("default/p1 goes to n")
            await press("ArrowRight", shift=True)
            assert (await told()).startswith("default/p11 goes to n")
            await press("f")
            assert (await told()).startswith("Pod default/huge is pending")
            assert "6 Insufficient cpu" in await browser.evaluate("document.getElementById('why').textContent")
            assert "30 pods on them, 1 waiting" in await browser.evaluate("document.getElementById('sum').textContent")
            await press("Home")
            assert "0 pods on them" in await browser.evaluate("document.getElementById('sum').textContent")
            taken = await browser.evaluate("document.querySelector('.taken button').title")
            assert await told() == f"default/p0 goes to {taken.split(':')[0]}"
            await browser.evaluate(f"{axe}; true")
            violations = await browser.evaluate("axe.run().then((found) => found.violations)")
            assert [one["id"] for one in violations if one["impact"] in GRAVE] == []
            assert browser.problems == []

    asyncio.run(run())
