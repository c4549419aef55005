"""Runs Kubernetes' own e2e suite (a user's `e2e.test`) on a fresh playground and says which specs pass.

`make conformance E2E_TEST=/path/to/e2e.test` runs every family; `SUITES="scheduling auth"` only these. The playground
is kept in a directory of its own and gone afterwards. Exit code 0 when every family reaches its target, 1 when one does
not, 2 when the suite could not be run. docs/guides/conformance.md explains the families.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

READY_TIMEOUT_S = 120


@dataclass(frozen=True)
class Family:
    """Specs of one special interest group, and what share of them must pass."""

    name: str
    focus: str
    skips: tuple[str, ...] = ()
    target_percent: float = 100.0
    n_nodes: int = 3


FAMILIES = (
    Family("scheduling", r"\[sig-scheduling\]", (r"\[Feature:OffByDefault\]",)),
    Family(
        "api-machinery",
        r"\[sig-api-machinery\].*\[Conformance\]",
        (r"AdmissionWebhook", r"CustomResourceConversionWebhook", r"\] Aggregator ", r"API priority and fairness"),
        95.0,
    ),
    # These look into containers or talk to them over the pod network, and hollow nodes run none.
    Family(
        "apps",
        r"\[sig-apps\].*\[Conformance\]",
        (
            r"should serve a basic image on each replica",
            r"StatefulSet Basic .* (Burst scaling|Scaling should happen|should perform rolling updates)",
        ),
        90.0,
    ),
    Family(
        "auth",
        r"\[sig-auth\].*\[Conformance\]",
        (r"should mount (an API|projected service account) token", r"should support OIDC discovery of service account"),
        90.0,
    ),
)


@dataclass
class Outcome:
    """What became of the specs of a family."""

    passed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def n_ran(self) -> int:
        return len(self.passed) + len(self.failed)

    @property
    def percent(self) -> float:
        return 100.0 * len(self.passed) / self.n_ran if self.n_ran else 0.0


def main() -> int:
    """Parses the options, runs the families and prints the answer."""
    options = _options()
    chosen = [family for family in FAMILIES if not options.families or family.name in options.families]
    if not options.e2e_test.is_file():
        print(f"error: --e2e-test {options.e2e_test}: no such file", file=sys.stderr)
        return 2
    options.reports.mkdir(parents=True, exist_ok=True)
    are_all_reached = True
    for family in chosen:
        with _playground(family.n_nodes, options.reports / f"{family.name}-playground.log") as kubeconfig:
            outcome = _run(options.e2e_test, family, kubeconfig, options.reports, options.focus)
        if outcome is None:
            print(
                f"error: {family.name}: the suite did not run; see {_log_of(options.reports, family)}", file=sys.stderr
            )
            return 2
        tell(family, outcome)
        are_all_reached &= outcome.percent >= family.target_percent
    return 0 if are_all_reached else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs Kubernetes' e2e.test on a fresh playground.")
    parser.add_argument("--e2e-test", type=Path, required=True, metavar="FILE", help="Kubernetes' e2e.test, v1.36")
    parser.add_argument("--reports", type=Path, default=Path("build/conformance"), metavar="DIR", help="logs and JUnit")
    parser.add_argument("--focus", metavar="REGEX", help="specs that match this instead of the family's")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(family.name for family in FAMILIES))
    options = parser.parse_args()
    unknown = sorted(set(options.families) - {family.name for family in FAMILIES})
    if unknown:
        parser.error(f"no such family: {', '.join(unknown)}; there are {', '.join(family.name for family in FAMILIES)}")
    return options


@contextlib.contextmanager
def _playground(n_nodes: int, log: Path) -> Iterator[Path]:
    """A cluster on a free port for as long as it is needed; gives its kubeconfig."""
    with tempfile.TemporaryDirectory(prefix="kubesched-conformance-") as folder, log.open("wb") as output:
        kubesched = Path(sys.executable).with_name("kubesched")
        command = [str(kubesched), "up", "--data", folder, "--port", "0", "--nodes", str(n_nodes)]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            kubeconfig = Path(folder) / "kubeconfig"
            deadline = time.monotonic() + READY_TIMEOUT_S
            while "export KUBECONFIG" not in log.read_text(errors="replace"):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"error: the playground did not start; see {log}")
                time.sleep(0.2)
            yield kubeconfig
        finally:
            process.terminate()
            process.wait()


def _run(e2e_test: Path, family: Family, kubeconfig: Path, reports: Path, focus: str | None) -> Outcome | None:
    junit = reports / f"{family.name}.xml"
    junit.unlink(missing_ok=True)
    command = [
        str(e2e_test),
        "-provider=skeleton",
        f"-kubeconfig={kubeconfig}",
        f"-ginkgo.focus={family.focus if focus is None else focus}",
        *(f"-ginkgo.skip={skip}" for skip in family.skips),
        "-ginkgo.no-color",
        "-ginkgo.timeout=3h",
        f"-ginkgo.junit-report={junit}",
    ]
    with _log_of(reports, family).open("wb") as output:
        subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    return read_outcome(junit) if junit.exists() else None


def _log_of(reports: Path, family: Family) -> Path:
    return reports / f"{family.name}.log"


def read_outcome(junit: Path) -> Outcome:
    """What a JUnit report of the suite says of each spec that was chosen."""
    outcome = Outcome()
    for case in ElementTree.parse(junit).iter("testcase"):
        match = re.match(r"\[It\] (.*)", case.get("name", ""))
        if match is None:
            continue
        name, status = match[1], case.get("status")
        if status == "passed":
            outcome.passed.append(name)
        elif status == "skipped":
            _note(case.find("skipped"), name, outcome.skipped)
        else:
            problem = case.find("failure")
            _note(case.find("error") if problem is None else problem, name, outcome.failed)
    return outcome


def _note(element: ElementTree.Element | None, name: str, into: dict[str, str]) -> None:
    """A skip without words is a spec that was not chosen; one with words found that it cannot run here."""
    said = "" if element is None else element.get("message", "")
    if said == "skipped":
        return
    into[name] = " ".join(said.split())


def tell(family: Family, outcome: Outcome) -> None:
    """Prints the answer, then each spec that did not pass."""
    verdict = "reached" if outcome.percent >= family.target_percent else "MISSED"
    print(
        f"{family.name}: {len(outcome.passed)} of {outcome.n_ran} specs pass ({outcome.percent:.1f} %; "
        f"target {family.target_percent:g} % {verdict}); {len(outcome.skipped)} cannot run here"
    )
    for name, said in sorted(outcome.failed.items()):
        print(f"  FAILED  {name}\n          {said[:300]}")
    for name, said in sorted(outcome.skipped.items()):
        print(f"  skipped {name}: {said[:160]}")


if __name__ == "__main__":
    sys.exit(main())
