"""What an older scheduler was configured to run: plugins by their names of that time, in order, with weights.

Filled by `emulation`; `kubesched.engine.older` builds a scheduler from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kubesched.config.configuration import KubeSchedulerConfiguration
from kubesched.config.older.generations import Generation


@dataclass(frozen=True)
class EmulatedPlugin:
    """A filter or a score. `kind` is the plugin that does the work, `name` what it is called in answers."""

    kind: str
    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    weight: int = 0


@dataclass(frozen=True)
class EmulatedProfile:
    scheduler_name: str
    filters: tuple[EmulatedPlugin, ...]
    scores: tuple[EmulatedPlugin, ...]
    checks_all: bool = False
    """Nodes are told every plugin that rejects them."""
    preempts: bool = True

    def with_hard_affinity_weight(self, weight: int) -> EmulatedProfile:
        scores = tuple(
            replace(plugin, args={"hardPodAffinityWeight": weight, **plugin.args})
            if plugin.kind == "InterPodAffinity"
            else plugin
            for plugin in self.scores
        )
        return replace(self, scores=scores)


@dataclass(frozen=True)
class Emulation:
    """An older scheduler, ready to be built. `config` holds what is not about plugins: extenders, backoff, shares."""

    generation: Generation
    profiles: tuple[EmulatedProfile, ...]
    config: KubeSchedulerConfiguration

    def renamed(self, scheduler_name: str) -> Emulation:
        """The same, for pods that ask for another scheduler by name."""
        return replace(self, profiles=tuple(replace(p, scheduler_name=scheduler_name) for p in self.profiles))

    def with_hard_affinity_weight(self, weight: int) -> Emulation:
        """What a profile says itself about the weight counts more."""
        return replace(self, profiles=tuple(profile.with_hard_affinity_weight(weight) for profile in self.profiles))
