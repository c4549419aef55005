"""`kubesched.replay`: a recording played again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Literal, overload

from kubesched.k8s.loaded_cluster import Document
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.older.config.generations import generation_of
from kubesched.scheduler.plugin_loading import assemble, check_no_emulation, plugins_from_classes
from kubesched.simulator.options import OptionError
from kubesched.simulator.replay.agreement import Agreement
from kubesched.simulator.replay.closed import closed_replay
from kubesched.simulator.replay.open_replay import open_replay
from kubesched.simulator.replay.outcome import ClosedReplay


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
