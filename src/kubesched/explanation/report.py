"""Everything that is known about a decision, as plain data: what `-o json` and `-o yaml` print.

| key | what |
|---|---|
| `pod` | `namespace/name` |
| `scheduler` | the profile that decided |
| `explanation` | the decision, in the form of the test vectors (`record`) |
| `failing` | for each node that does not fit, every plugin that rejects it, not only the first |
| `numbers` | for each such node, what stands behind the rejections |
| `changes` | the smallest changes that would make the pod fit |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubesched.explanation.record import status_record

if TYPE_CHECKING:
    from kubesched.explanation.explain import Explanation


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
        "explanation": explanation.to_dict(),
        "failing": failing,
        "numbers": numbers,
        "changes": [change.to_dict() for change in explanation.changes],
    }
