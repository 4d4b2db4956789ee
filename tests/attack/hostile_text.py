"""Hostile names, and checks that output to a terminal, a spreadsheet or a browser never contains them unescaped."""

from __future__ import annotations

import csv
import re
import subprocess
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from support.kineto_trace import KinetoTrace, begin_ns

# Clear screen, set title, bell; CSI as one C1 character; bidirectional overrides; line separators; invisible tags.
NAMES = [
    "a\x1b[2Jb",
    "a\x1b[8mhidden",
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
KEPT_CHARACTERS = {"\n", "\t", "\u200c", "\u200d"}
COLOUR_SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")


def find_interpreted_characters(text: str) -> set[str]:
    """Characters that a terminal interprets instead of showing. Colour sequences of the program itself are allowed; it
    hides nothing."""
    if "\x1b[8m" in text:
        return {"\x1b[8m"}
    return {
        repr(character)
        for character in COLOUR_SEQUENCE.sub("", text)
        if character not in KEPT_CHARACTERS
        and unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")
        and character != "\u00ad"
    }


def find_formulas(csv_text: str) -> list[str]:
    """Cells that a spreadsheet evaluates as formulas: they start with a formula character and are not numbers."""

    def is_number(cell: str) -> bool:
        try:
            float(cell)
        except ValueError:
            return False
        return True

    cells = [cell for row in csv.reader(csv_text.splitlines()) for cell in row]
    return [cell for cell in cells if cell[:1] in "=+-@\t\r" and cell and not is_number(cell)]


def hostile_recording(binaries: Path, folder: Path, names: Sequence[str], file: str, trace_file: str) -> Path:
    """Imports a trace whose layers, operations and kernels have these names; returns the recording."""
    trace = KinetoTrace()
    trace.add("user_annotation", "ProfilerStep#0", 0, 50_000 * (len(names) + 1))
    for i, name in enumerate(names):
        begin = 1000 + 50_000 * i
        trace.add("python_function", f"nn.Module: {name}_0", begin, 40_000)
        trace.add("cpu_op", name, begin + 100, 30_000)
        trace.kernel(name, begin + 1000, 20_000, trace.launch(begin + 200))
    power = folder / "power.csv"
    times = [begin_ns() + i * 10**8 for i in range(len(names) // 2 + 3)]
    power.write_text(
        "time_unix_ns,domain,kind,value\n"
        + "".join(f"{sample_time_ns},gpu0,power_w,300\n" for sample_time_ns in times)
        + "".join(f"{sample_time_ns},a\x1b[8mhidden,power_w,1\n" for sample_time_ns in times)
    )
    recording_file = folder / file
    run = [
        binaries / "joulemap",
        "import",
        "kineto",
        trace.write(folder / trace_file),
        "--power",
        power,
        "-o",
        recording_file,
    ]
    subprocess.run(run, check=True, timeout=60, capture_output=True)
    return recording_file
