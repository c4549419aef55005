"""`--write-config-to`: the effective configuration as a file.

Profiles are written as they are used: arguments only of plugins that are enabled, in the order of their names. Under
`--emulate` it is a file of the emulated version, with what that runs in its first lines. The
file appears as a whole or not at all, and only its owner can read it.

Next: `kubesched.scheduler.config.configuration`.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from msgspec.structs import replace

from kubesched.live.options.flag import FlagError
from kubesched.older.config import Emulation
from kubesched.older.config.manifest_of_then import losses, manifest_of_then
from kubesched.older.config.running import summary_lines
from kubesched.scheduler import config
from kubesched.scheduler.config import KubeSchedulerConfiguration, KubeSchedulerProfile
from kubesched.scheduler.config.profile import enabled_names


def configuration_yaml(configuration: KubeSchedulerConfiguration) -> str:
    """The configuration as a manifest that, read again, gives the same scheduler."""
    profiles = tuple(map(_completed, configuration.profiles))
    return config.to_yaml(config.to_manifest(replace(configuration, profiles=profiles)))


def emulation_yaml(emulation: Emulation) -> str:
    """The configuration of the emulated version, under what it runs; read again with `--emulate`, it gives the same."""
    lost = [f"not in this file: {text}" for text in losses(emulation)]
    head = "".join(f"# {line}\n" for line in (*summary_lines(emulation), *lost))
    return f"{head}{config.to_yaml(manifest_of_then(emulation))}"


def write_configuration(
    configuration: KubeSchedulerConfiguration, path: Path, emulation: Emulation | None = None
) -> None:
    """Write the file; whoever calls then exits with 0. Raises `FlagError` if it cannot be written."""
    try:
        _write_whole(path, configuration_yaml(configuration) if emulation is None else emulation_yaml(emulation))
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
