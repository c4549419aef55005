"""Everything that is known about a decision, as plain data: what `-o json`, `-o yaml` and `/explain` give.

docs/reference/explanation.md describes it key by key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubesched.explanation.record import status_record

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation


def full_report(explanation: Explanation) -> dict[str, Any]:
    failing: dict[str, Any] = {}
    numbers: dict[str, Any] = {}
    if explanation.failures is not None and explanation.numbers is not None:
        for row, name in enumerate(explanation.cluster.table.names):
            statuses = explanation.failures.statuses(row)
            if statuses:
                failing[name] = [status_record(status) for status in statuses]
                numbers[name] = [finding.to_dict() for finding in explanation.numbers.of(row)]
    return {
        "pod": explanation.pod.key,
        "scheduler": explanation.scheduler.profile.scheduler_name,
        "headline": explanation.headline,
        "cause": explanation.cause.to_dict(),
        "groups": [group.to_dict() for group in explanation.groups],
        "changes": [change.to_dict() for change in explanation.changes],
        "explanation": explanation.to_dict(),
        "failing": failing,
        "numbers": numbers,
    }
