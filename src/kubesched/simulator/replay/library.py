"""`kubesched.replay`: a recording played again, open or closed.

In an open replay the state follows the recording, and each binding is decided again in the state before it.

Next: `judge`, which decides; `closed` for the other kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Literal, overload

from kubesched.framework.handle import Registry
from kubesched.k8s.loaded_cluster import Document
from kubesched.k8s.model.manifests import collector_paused
from kubesched.older.config import Emulation
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.older.config.generations import generation_of
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.plugin_loading import assemble, check_no_emulation, plugins_from_classes
from kubesched.simulator.options import OptionError
from kubesched.simulator.recording.reader import GapSeen, Recorded, RecordingReader
from kubesched.simulator.replay.agreement import Agreement
from kubesched.simulator.replay.closed import ClosedReplay, closed_replay
from kubesched.simulator.replay.judge import BindingJudge


@overload
def replay(
    recording: str | PathLike[str],
    *,
    mode: Literal["open"] = "open",
    config: Document = None,
    feature_gates: Mapping[str, bool] | None = None,
    emulate: str | None = None,
    plugins: Iterable[type] = (),
    seed: int = 0,
) -> Agreement: ...


@overload
def replay(
    recording: str | PathLike[str],
    *,
    mode: Literal["closed"],
    config: Document = None,
    feature_gates: Mapping[str, bool] | None = None,
    emulate: str | None = None,
    plugins: Iterable[type] = (),
    seed: int = 0,
) -> ClosedReplay: ...


def replay(
    recording: str | PathLike[str],
    *,
    mode: Literal["open", "closed"] = "open",
    config: Document = None,
    feature_gates: Mapping[str, bool] | None = None,
    emulate: str | None = None,
    plugins: Iterable[type] = (),
    seed: int = 0,
) -> Agreement | ClosedReplay:
    """Plays what `kubesched record` wrote again: `replay("day.jsonl.gz", config="other.yaml")`.

    With mode "open", the state follows the recording, and each binding is decided again in the state before it: how far
    does this scheduler agree? With mode "closed", our decisions take effect, pods come and end as recorded: what would
    have happened? `seed` decides between equally good nodes then. `config`, `feature_gates`, `emulate` and `plugins`
    mean what they mean to `kubesched.explain`.
    """
    if mode not in ("open", "closed"):
        raise OptionError(f'mode: "{mode}" is neither of open, closed')
    outside = plugins_from_classes(plugins)
    configured = GivenConfiguration.read(config, None, None, feature_gates, emulate)
    path = Path(recording)
    generation = None if emulate is None else generation_of(emulate)
    check_no_emulation(bool(outside.classes), generation)
    if generation is not None:
        emulation = configured.as_of(generation)
        if mode == "closed":
            return closed_replay(path, emulation.config, emulation=emulation, seed=seed)
        return open_replay(path, emulation.config, emulation=emulation)
    assembled = assemble(configured.as_of_today().config, given=outside)
    if mode == "closed":
        return closed_replay(path, assembled.config, registry=assembled.registry, seed=seed)
    return open_replay(path, assembled.config, registry=assembled.registry)


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
