"""What an older scheduler was configured to run, plugins by their names of that time, and where it took that from.

Filters and scores do the work that predicates and priorities did, in order, with weights; what runs at the other
extension points follows from them. They come from a provider, by its name, or from a Policy somewhere: flags and
`algorithmSource` of a v1alpha1 configuration say it in the same way. What a scheduler refused to start with is refused
in its own words.

Filled by `emulation`; `kubesched.older.engine` builds a scheduler from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from kubesched.older.config import names
from kubesched.older.config.generations import Generation, OlderGates
from kubesched.older.config.policy import Policy
from kubesched.scheduler.config.configuration import KubeSchedulerConfiguration
from kubesched.scheduler.config.errors import ConfigError, FieldError


class RefusedConfigurationError(ConfigError):
    """`text` is what the scheduler of that time said: what it ended with, where it ended on the spot."""

    def __init__(self, text: str) -> None:
        super().__init__([FieldError("", text)])
        self.text = text

    def __reduce__(self) -> tuple[type[RefusedConfigurationError], tuple[str]]:
        return type(self), (self.text,)


@dataclass(frozen=True)
class Refusals:
    """How the scheduler of a version puts its errors. `provider` is None where a Policy configures it."""

    generation: Generation
    provider: str | None = None

    def scheduler(self, problems: Sequence[str]) -> RefusedConfigurationError:
        """It could not be created. Several problems stand in brackets."""
        told = list(problems if self.generation.repeats_problems else dict.fromkeys(problems))
        text = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
        source = "from policy" if self.provider is None else f'using provider "{self.provider}"'
        return RefusedConfigurationError(f"couldn't create scheduler {source}: {text}")

    def profiles(self, problem: str) -> RefusedConfigurationError:
        return self.scheduler([f"initializing profiles: {problem}"])

    def framework(self, scheduler_name: str, problem: str) -> RefusedConfigurationError:
        """Its plugins could not be put together; before there were profiles, it ended with that."""
        if self.generation.registers_functions:
            return RefusedConfigurationError(f"error initializing the scheduling framework: {problem}")
        return self.profiles(f"creating profile for scheduler name {scheduler_name}: {problem}")

    def unknown_provider(self) -> RefusedConfigurationError:
        return self.scheduler([self.generation.unknown_provider.format(provider=self.provider)])


DEFAULT_PROVIDER = "DefaultProvider"
AUTOSCALER_PROVIDER = "ClusterAutoscalerProvider"
PROVIDERS = (AUTOSCALER_PROVIDER, DEFAULT_PROVIDER)

SYSTEM_NAMESPACE = "kube-system"

_FIELD = "algorithmSource"


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A Policy in a file."""

    path: str

    def manifest(self) -> dict[str, Any]:
        return {"file": {"path": self.path}}

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True, slots=True)
class PolicyConfigMap:
    """A Policy in the cluster, which can be read once the API server can be asked."""

    namespace: str
    name: str

    KEY: ClassVar[str] = "policy.cfg"

    def manifest(self) -> dict[str, Any]:
        return {"configMap": {"namespace": self.namespace, "name": self.name}}

    def __str__(self) -> str:
        return f"configmap {self.namespace}/{self.name}"


PolicyReference = PolicyFile | PolicyConfigMap


@dataclass(frozen=True)
class AlgorithmSource:
    """Either a provider's name or a Policy. `reference` is where the Policy was read from, if that is known."""

    provider: str = DEFAULT_PROVIDER
    policy: Policy | None = None
    reference: PolicyReference | None = None

    def manifest(self) -> dict[str, Any]:
        """As `algorithmSource` says it."""
        if self.policy is None:
            return {"provider": self.provider}
        return {"policy": {} if self.reference is None else self.reference.manifest()}

    def described(self) -> str:
        if self.policy is None:
            return f"algorithm provider {self.provider}"
        return "a Policy" if self.reference is None else f"the Policy in {self.reference}"


def provider_of(config: Mapping[str, Any]) -> str | None:
    """The provider that a configuration names; None if a Policy takes its place. Nothing said is the default one."""
    source = _source(config)
    provider = source.get("provider")
    if source.get("policy") is None:
        return provider or DEFAULT_PROVIDER
    return None if provider is None else str(provider)


def policy_reference(config: Mapping[str, Any]) -> PolicyReference | None:
    """Where a configuration says that its Policy is. None: it has none, or says so with neither file nor ConfigMap."""
    if provider_of(config) is not None:
        return None
    policy = _mapping(_source(config).get("policy"), f"{_FIELD}.policy")
    if policy.get("file") is not None:
        path = _mapping(policy["file"], f"{_FIELD}.policy.file").get("path")
        return PolicyFile(_text(path, f"{_FIELD}.policy.file.path"))
    if policy.get("configMap") is None:
        return None
    found = _mapping(policy["configMap"], f"{_FIELD}.policy.configMap")
    name = _text(found.get("name"), f"{_FIELD}.policy.configMap.name")
    return PolicyConfigMap(str(found.get("namespace") or SYSTEM_NAMESPACE), name)


def _source(config: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(config.get(_FIELD), _FIELD)


def _mapping(value: object, path: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError([FieldError(path, "must be an object")])
    return value


def _text(value: object, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError([FieldError(path, "Required value")])
    return value


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


FILTERS = frozenset(kind for kinds in names.PLUGINS_OF_PREDICATES.values() for kind in kinds if "Check" not in kind)
SCORES = frozenset(names.PLUGINS_OF_PRIORITIES.values()) - {names.EQUAL_PRIORITY} | {"NodeLabel", "ServiceAffinity"}

_RESOURCE_LIMITS = "NodeResourceLimits"
_IN_ORDER_OF_A_CYCLE = (
    *("queueSort", "preFilter", "filter", "postFilter", "preScore", "score"),
    *("reserve", "permit", "preBind", "bind", "postBind", "unreserve"),
)
_FOLLOW_FILTERS = ("preFilter", "reserve", "preBind")


def interface_of(point: str) -> str:
    """The name of what a plugin of this point implements."""
    return f"{point[0].upper()}{point[1:]}Plugin"


def plugins_for(point: str, generation: Generation) -> Mapping[str, str]:
    """All plugins that could run at a point, by name, with the kind that does the work."""
    if point == "filter":
        kinds: Iterable[str] = FILTERS
    elif point == "score":
        has_limits = _RESOURCE_LIMITS in generation.plugins_beside.get("preScore", ())
        kinds = SCORES if has_limits else SCORES - {_RESOURCE_LIMITS}
    else:
        beside = generation.plugins_beside.get(point, ())
        return {name: name for name in (*beside, *(("ServiceAffinity",) if beside and point == "preFilter" else ()))}
    return {names.plugin_name(generation, kind): kind for kind in kinds}


def every_plugin(generation: Generation) -> frozenset[str]:
    return frozenset(name for point in generation.extension_points for name in plugins_for(point, generation))


def provided_beside(
    generation: Generation, filters: Sequence[EmulatedPlugin], scores: Sequence[EmulatedPlugin]
) -> dict[str, tuple[str, ...]]:
    """What a provider runs at the other points, in its own order."""
    found = {}
    for point, plugins in generation.plugins_beside.items():
        running = _followed(point, filters, scores)
        found[point] = tuple(name for name in plugins if running is None or name in running)
    return {point: plugins for point, plugins in found.items() if plugins}


def policy_beside(
    generation: Generation, filters: Sequence[EmulatedPlugin], scores: Sequence[EmulatedPlugin]
) -> dict[str, tuple[str, ...]]:
    """The same for a Policy: each predicate and priority brings its own, in its turn."""
    found = {}
    for point, plugins in generation.plugins_beside.items():
        running, able = _followed(point, filters, scores), plugins_for(point, generation)
        found[point] = plugins if running is None else tuple(name for name in running if name in able)
    return {point: plugins for point, plugins in found.items() if plugins}


def _followed(
    point: str, filters: Sequence[EmulatedPlugin], scores: Sequence[EmulatedPlugin]
) -> tuple[str, ...] | None:
    """Whose plugins a point goes by; None: it has its own."""
    if point == "preScore":
        return _names(scores)
    return _names(filters) if point in _FOLLOW_FILTERS else None


def points_of(profile: EmulatedProfile, generation: Generation) -> dict[str, tuple[str, ...]]:
    """The plugins of every point of the version, in the order of a cycle."""
    found = {**profile.beside, "filter": _names(profile.filters), "score": _names(profile.scores)}
    return {point: found.get(point, ()) for point in _IN_ORDER_OF_A_CYCLE if point in generation.extension_points}


def in_provided_order(scores: Sequence[EmulatedPlugin], generation: Generation) -> tuple[EmulatedPlugin, ...]:
    order = generation.provided_scores
    return tuple(sorted(scores, key=lambda plugin: order.index(plugin.name))) if order else tuple(scores)


def _names(plugins: Sequence[EmulatedPlugin]) -> tuple[str, ...]:
    return tuple(plugin.name for plugin in plugins)
