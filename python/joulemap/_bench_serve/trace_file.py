# SPDX-License-Identifier: Apache-2.0
"""Reads a trace of arrivals: a CSV file with the columns arrival_s, prompt_tokens, output_tokens and, optionally, tenant."""

from __future__ import annotations

import csv
import math
import os
from dataclasses import dataclass
from typing import Iterable, Optional, Union

from .lengths import MAX_TOKENS

COLUMNS = ("arrival_s", "prompt_tokens", "output_tokens")
MAX_ROWS = 1_000_000


class TraceError(ValueError):
    """A trace that cannot be used; the text names the line."""


@dataclass(frozen=True)
class TraceRow:
    arrival_s: float  # after the first arrival
    prompt_tokens: int
    output_tokens: int
    tenant: Optional[str]


def read_trace(path: Union[str, os.PathLike]) -> list[TraceRow]:
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        return parse_trace(file)


def parse_trace(lines: Iterable[str]) -> list[TraceRow]:
    """Rows in the order of their arrivals; the first arrives at 0 s."""
    reader = csv.DictReader(lines, skipinitialspace=True)
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise TraceError(f"the trace has no column {', '.join(missing)}: it needs {', '.join(COLUMNS)}")
    rows: list[TraceRow] = []
    first_s = 0.0
    try:
        for record in reader:
            arrival_s = _time_s(record["arrival_s"], reader.line_num)
            first_s = first_s if rows else arrival_s
            if rows and arrival_s - first_s < rows[-1].arrival_s:
                raise TraceError(f"line {reader.line_num} arrives before the line above it: sort the trace by arrival_s")
            lengths = [_tokens(record[name], name, reader.line_num) for name in COLUMNS[1:]]
            rows.append(TraceRow(arrival_s - first_s, *lengths, tenant=record.get("tenant") or None))
            if len(rows) > MAX_ROWS:
                raise TraceError(f"the trace has more than {MAX_ROWS} rows")
    except csv.Error as error:
        raise TraceError(f"line {reader.line_num}: {error}") from error
    if not rows:
        raise TraceError("the trace has no rows")
    return rows


def _time_s(text: Optional[str], line: int) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise TraceError(f"line {line}: arrival_s is not a number of seconds: {text!r}")
    return value


def _tokens(text: Optional[str], name: str, line: int) -> int:
    digits = (text or "").strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and 1 <= int(digits) <= MAX_TOKENS):
        raise TraceError(f"line {line}: {name} is not a whole number from 1 to {MAX_TOKENS}: {text!r}")
    return int(digits)
