"""What a user gave to configure a scheduler, of whatever age: a configuration, a Policy, a provider, feature gates.

Read as the scheduler of a version read it (`as_of`), or translated into today's configuration (`as_of_today`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kubesched.older.config.algorithm_source import PolicyReference, policy_reference
from kubesched.older.config.conversion import Converted, convert_policy, convert_provider, load_any
from kubesched.older.config.emulated import Emulation
from kubesched.older.config.emulation import emulate
from kubesched.older.config.generations import Generation
from kubesched.older.config.policy import load_policy
from kubesched.scheduler.config.decode import parse
from kubesched.scheduler.config.errors import ConfigError, ErrorList, FieldError
from kubesched.scheduler.config.load import default

Document = dict[str, Any] | str | bytes


@dataclass(frozen=True)
class GivenConfiguration:
    config: Document | None = None
    policy: Document | None = None
    provider: str | None = None
    feature_gates: Mapping[str, bool] | None = None
    config_source: str = "config"
    policy_source: str = "policy"
    reference: PolicyReference | None = None
    """Where the Policy was found."""

    def policy_reference(self) -> PolicyReference | None:
        """Where the configuration says that its Policy is, if it says so. Raises `ConfigError`."""
        return None if self.config is None else policy_reference(_mapping(self.config, self.config_source))

    def without_policy(self) -> GivenConfiguration:
        """As if no Policy were named: for what must be known before it can be read."""
        config = None if self.config is None else _mapping(self.config, self.config_source)
        if config is not None:
            config = {name: item for name, item in config.items() if name != "algorithmSource"}
        return replace(self, config=config, policy=None, reference=None)

    def as_of(self, generation: Generation) -> Emulation:
        """Raises `RefusedConfigurationError` in the words of that version, `ConfigError` for anything else."""
        return emulate(
            generation,
            policy=self.policy,
            provider=self.provider,
            config=None if self.config is None else _mapping(self.config, self.config_source),
            gates=self.feature_gates,
            source=self.policy_source,
            reference=self.reference,
        )

    def as_of_today(self) -> Converted:
        """Today's configuration, with what was changed or dropped on the way to it."""
        if self.feature_gates:
            raise ConfigError([FieldError("featureGates", "feature gates are those of a version: say which (emulate)")])
        if sum(given is not None for given in (self.config, self.policy, self.provider)) > 1:
            raise ConfigError([FieldError("", "only one of policy, algorithm provider and configuration can be given")])
        if self.policy is not None:
            return convert_policy(load_policy(self.policy, self.policy_source), self.policy_source)
        if self.provider is not None:
            return convert_provider(self.provider)
        if self.config is None:
            return Converted(default())
        return load_any(self.config, self.config_source)


def _mapping(data: Document, source: str) -> dict[str, Any]:
    errors = ErrorList()
    value = data if isinstance(data, dict) else parse(data, source, errors)
    if errors:
        raise ConfigError(errors, source)
    if not isinstance(value, dict):
        raise ConfigError([FieldError("", "must be an object")], source)
    return value
