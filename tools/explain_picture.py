"""Draws the terminal that the README begins with: what `kubesched explain` answers today, in its colours.

`make docs` writes docs/pictures/explain.svg. Its fonts are those that machines have: it loads nothing from elsewhere.
"""

from __future__ import annotations

import io
from pathlib import Path

from click.testing import CliRunner
from rich.console import Console
from rich.text import Text

from kubesched.cli.main import main as kubesched

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures" / "explain.svg"
ARGUMENTS = ("explain", "shop/report", "-f", "examples/explain")
TITLE = "why is this pod pending?"
COLUMNS = 118
_FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
    <style>
    .{unique_id}-matrix {{
        font-family: ui-monospace, Menlo, Consolas, monospace;
        font-size: {char_height}px;
        line-height: {line_height}px;
        font-variant-east-asian: full-width;
    }}
    .{unique_id}-title {{
        font-size: 18px;
        font-weight: bold;
        font-family: arial;
    }}
    {styles}
    </style>
    <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
    </clipPath>
    {lines}
    </defs>
    {chrome}
    <g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
    </g>
</svg>
"""


def draw() -> str:
    answer = CliRunner().invoke(kubesched, [*ARGUMENTS[:-1], str(ROOT / ARGUMENTS[-1]), "--color", "always"])
    assert answer.exit_code == 0, answer.output
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False, no_color=False)
    console.print(f"$ kubesched {' '.join(ARGUMENTS)}", style="bold green")
    console.print(Text.from_ansi(answer.stdout.rstrip("\n")))
    drawn = console.export_svg(title=TITLE, code_format=_FRAME, unique_id="explain")
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines())


if __name__ == "__main__":
    PICTURE.write_text(draw())
