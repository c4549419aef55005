"""The notebooks among the examples run, show what they say, and are kept without outputs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import notebooks

ROOT = Path(__file__).parents[3]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def test_there_are_some() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["a-day-on-a-cluster", "a-pending-pod"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs_and_shown_as_a_page(path: Path) -> None:
    assert all(cell.is_stripped for cell in notebooks.cells(path))
    page = notebooks.as_markdown(path)
    assert page.startswith("# ") and "```python\nimport kubesched\n" in page


def test_the_pending_pod_is_explained_and_helped() -> None:
    shown = notebooks.run(ROOT / "examples" / "notebooks" / "a-pending-pod.ipynb")
    cluster, pending, why, (cause, nodes), changes, changed, allowed, sequence = shown
    assert len(cluster.nodes) == 5 and "shop/report" in pending
    assert not why.fits and changed.fits
    assert "needs 2 cpu" in cause and nodes[0] == "general-2"
    assert ("uncordon general-3", "general-3") in changes
    assert allowed == [(250, True), (500, True), (501, False), (1000, False), (2000, False)]
    assert [step.pod for step in sequence.steps] == pending


def test_a_day_passes_and_two_configurations_are_compared() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = notebooks.run(ROOT / "examples" / "notebooks" / "a-day-on-a-cluster.ipynb")
    day = shown[1]
    assert day.ended_s == 24 * 3600
    compared = next(item for item in shown if isinstance(item, dict))
    assert compared["packed"]["nodes in use"] <= compared["spread"]["nodes in use"]
    assert len(shown[-1].lines) == 4
    pyplot.close("all")
