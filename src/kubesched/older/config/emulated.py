"""What an older scheduler was configured to run: plugins by their names of that time, in order, with weights.

Filled by `emulation`; `kubesched.older.engine` builds a scheduler from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kubesched.older.config.algorithm_source import AlgorithmSource
from kubesched.older.config.gates import OlderGates
from kubesched.older.config.generations import Generation
from kubesched.older.config.refusal import Refusals
from kubesched.scheduler.config.configuration import KubeSchedulerConfiguration

BIND_TIMEOUT_S = 600
HARD_AFFINITY_WEIGHT = 1
"""Where nothing is said."""

_HIGHEST_AFFINITY_WEIGHT = 100


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
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The plugins of the other extension points, by their names."""

    def with_hard_affinity_weight(self, weight: int) -> EmulatedProfile:
        return replace(self, scores=_with_args(self.scores, "InterPodAffinity", {"hardPodAffinityWeight": weight}))

    def with_bind_timeout(self, seconds: int) -> EmulatedProfile:
        """How long volumes are waited for."""
        return replace(self, filters=_with_args(self.filters, "VolumeBinding", {"bindTimeoutSeconds": seconds}))


@dataclass(frozen=True)
class Emulation:
    """An older scheduler, ready to be built. `config` holds what is not about plugins: extenders, backoff, shares."""

    generation: Generation
    profiles: tuple[EmulatedProfile, ...]
    config: KubeSchedulerConfiguration
    source: AlgorithmSource = field(default_factory=AlgorithmSource)
    gates: OlderGates = field(default_factory=lambda: OlderGates({}))
    bind_timeout_s: int = BIND_TIMEOUT_S
    """`bindTimeoutSeconds` of a configuration, whether a predicate looks at volumes or not."""
    hard_affinity_weight: int = HARD_AFFINITY_WEIGHT
    """`hardPodAffinitySymmetricWeight` of a configuration or a flag; a Policy's own counts more."""
    plugins_given: Mapping[str, Any] = field(default_factory=dict)
    """`plugins` and `pluginConfig` of a v1alpha1 configuration, which add to what the source says."""
    notes: tuple[str, ...] = ()
    """What of the configuration the scheduler of that time passed over."""

    def renamed(self, scheduler_name: str) -> Emulation:
        """The same, for pods that ask for another scheduler by name."""
        return replace(self, profiles=tuple(replace(p, scheduler_name=scheduler_name) for p in self.profiles))

    def with_hard_affinity_weight(self, weight: int) -> Emulation:
        """What a profile says itself about the weight counts more. Raises `RefusedConfigurationError`."""
        check_affinity_weight(weight, self.generation, self.source)
        profiles = tuple(profile.with_hard_affinity_weight(weight) for profile in self.profiles)
        return replace(self, profiles=profiles, hard_affinity_weight=weight)


def check_affinity_weight(weight: int, generation: Generation, source: AlgorithmSource) -> None:
    """Before there were profiles the scheduler itself looked at the weight, whoever gave it, and took no 0."""
    if generation.registers_functions and not 1 <= weight <= _HIGHEST_AFFINITY_WEIGHT:
        provider = source.provider if source.policy is None else None
        problem = f"invalid hardPodAffinitySymmetricWeight: {weight}, must be in the range 1-100"
        raise Refusals(generation, provider).scheduler([problem])


def _with_args(plugins: tuple[EmulatedPlugin, ...], kind: str, args: Mapping[str, Any]) -> tuple[EmulatedPlugin, ...]:
    """What a plugin was given already counts more."""
    return tuple(replace(plugin, args={**args, **plugin.args}) if plugin.kind == kind else plugin for plugin in plugins)
