"""What this program is: the version it shows, in the words of Kubernetes' `/version` and `kubernetes_build_info`."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib import metadata

KUBERNETES_MAJOR = "1"
KUBERNETES_MINOR = "36"
KUBERNETES_VERSION = "1.36.4"
"""Whose decisions we make."""


def _own_version() -> str:
    """Empty where the package is not installed, only on the path."""
    try:
        return metadata.version("kubesched")
    except metadata.PackageNotFoundError:
        return ""


def _platform() -> str:
    """As Go names it."""
    machines = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
    machine = platform.machine().lower()
    return f"{platform.system().lower()}/{machines.get(machine, machine)}"


@dataclass(frozen=True, slots=True)
class BuildInfo:
    major: str = KUBERNETES_MAJOR
    minor: str = KUBERNETES_MINOR
    git_version: str = f"v{KUBERNETES_VERSION}+kubesched-{_own_version()}".removesuffix("-")
    git_commit: str = ""
    git_tree_state: str = ""
    build_date: str = ""
    go_version: str = f"python{platform.python_version()}"
    """The runtime; Kubernetes' word for it is kept, as that is what is read."""
    compiler: str = platform.python_implementation().lower()
    platform: str = _platform()

    def to_dict(self) -> dict[str, str]:
        """What `/version` answers."""
        return {
            "major": self.major,
            "minor": self.minor,
            "gitVersion": self.git_version,
            "gitCommit": self.git_commit,
            "gitTreeState": self.git_tree_state,
            "buildDate": self.build_date,
            "goVersion": self.go_version,
            "compiler": self.compiler,
            "platform": self.platform,
        }
