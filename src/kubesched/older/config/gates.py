"""Feature gates of an older version: those that were given, over the defaults of that time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubesched.older.config.generations import Generation
from kubesched.scheduler.config.errors import ConfigError, FieldError


@dataclass(frozen=True)
class OlderGates:
    values: Mapping[str, bool]

    def enabled(self, name: str) -> bool:
        """A gate that the version does not have is off."""
        return self.values.get(name, False)


def feature_gates(generation: Generation, given: Mapping[str, bool] | None) -> OlderGates:
    unknown = sorted((given or {}).keys() - generation.gates.keys())
    if unknown:
        known = ", ".join(sorted(generation.gates)) or "none"
        where = f"emulating {generation.version}, gates that matter: {known}"
        raise ConfigError([FieldError("featureGates", f'"{name}" is not known ({where})') for name in unknown])
    return OlderGates({**generation.gates, **(given or {})})
