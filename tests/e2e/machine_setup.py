"""Gets what end-to-end tests need of a machine: a browser and kubectl, from Debian's packages.

Only where something is missing, as root, and once: a machine without a way out is not asked again (delete the file
given as argument to have it asked again; `make clean` does). Always ends well, since tests that lack something are
skipped with a notice. `KUBESCHED_NO_INSTALL=1` leaves the machine as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from playground_process import OLDEST_KUBECTL

PACKAGES = {"chromium": "chromium", "kubectl": "kubernetes-client"}
LIST_WITHIN_S = 60.0
INSTALL_WITHIN_S = 300.0

_QUICK = ("-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=15", "-o", "DPkg::Lock::Timeout=30")
_ENVIRONMENT = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}


def main(tried: Path) -> None:
    missing = [command for command in PACKAGES if shutil.which(command) is None]
    if not missing or tried.exists():
        return
    if os.environ.get("KUBESCHED_NO_INSTALL") or os.geteuid() != 0 or shutil.which("apt-get") is None:
        _say(f"e2e-setup: no {' and no '.join(missing)} here, and not for us to install")
        return
    tried.touch()
    _run(["apt-get", *_QUICK, "update"], LIST_WITHIN_S)
    wanted = [PACKAGES[command] for command in missing if command != "kubectl" or _is_kubectl_new_enough()]
    if wanted and not _run(["apt-get", *_QUICK, "install", "-y", "--no-install-recommends", *wanted], INSTALL_WITHIN_S):
        _say(f"e2e-setup: apt did not install {' '.join(wanted)}")


def _is_kubectl_new_enough() -> bool:
    """Debian 12 has one of 2021, which does not get along with a server of today."""
    command = ["apt-cache", "policy", PACKAGES["kubectl"]]
    said = subprocess.run(command, env=_ENVIRONMENT, capture_output=True, text=True, check=False).stdout
    found = re.search(r"Candidate: (?:\d+:)?(\d+)\.(\d+)", said)
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST_KUBECTL


def _run(command: list[str], within_s: float) -> bool:
    try:
        done = subprocess.run(command, env=_ENVIRONMENT, capture_output=True, timeout=within_s, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
