"""Where an older scheduler took its predicates and priorities from: the name of a provider, or a Policy somewhere.

Flags and `algorithmSource` of a v1alpha1 configuration say it in the same way. What a scheduler refused to start with
is refused in its own words. Next: `emulation`, which goes by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kubesched.older.config.generations import Generation
from kubesched.older.config.policy import Policy
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
