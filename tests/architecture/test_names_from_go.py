"""The page for readers of kube-scheduler's source: what it names is there, in the file that it links."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "from-go.md"
_REFERENCE = re.compile(r"\[`([\w.]+:[\w.]+)`\]\(([^)]+)\)")
_HEAD = "| in Go | here | what differs |"

KNOWN_BY_EVERY_READER = {
    name
    for names in (
        "NewSchedulerCommand Setup New StopEverything createFromProvider scheduleOne NextPod skipPodSchedule",
        "genericScheduler ScheduleAlgorithm podPassesBasicChecks findNodesThatFit findNodesThatFitPod",
        "numFeasibleNodesToFind prioritizeNodes selectHost FitError Diagnosis ScheduleResult EvaluatedNodes",
        "FeasibleNodes recordSchedulingFailure assume assumeVolumes bindVolumes FinishBinding ForgetPod",
        "WaitOnPermit PriorityQueue activeQ podBackoffQ unschedulableQ inFlightEvents",
        "MoveAllToActiveOrBackoffQueue flushBackoffQCompleted nominatedPods schedulerCache Snapshot nodeTree",
        "cleanupAssumedPods InformerFor WaitForNamedCacheSync ListAndWatch DeltaFIFO processorListener",
        "addAllEventHandlers CycleState waitingPodsMap PodFitsResources LeastRequestedPriority CacheDebugger",
        "configz utiltrace",
    )
    for name in names.split()
}


class Row(NamedTuple):
    names: tuple[str, ...]
    here: str
    differs: str


def _rows() -> Iterator[Row]:
    is_table = False
    for line in PAGE.read_text().splitlines():
        if line == _HEAD:
            is_table = True
        elif not line.startswith("|"):
            is_table = False
        elif is_table and not line.startswith("|---"):
            names, here, differs = line.strip("|").split("|")
            yield Row(tuple(re.findall(r"`([^`]+)`", names)), here.strip(), differs.strip())


def resolve(reference: str) -> object:
    """What `module:name` stands for. Raises if it is not there."""
    module, name = reference.split(":")
    return attrgetter(name)(importlib.import_module(f"kubesched.{module}"))


def _file_of(reference: str) -> Path:
    path = importlib.import_module(f"kubesched.{reference.split(':')[0]}").__file__
    assert path is not None
    return Path(path).resolve()


REFERENCES = sorted(set(_REFERENCE.findall(PAGE.read_text())))


@pytest.mark.parametrize(("reference", "link"), REFERENCES, ids=[reference for reference, _link in REFERENCES])
def test_a_name_is_there_and_its_link_leads_to_its_file(reference: str, link: str) -> None:
    resolve(reference)
    assert Path(os.path.normpath(PAGE.parent / link)) == _file_of(reference)


@pytest.mark.parametrize("gone", ["scheduler.engine.loop:Scheduler.schedule_two", "scheduler.engine.no_loop:Scheduler"])
def test_a_name_that_is_gone_is_found(gone: str) -> None:
    with pytest.raises((AttributeError, ModuleNotFoundError)):
        resolve(gone)


def test_every_row_leads_somewhere_or_says_why_not() -> None:
    lost = [row for row in _rows() if not _REFERENCE.search(row.here) and not (row.here == "none" and row.differs)]
    assert lost == []


def test_a_name_has_one_row() -> None:
    names = [name for row in _rows() for name in row.names]
    assert len(names) > 250
    assert sorted(names) == sorted(set(names))


def test_the_names_that_every_reader_looks_for_are_there() -> None:
    names = {name for row in _rows() for name in row.names}
    assert KNOWN_BY_EVERY_READER - names == set()
