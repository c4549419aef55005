"""How long a command runs and how it ends, where a few words of shell say it all; no process is ever started.

Understood are `true`, `false`, `exit N`, `sleep N`, `echo`, `date`, `touch`, tests of numbers, texts and files, `expr`,
`$((…))`, variables, and `if … then … elif … else … fi`, joined by `;`, `&&` and `||`. Whatever holds anything else is
not understood as a whole: then nobody here knows how it ends.

Next: `containers`, which asks.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, MutableSet, Sequence
from dataclasses import dataclass
from typing import NoReturn

LONGEST_SCRIPT = 4_000
_DEEPEST = 20
_SHELLS = frozenset({"sh", "bash", "ash", "dash"})
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SLEEP = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)$")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_ARITHMETIC = re.compile(r"\s*(-?\w+)\s*(?:([-+*/%])\s*(-?\w+)\s*)?$")
_WORDS = frozenset({"if", "then", "elif", "else", "fi"})
_UNKNOWN_SIGNS = frozenset("<>|&(){}`")

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}


class NotUnderstoodError(ValueError):
    """The script says more than this shell knows."""


@dataclass(frozen=True, slots=True)
class Ending:
    """`after_s` is None if it never ends by itself."""

    after_s: float | None
    exit_code: int = 0


class _Exit(Exception):  # noqa: N818 - how a script ends, no error
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class _Forever(Exception):  # noqa: N818 - a script that sleeps for good
    pass


def ending_of(argv: Sequence[str], variables: Mapping[str, str], files: MutableSet[str]) -> Ending:
    """Of a command with its arguments. `files` are the paths that exist; `touch` adds to them. Raises
    NotUnderstoodError."""
    if not argv:
        raise NotUnderstoodError("no command")
    words = list(argv)
    name = words[0].rpartition("/")[2]
    if name in _SHELLS and len(words) >= 3 and re.fullmatch(r"-[euxo]*c[euxo]*", words[1]):
        return _run(words[2], "e" in words[1], variables, files)
    if name in _SHELLS and len(words) == 1:
        return Ending(0.0)  # nobody tells it anything
    shell = _Shell(dict(variables), files, is_strict=False)
    return shell.ending(lambda: shell.command([name, *words[1:]]))


def _run(script: str, is_strict: bool, variables: Mapping[str, str], files: MutableSet[str]) -> Ending:
    if len(script) > LONGEST_SCRIPT:
        raise NotUnderstoodError("too long")
    shell = _Shell(dict(variables), files, is_strict)
    reader = _Reader(_tokens(script), shell)
    return shell.ending(reader.script)


def script_ending(script: str, variables: Mapping[str, str], files: MutableSet[str]) -> Ending:
    """Of a script as it stands. Raises NotUnderstoodError."""
    return _run(script, False, variables, files)


# -- reading -----------------------------------------------------------------------------------------------------------


def _tokens(script: str) -> list[str]:
    """Words, still quoted, and `;`, `&&`, `||`."""
    found: list[str] = []
    at = 0
    while at < len(script):
        letter = script[at]
        if letter in ";\n":
            found.append(";")
            at += 1
        elif letter.isspace():
            at += 1
        elif script.startswith(("&&", "||"), at):
            found.append(script[at : at + 2])
            at += 2
        elif letter == "#":
            end = script.find("\n", at)
            at = len(script) if end < 0 else end
        else:
            end = _word_end(script, at)
            found.append(script[at:end])
            at = end
    return found


def _word_end(script: str, at: int) -> int:
    while at < len(script) and not script[at].isspace() and script[at] not in ";":
        letter = script[at]
        if letter == "'":
            at = _closing(script, "'", at + 1)
        elif letter == '"':
            at += 1
            while at < len(script) and script[at] != '"':
                at = _expansion_end(script, at) if script[at] == "$" else at + 1
            at = _closing(script, '"', at)
        elif letter == "$":
            at = _expansion_end(script, at)
        elif letter == "\\":
            at += 2
        elif letter in _UNKNOWN_SIGNS:
            if script.startswith(("&&", "||"), at):
                return at
            raise NotUnderstoodError(letter)
        else:
            at += 1
    return min(at, len(script))


def _expansion_end(script: str, at: int) -> int:
    """Behind `$x`, `${x}`, `$(…)` or `$((…))`."""
    if script.startswith("$((", at):
        return _closing(script, "))", at + 3)
    if script.startswith("$(", at):
        return _closing(script, ")", at + 2)
    if script.startswith("${", at):
        return _closing(script, "}", at + 2)
    name = _NAME.match(script, at + 1)
    if name is None:
        raise NotUnderstoodError(script[at : at + 2])
    return name.end()


def _closing(script: str, sign: str, at: int) -> int:
    end = script.find(sign, at)
    if end < 0:
        raise NotUnderstoodError(f"no {sign}")
    return end + len(sign)


@dataclass(slots=True)
class _Reader:
    """Reads and carries out in one go; what is skipped is read without effect, and all of it is read so first."""

    tokens: list[str]
    shell: _Shell
    at: int = 0
    depth: int = 0

    def script(self) -> int:
        self._list(is_live=False, until=())
        self.at = 0
        return self._list(is_live=True, until=())

    def _list(self, *, is_live: bool, until: tuple[str, ...], is_condition: bool = False) -> int:
        status = 0
        while self.at < len(self.tokens) and self.tokens[self.at] not in until:
            if self.tokens[self.at] == ";":
                self.at += 1
                continue
            found = self._joined(is_live)
            status = found if is_live else status
            if is_live and found != 0 and self.shell.is_strict and not is_condition:
                raise _Exit(found)
        return status

    def _joined(self, is_live: bool) -> int:
        status = self._command(is_live)
        while self.at < len(self.tokens) and self.tokens[self.at] in ("&&", "||"):
            wants_success = self.tokens[self.at] == "&&"
            self.at += 1
            is_next = is_live and (status == 0) == wants_success
            found = self._command(is_next)
            status = found if is_next else status
        return status

    def _command(self, is_live: bool) -> int:
        if self.at < len(self.tokens) and self.tokens[self.at] == "if":
            return self._if(is_live)
        words: list[str] = []
        while self.at < len(self.tokens) and self.tokens[self.at] not in (";", "&&", "||"):
            words.append(self.tokens[self.at])
            self.at += 1
        if not words or words[0] in _WORDS:
            raise NotUnderstoodError(" ".join(words))
        if not is_live:
            self.shell.check(words)
            return 0
        return self.shell.command([text for word in words if (text := self.shell.expand(word)) is not None])

    def _if(self, is_live: bool) -> int:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise NotUnderstoodError("too deep")
        is_open, status, word = is_live, 0, "if"
        while word in ("if", "elif"):
            self._take(word)
            is_met = self._list(is_live=is_open, until=("then",), is_condition=True) == 0 and is_open
            self._take("then")
            found = self._list(is_live=is_met, until=("elif", "else", "fi"))
            status = found if is_met else status
            is_open = is_open and not is_met
            word = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if word == "else":
            self._take("else")
            found = self._list(is_live=is_open, until=("fi",))
            status = found if is_open else status
        self._take("fi")
        self.depth -= 1
        return status

    def _take(self, word: str) -> None:
        if self.at >= len(self.tokens) or self.tokens[self.at] != word:
            raise NotUnderstoodError(f"no {word}")
        self.at += 1


# -- doing -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Shell:
    variables: dict[str, str]
    files: MutableSet[str]
    is_strict: bool
    slept_s: float = 0.0

    def ending(self, body: Callable[[], int]) -> Ending:
        try:
            code = body()
        except _Exit as end:
            code = end.code
        except _Forever:
            return Ending(None)
        return Ending(self.slept_s, code)

    def check(self, words: Sequence[str]) -> None:
        """What is not carried out must be known all the same: a script is understood as a whole."""
        name = words[0]
        if name not in _COMMANDS and not (len(words) == 1 and _ASSIGNMENT.fullmatch(name)):
            raise NotUnderstoodError(name)

    def command(self, words: list[str]) -> int:
        if not words:
            return 0
        given = _ASSIGNMENT.fullmatch(words[0])
        if given is not None and len(words) == 1:
            self.variables[given[1]] = given[2]
            return 0
        doing = _COMMANDS.get(words[0])
        if doing is None:
            raise NotUnderstoodError(words[0])
        return doing(self, words[1:])

    def expand(self, word: str) -> str | None:
        """Without its quotes, with variables in place; None for an unquoted word that comes to nothing."""
        made, at, is_quoted = "", 0, False
        while at < len(word):
            letter = word[at]
            if letter == "'":
                end = word.index("'", at + 1)
                made, at, is_quoted = made + word[at + 1 : end], end + 1, True
            elif letter == '"':
                at, is_quoted = at + 1, True
            elif letter == "\\":
                made, at = made + word[at + 1 : at + 2], at + 2
            elif letter == "$":
                end = _expansion_end(word, at)
                made, at = made + self._value(word[at:end]), end
            else:
                made, at = made + letter, at + 1
        return made if made or is_quoted else None

    def _value(self, text: str) -> str:
        if text.startswith("$(("):
            return str(self._number(text[3:-2]))
        if text.startswith("$("):
            words = [found for word in text[2:-1].split() if (found := self.expand(word)) is not None]
            if not words or words[0] != "expr":
                raise NotUnderstoodError(text)
            return str(self._number(" ".join(words[1:])))
        return self.variables.get(text[1:].strip("{}"), "")

    def _number(self, text: str) -> int:
        plain = re.sub(r"\$\{?([A-Za-z_]\w*)\}?", lambda found: self.variables.get(found[1], "0") or "0", text)
        found = _ARITHMETIC.match(plain)
        if found is None:
            raise NotUnderstoodError(text)
        left = self._term(found[1])
        if found[2] is None:
            return left
        right = self._term(found[3])
        if found[2] in "/%" and right == 0:
            raise _Exit(2)
        if found[2] == "/":
            return int(left / right)
        if found[2] == "%":
            return left - right * int(left / right)
        return {"+": left + right, "-": left - right, "*": left * right}[found[2]]

    def _term(self, text: str) -> int:
        value = text if text.lstrip("-").isdecimal() else self.variables.get(text, "0")
        if not value.lstrip("-").isdecimal() or len(value) > 18:
            raise NotUnderstoodError(text)
        return int(value)

    def succeed(self, _words: list[str]) -> int:
        return 0

    def fail(self, _words: list[str]) -> int:
        return 1

    def exit(self, words: list[str]) -> NoReturn:
        code = words[0] if words else "0"
        if not code.isdecimal() or len(code) > 9:
            raise NotUnderstoodError(f"exit {code}")
        raise _Exit(int(code) % 256)

    def sleep(self, words: list[str]) -> int:
        for word in words:
            if word in ("infinity", "inf"):
                raise _Forever
            found = _SLEEP.match(word)
            if found is None or len(word) > 12:
                raise NotUnderstoodError(f"sleep {word}")
            self.slept_s += float(found[1]) * _UNITS[found[2]]
        return 0

    def touch(self, words: list[str]) -> int:
        for word in words:
            self.files.add(word)
        return 0

    def test(self, words: list[str]) -> int:
        asked = [word for word in words if word not in ("]", "]]")]
        is_negated = bool(asked) and asked[0] == "!"
        return 0 if self._holds(asked[1:] if is_negated else asked) != is_negated else 1

    def _holds(self, asked: list[str]) -> bool:
        match asked:
            case [] | ["-n"]:
                return False
            case ["-z"]:
                return True
            case [text]:
                return bool(text)
            case ["-r" | "-e" | "-f" | "-s", path]:
                return path in self.files
            case ["-n", text]:
                return bool(text)
            case ["-z", text]:
                return not text
            case [left, "=" | "==", right]:
                return left == right
            case [left, "!=", right]:
                return left != right
            case [left, sign, right] if sign in _COMPARISONS:
                return _COMPARISONS[sign](self._term(left), self._term(right))
        raise NotUnderstoodError(" ".join(asked))


_COMMANDS: dict[str, Callable[[_Shell, list[str]], int]] = {
    "true": _Shell.succeed,
    ":": _Shell.succeed,
    "echo": _Shell.succeed,
    "date": _Shell.succeed,
    "false": _Shell.fail,
    "exit": _Shell.exit,
    "sleep": _Shell.sleep,
    "touch": _Shell.touch,
    "test": _Shell.test,
    "[": _Shell.test,
    "[[": _Shell.test,
}
