"""The reference page of the flags, made from their table and from that of the feature gates.

python -m kubesched.live.options.reference_page > docs/reference/flags.md
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from kubesched.live.options.flag import Flag, FlagUse
from kubesched.live.options.flag_table import FLAGS, GROUPS
from kubesched.scheduler.config.feature_gates import (
    GATES_WITHOUT_EFFECT,
    KNOWN_GATES,
    REFUSED_GATES,
    SWITCHES,
    FeatureGates,
)

_HEAD = """# Flags

This page is generated (`make docs`). `kubesched run` accepts the flags of kube-scheduler v1.36.4, so that existing
command lines keep working, and `--plugin`, `--context`, `--no-class-cache`, `--record` and `--web`. Flags of earlier
versions are accepted too, under *Older*: see [older configurations](../guides/older-configurations.md).

- `--flag=value` and `--flag value` are the same; a boolean flag may be given without a value, and `--flag=false`
  turns it off. Durations are Go's (`15s`, `1m30s`); `_` in a name is read as `-`.
- Lists are separated by commas, and lists given twice are joined. Of any other flag the last value counts.
- Without `--config`, deprecated flags and those of leader election override the defaults of the
  [configuration](configuration.md). With it, those of leader election override the file; the deprecated flags marked
  with * are ignored, with a warning.
- *no effect*: accepted, with a warning that says why it has no effect. *refused*: an error, unless the value is the
  default.
- An invalid flag or value is reported in one line on standard error, with exit code 2.
"""

_GATES = f"""
## Feature gates

All {len(KNOWN_GATES)} gates of kube-scheduler v1.36.4 are known. A gate of another component is accepted and has no
effect. A gate that does not exist, is locked or lacks a gate that it depends on is an error, with kube-scheduler's
message.
`AllAlpha` and `AllBeta` set all gates of their stage that are not given themselves.
"""

_SWITCHES = """
### Enabled and disabled as in kube-scheduler
"""

_REFUSED = """
### Refused unless at their default

kubesched decides as kube-scheduler does with these defaults.
"""

_WITHOUT_EFFECT = """
### Without effect

Accepted; a warning says so.
"""


def page() -> str:
    groups = "".join(map(_group, GROUPS))
    return (
        f"{_HEAD}{groups}{_GATES}{_SWITCHES}{_gate_table(SWITCHES, 'what it turns on')}"
        f"{_REFUSED}{_gate_table(REFUSED_GATES)}"
        f"{_WITHOUT_EFFECT}{_gate_table(GATES_WITHOUT_EFFECT)}"
    )


def _group(group: str) -> str:
    rows = "".join(_row(flag) for flag in FLAGS if flag.group == group)
    return f"\n## {group.capitalize()}\n\n| flag | value | default | meaning |\n|---|---|---|---|\n{rows}"


def _row(flag: Flag) -> str:
    names = ", ".join(f"`{name}`" for name in flag.shown.split(", "))
    mark = " *" if flag.yields_to_config else ""
    default = flag.kind.show(flag.default)
    help_text = flag.help if flag.use is FlagUse.USED else f"{flag.help} *{flag.use.value}*: {flag.why}"
    return f"| {names}{mark} | {_cell(flag.kind.name or 'bool')} | {_code(default)} | {_cell(help_text)} |\n"


def _gate_table(gates: Mapping[str, str], heading: str = "why") -> str:
    rows = "".join(f"| {name} | {_default(name)} | {text} |\n" for name, text in gates.items())
    return f"\n| gate | default | {heading} |\n|---|---|---|\n{rows}"


def _default(gate: str) -> str:
    return "on" if FeatureGates()[gate] else "off"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace(" * ", " `*` ")


if __name__ == "__main__":
    sys.stdout.write(page())
