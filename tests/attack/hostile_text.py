"""Names as an attacker would choose them, and what a terminal, a spreadsheet or a browser must never be given of them."""

from __future__ import annotations

import re
import unicodedata

# Clears a screen, sets a title, rings; C1's CSI in one character; turned direction; line ends that are none; hidden tags.
NAMES = [
    "a\x1b[2Jb",
    "\x1b]0;title\x07",
    "nul\x00bel\x07",
    "csi\u009b2Jx",
    "\u202egpj.exe",
    "line\u2028of\u2029its\u0085own",
    "\u2066turned\u2069\u200f\u061c",
    "hidden\u200b\ufeff\U000e0041",
    "over\rwritten\b\b",
    "=HYPERLINK(1)",
    "@SUM(1)",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "</script><script>hostile()</script>",
    "<img src=x onerror=hostile()>",
    "`$(touch owned)`",
]
KEPT = {"\n", "\t", "\u200c", "\u200d"}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def obeyed_characters(text: str) -> set[str]:
    """What a terminal would obey rather than show. Colours are the program's own."""
    return {
        repr(character)
        for character in COLOUR.sub("", text)
        if character not in KEPT and unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") and character != "\u00ad"
    }


def formulas(csv_text: str) -> list[str]:
    """Cells that a spreadsheet would compute: they begin so and are no numbers."""
    import csv  # noqa: PLC0415

    def is_number(cell: str) -> bool:
        try:
            float(cell)
        except ValueError:
            return False
        return True

    cells = [cell for row in csv.reader(csv_text.splitlines()) for cell in row]
    return [cell for cell in cells if cell[:1] in "=+-@\t\r" and cell and not is_number(cell)]
