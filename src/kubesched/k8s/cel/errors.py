"""What can go wrong with an expression, compiling or evaluating it, and the place in its text that is to blame.

Messages are the ones that cel-go and Kubernetes give, because users see them in pod conditions and events. Offsets
count code points from 0, lines from 1 and columns from 0; a message shows columns from 1, the line it is about, and a
mark under the place, as cel-go prints it.

Next: `parser` is the first to find something wrong.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from kubesched.k8s.errors import KubeschedError


class CelError(KubeschedError):
    """Anything wrong with a CEL selector."""


class CelCompileError(CelError):
    """The expression is not a valid selector, whatever the device."""


class CelEvaluationError(CelError):
    """The expression has no value for this device. `&&`, `||` and the quantifiers may absorb it."""


class CelAbort(CelError):  # noqa: N818 - a signal within an evaluation; who evaluates gets a CelEvaluationError
    """The whole evaluation is given up, as too expensive or because cel-go itself fails there. Nothing absorbs it."""


MAX_COST = 1_000_000
"""What one evaluation may cost, in CEL's cost units."""

COST_EXCEEDED = "operation cancelled: actual cost limit exceeded"

NO_SUCH_OVERLOAD = "no such overload"


def no_such_overload() -> CelEvaluationError:
    """An operation met a value of a type that it does not take."""
    return CelEvaluationError(NO_SUCH_OVERLOAD)


NOWHERE = -1
"""The offset of a message that is about the whole expression."""

_MAX_MESSAGES = 100
_MAX_SNIPPET_BYTES = 16384


@dataclass(frozen=True, slots=True)
class SourceIssue:
    """One thing wrong, and the offset it is at."""

    offset: int
    message: str


class SourceText:
    """An expression that knows its lines and collects what is wrong with it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._line_starts = [0, *(i + 1 for i, char in enumerate(text) if char == "\n")]
        self._issues: list[SourceIssue] = []

    def report(self, offset: int, message: str) -> None:
        self._issues.append(SourceIssue(offset, message))

    def raise_issues(self) -> None:
        """Raise one error that lists all that was reported, in the order of the text."""
        if self._issues:
            raise CelCompileError("compilation failed: " + self._display())

    def location(self, offset: int) -> tuple[int, int]:
        """Line from 1 and column from 0."""
        if offset == NOWHERE:
            return -1, -1
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1]

    def _display(self) -> str:
        ordered = sorted(self._issues, key=lambda issue: self.location(issue.offset))
        shown = [self._display_one(issue) for issue in ordered[:_MAX_MESSAGES]]
        if len(ordered) > _MAX_MESSAGES:
            shown.append(f"{len(ordered) - _MAX_MESSAGES} more errors were truncated")
        return "\n".join(shown)

    def _display_one(self, issue: SourceIssue) -> str:
        line, column = self.location(issue.offset)
        head = f"ERROR: <input>:{line}:{column + 1 if self.text else 0}: {issue.message}"
        if line < 1 or not self.text:
            return head
        snippet = self._line(line)
        if len(snippet.encode()) > _MAX_SNIPPET_BYTES:
            return head
        snippet = snippet.replace("\t", " ")
        dots = "".join("." if char.isascii() else "\uff0e" for char in snippet[:column])
        mark = "^" if snippet[column : column + 1].isascii() else "\uff3e"
        return f"{head}\n | {snippet}\n | {dots}{mark}"

    def _line(self, line: int) -> str:
        start = self._line_starts[line - 1]
        end = self._line_starts[line] - 1 if line < len(self._line_starts) else len(self.text)
        return self.text[start:end]
