"""`--emulated-version` and `--min-compatibility-version`: kubesched is v1.36, and says so when asked to be another.

Next: `read`.
"""

from __future__ import annotations

import re

_VERSION = re.compile(r"v?([0-9]+)\.([0-9]+)(?:\.([0-9]+))?")
_OURS = (1, 36)
_OLDEST = (1, 33)
"""kube-scheduler goes back by three versions."""

Version = tuple[int, int]


def check_versions(emulated: tuple[str, ...], min_compatibility: tuple[str, ...]) -> list[str]:
    """All that is wrong with what these flags say."""
    try:
        wanted = _of_kube(emulated).get("kube", _OURS)
        compatible = _of_kube(min_compatibility).get("kube", _OLDEST)
    except ValueError as problem:
        return [str(problem)]
    mistakes = []
    if not _OLDEST <= wanted <= _OURS:
        mistakes.append(f"emulation version {_shown(wanted)} is not between [{_shown(_OLDEST)}, {_shown(_OURS)}]")
    elif wanted != _OURS:
        mistakes.append(f"--emulated-version: kubesched decides as Kubernetes {_shown(_OURS)} only")
    if not _OLDEST <= compatible <= _OURS:
        allowed = f"[{_shown(_OLDEST)}, {_shown(_OURS)}]"
        mistakes.append(f"minCompatibilityVersion version {_shown(compatible)} is not between {allowed}")
    return mistakes


def _of_kube(given: tuple[str, ...]) -> dict[str, Version]:
    """Versions by component: `kube=1.36`, or `1.36` alone."""
    found: dict[str, Version] = {}
    for text in given:
        component, equals, version = (part.strip() for part in text.partition("="))
        component, version = (component, version) if equals else ("kube", component)
        parts = _VERSION.fullmatch(version)
        if parts is None:
            raise ValueError(f'could not parse "{version}" as version')
        if int(parts[3] or 0):
            raise ValueError(f"patch version not allowed, got: {component}={version.removeprefix('v')}")
        number = (int(parts[1]), int(parts[2]))
        if component in found:
            both = f"{component}={_shown(found[component])} and {component}={_shown(number)}"
            raise ValueError(f"duplicate version flag, {both}")
        if component != "kube":
            raise ValueError(f"component not registered: {component}")
        found[component] = number
    return found


def _shown(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
