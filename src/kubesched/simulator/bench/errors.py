"""What can be wrong with a workload file: always said with the file, the place in it and the field."""

from __future__ import annotations


class WorkloadError(ValueError):
    """A workload cannot be read or run as it is written."""

    def __init__(self, source: str, where: str, problem: str) -> None:
        super().__init__(source, where, problem)
        self.source = source
        self.where = where
        self.problem = problem

    def __str__(self) -> str:
        return ": ".join(part for part in (self.source, self.where, self.problem) if part)
