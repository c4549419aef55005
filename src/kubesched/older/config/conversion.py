"""From an older configuration to today's: a manifest of v1, and notes on what was changed or dropped.

Next: `policy_conversion` for the Policy file, `component_config` for the versions before v1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubesched.older.config.algorithm_source import AUTOSCALER_PROVIDER, PROVIDERS
from kubesched.older.config.component_config import OLDER_API_VERSIONS, convert_component_config
from kubesched.older.config.policy import Policy, is_policy, load_policy
from kubesched.older.config.policy_conversion import manifest_of_policy
from kubesched.older.config.translation import Translation
from kubesched.scheduler.config.configuration import KubeSchedulerConfiguration
from kubesched.scheduler.config.decode import parse
from kubesched.scheduler.config.errors import ConfigError, ErrorList
from kubesched.scheduler.config.load import KIND, load


@dataclass(frozen=True)
class Converted:
    """`manifest` says only what differs from the defaults; `notes` are for the user, one line each."""

    config: KubeSchedulerConfiguration
    manifest: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def load_any(data: bytes | str | dict[str, Any], source: str) -> Converted:
    """A configuration of whatever age: v1 as it is, a Policy or an older version translated."""
    errors = ErrorList()
    value = data if isinstance(data, dict) else parse(data, source, errors)
    if errors:
        raise ConfigError(errors, source)
    if is_policy(value):
        return convert_policy(load_policy(value, source), source)
    if isinstance(value, dict) and value.get("apiVersion") in OLDER_API_VERSIONS and value.get("kind") == KIND:
        return _loaded(convert_component_config(value), source)
    return Converted(load(data, source), value if isinstance(value, dict) else {})


def convert_policy(policy: Policy, source: str) -> Converted:
    return _loaded(manifest_of_policy(policy), source)


def convert_provider(provider: str) -> Converted:
    """The default set is today's; the autoscaler's prefers full nodes."""
    if provider not in PROVIDERS:
        errors = ErrorList()
        errors.unsupported("algorithmProvider", provider, PROVIDERS)
        raise ConfigError(errors)
    translation = Translation()
    if provider == AUTOSCALER_PROVIDER:
        translation.set_args("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated"}})
    translation.note(f"algorithm provider {provider}: its plugins and weights are those of today's default profile")
    return _loaded(translation, provider)


def _loaded(translation: Translation, source: str) -> Converted:
    manifest = translation.manifest()
    return Converted(load(manifest, source), manifest, tuple(translation.notes))
