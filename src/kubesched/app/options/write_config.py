"""`--write-config-to`: the effective configuration as a file.

Profiles are written as they are used: arguments only of plugins that are enabled, in the order of their names. The
file appears as a whole or not at all, and only its owner can read it.

Next: `kubesched.config.manifest`.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from msgspec.structs import replace

from kubesched import config
from kubesched.app.options.flag import FlagError
from kubesched.config import KubeSchedulerConfiguration, KubeSchedulerProfile
from kubesched.config.merge import enabled_names


def configuration_yaml(configuration: KubeSchedulerConfiguration) -> str:
    """The configuration as a manifest that, read again, gives the same scheduler."""
    profiles = tuple(map(_completed, configuration.profiles))
    return config.to_yaml(config.to_manifest(replace(configuration, profiles=profiles)))


def write_configuration(configuration: KubeSchedulerConfiguration, path: Path) -> None:
    """Write the file; whoever calls then exits with 0. Raises `FlagError` if it cannot be written."""
    try:
        _write_whole(path, configuration_yaml(configuration))
    except OSError as problem:
        raise FlagError(f"--write-config-to: open {path}: {problem.strerror or problem}") from None


def _completed(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    enabled = enabled_names(profile.plugins)
    used = sorted((entry for entry in profile.plugin_config if entry.name in enabled), key=lambda entry: entry.name)
    return replace(profile, plugin_config=tuple(used))


def _write_whole(path: Path, text: str) -> None:
    if path.exists() and not path.is_file():
        # A pipe or a device is written to, not replaced.
        path.write_text(text)
        return
    # Such a file is made with mode 0600, and under a name that nobody can have prepared.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
