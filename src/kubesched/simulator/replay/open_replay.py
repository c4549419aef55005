"""Open replay: the state follows the recording, and each binding is decided again in the state before it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kubesched.framework.handle import Registry
from kubesched.k8s.model.manifests import collector_paused
from kubesched.older.config import Emulation
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.recording.reader import GapSeen, Recorded, RecordingReader
from kubesched.simulator.replay.agreement import Agreement
from kubesched.simulator.replay.judge import BindingJudge


def open_replay(
    path: Path,
    config: KubeSchedulerConfiguration,
    *,
    registry: Registry | None = None,
    emulation: Emulation | None = None,
    from_s: float | None = None,
    to_s: float | None = None,
) -> Agreement:
    """Bindings before `from_s` and after `to_s` (seconds since the epoch) are followed and not judged."""
    judge = BindingJudge(config, registry=registry, emulation=emulation)
    with collector_paused():
        return judged(judge, RecordingReader(path), from_s, to_s)


def judged(
    judge: BindingJudge, events: Iterable[Recorded], from_s: float | None = None, to_s: float | None = None
) -> Agreement:
    found = Agreement()
    for event in events:
        if to_s is not None and event.at_s > to_s:
            break
        if isinstance(event, GapSeen):
            found.gaps.append(event)
        for one in judge.feed(event):
            if from_s is None or one.at_s >= from_s:
                found.add(one)
    for one in judge.finish():
        if from_s is None or one.at_s >= from_s:
            found.add(one)
    found.n_unusable = judge.followed.n_unusable
    return found
