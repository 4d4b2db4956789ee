# SPDX-License-Identifier: Apache-2.0
"""Reads a trace of arrivals: a CSV file with the columns arrival_s, prompt_tokens, output_tokens and, optionally, tenant."""

from __future__ import annotations

import csv
import math
import os
from dataclasses import dataclass
from typing import Iterable, Optional, Union

from .lengths import MAX_TOKENS

REQUIRED_COLUMNS = ("arrival_s", "prompt_tokens", "output_tokens")
MAX_TRACE_ROWS = 1_000_000


class ArrivalTraceError(ValueError):
    """A trace that cannot be used; the text names the line."""


@dataclass(frozen=True)
class ArrivalTraceRow:
    arrival_s: float  # after the first arrival
    prompt_tokens: int
    output_tokens: int
    tenant: Optional[str]


def read_arrival_trace(path: Union[str, os.PathLike]) -> list[ArrivalTraceRow]:
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        return parse_arrival_trace(file)


def parse_arrival_trace(lines: Iterable[str]) -> list[ArrivalTraceRow]:
    """Rows in the order of their arrivals; the first arrives at 0 s."""
    reader = csv.DictReader(lines, skipinitialspace=True)
    missing_columns = [name for name in REQUIRED_COLUMNS if name not in (reader.fieldnames or ())]
    if missing_columns:
        raise ArrivalTraceError(
            f"the trace has no column {', '.join(missing_columns)}: it needs {', '.join(REQUIRED_COLUMNS)}"
        )
    rows: list[ArrivalTraceRow] = []
    first_arrival_s = 0.0
    try:
        for record in reader:
            arrival_s = _parse_time_s(record["arrival_s"], reader.line_num)
            first_arrival_s = first_arrival_s if rows else arrival_s
            if rows and arrival_s - first_arrival_s < rows[-1].arrival_s:
                raise ArrivalTraceError(
                    f"line {reader.line_num} arrives before the line above it: sort the trace by arrival_s"
                )
            token_lengths = [_parse_tokens(record[name], name, reader.line_num) for name in REQUIRED_COLUMNS[1:]]
            rows.append(
                ArrivalTraceRow(arrival_s - first_arrival_s, *token_lengths, tenant=record.get("tenant") or None)
            )
            if len(rows) > MAX_TRACE_ROWS:
                raise ArrivalTraceError(f"the trace has more than {MAX_TRACE_ROWS} rows")
    except csv.Error as error:
        raise ArrivalTraceError(f"line {reader.line_num}: {error}") from error
    if not rows:
        raise ArrivalTraceError("the trace has no rows")
    return rows


def _parse_time_s(text: Optional[str], line_number: int) -> float:
    try:
        time_s = float(text or "")
    except ValueError:
        time_s = math.nan
    if not math.isfinite(time_s):
        raise ArrivalTraceError(f"line {line_number}: arrival_s is not a number of seconds: {text!r}")
    return time_s


def _parse_tokens(text: Optional[str], column_name: str, line_number: int) -> int:
    digits = (text or "").strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and 1 <= int(digits) <= MAX_TOKENS):
        raise ArrivalTraceError(
            f"line {line_number}: {column_name} is not a whole number from 1 to {MAX_TOKENS}: {text!r}"
        )
    return int(digits)
