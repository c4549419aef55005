"""The same questions in two other Pythons, whose texts have other hashes: what comes from the order of a set differs.

Run as a module it is the other Python: it reads which plugin to ask from standard input and writes the answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from kubesched.plugin_tools.check.answer_checks import shown
from kubesched.plugin_tools.check.asking import BrokenPluginError, PluginTrial
from kubesched.plugin_tools.check.drawing import drawn_cases
from kubesched.plugin_tools.check.report import RuleViolation
from kubesched.plugin_tools.check.subject import Case, Subject, Words

_SEEDS = ("1", "2")
_MOST_CASES = 100
_TIMEOUT_S = 120


def differs_elsewhere(subject: Subject, seed: int, n_cases: int) -> tuple[RuleViolation, Case] | None:
    """The case with the fewest objects whose answers differ, if there is one."""
    n_cases = min(n_cases, _MOST_CASES)
    request: dict[str, Any] = {"file": subject.origin, "name": subject.name, "args": subject.reload_args}
    request["words"] = asdict(subject.words)
    others = _answers_of_others(json.dumps({**request, "seed": seed, "n_cases": n_cases}))
    cases = list(drawn_cases(subject.words, seed, n_cases))
    found = [_difference(one, two, case) for one, two, case in zip(*others, cases, strict=True)]
    broken = [pair for pair in found if pair is not None]
    return min(broken, key=lambda pair: len(pair[1].objects), default=None)


def _answers_of_others(request: str) -> list[list[Any]]:
    command = [sys.executable, "-m", "kubesched.plugin_tools.check.hash_seeds"]
    started = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
        for hash_seed in _SEEDS
    ]
    answers = []
    for process in started:
        try:
            said, complaint = process.communicate(request, timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            for other in started:
                other.kill()
                other.communicate()
            raise OtherPythonError(f"no answer within {_TIMEOUT_S} seconds") from None
        if process.returncode:
            raise OtherPythonError(complaint.strip().splitlines()[-1] if complaint.strip() else "no answer")
        answers.append(json.loads(said.splitlines()[-1]))
    return answers


class OtherPythonError(Exception):
    """The plugin could not be asked in another Python."""


def _difference(one: Any, two: Any, case: Case) -> tuple[RuleViolation, Case] | None:
    for part in ("gate", "statuses", "scores"):
        if one[part] == two[part]:
            continue
        nodes = [name for name in one[part] if one[part][name] != two[part].get(name)] if part != "gate" else [""]
        node = nodes[0] if nodes else ""
        said = [found[part].get(node) if part != "gate" else found[part] for found in (one, two)]
        problem = "answers otherwise in another Python: does it go through a set, or by hash()?"
        return RuleViolation(problem, node, dict(zip(("one Python", "another"), map(str, said), strict=True))), case
    return None


def main(request: dict[str, Any]) -> list[Any]:
    """What the plugin says about every case."""
    from kubesched.plugin_tools.check.subject import outside_subjects
    from kubesched.scheduler.plugin_loading import plugins_from_files

    outside = plugins_from_files([request["file"]], enable=True)
    subjects = outside_subjects(outside, lambda _name: request["args"], from_files=True)
    subject = next(found for found in subjects if found.name == request["name"])
    words = {part: tuple(found) for part, found in request["words"].items()}
    subject = replace(subject, words=Words(**words))
    return _all_answers(subject, list(drawn_cases(subject.words, request["seed"], request["n_cases"])))


def _all_answers(subject: Subject, cases: Sequence[Case]) -> list[Any]:
    found = []
    for case in cases:
        try:
            answers = PluginTrial(subject, case).answers()
        except BrokenPluginError:
            found.append({"gate": "", "statuses": {}, "scores": {}})
            continue
        statuses = {name: shown(status) for name, status in answers.statuses.items()}
        found.append({"gate": shown(answers.gate), "statuses": statuses, "scores": answers.scores})
    return found


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main(json.load(sys.stdin))) + "\n")
