# SPDX-License-Identifier: Apache-2.0
"""Stores measurements as JSON lines in append-only files: an interrupted run loses only the row in progress.

A folder contains `rows.jsonl` (one measurement per line), `slices.jsonl` (one run of the collector per line) and
`begun`, the key of the row in progress. If the process dies, the next run finds that key in `begun` and skips the
row. RowStore in files of other runs (`*.jsonl`, `*.jsonl.gz`) count as measured, too.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Iterator, Optional

from . import tables

# Minimum duration of a kernel, s; a shorter call is a view.
MIN_CALL_S = 3e-7
# A shorter call (s) must be measured in a graph. Slightly below measure.MAX_GRAPH_CALL_S, since back-to-back calls
# overlap.
MIN_CALL_WITHOUT_GRAPH_S = 7e-4
KINDS_WITHOUT_CUDA_GRAPH = {"network", "compiled", "optimizer", "input", "recurrent"}
# Failure text of early slices for lost power samples; such rows are no longer written.
MISSING_SAMPLES_REASON = "too few samples of power"


# A step with a lower GPU-busy share is host-bound.
MIN_BUSY_SHARE = 0.9
# A launch slower than this factor times the fastest launch of its run shows a disturbed host.
MAX_LAUNCH_RATIO = 1.25
# If the host needs at least this share of a step's time to issue it, the step is timed in windows (windows.py).
MAX_ISSUE_SHARE = 0.7
# If the host needs less than this share, the step is never host-bound, however slow the host is.
SMALL_ISSUE_SHARE = 0.5
# A step slower than this factor times both host issue time and GPU compute time was disturbed while it ran.
MAX_STEP_RATIO = 1.3


class RowStore:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.failed_keys = {
            line["key"]
            for line in read_json_lines(folder)
            if "failed" in line and line["failed"] != MISSING_SAMPLES_REASON
        }
        self.measurement_counts = Counter(line["key"] for line in read_measured_rows(folder))
        self._keys_to_repeat = find_disturbed_networks(folder)
        self.uncapturable_groups = {line["not_in_graph"] for line in read_json_lines(folder) if "not_in_graph" in line}
        begun_row_file = folder / "begun"
        if begun_row_file.exists() and (key := begun_row_file.read_text()) and key not in self.measurement_counts:
            self.add_failure(key, "the process that measured it ended")
        begun_row_file.unlink(missing_ok=True)

    def is_settled(self, key: str) -> bool:
        return (key in self.measurement_counts and key not in self._keys_to_repeat) or key in self.failed_keys

    def begin_row(self, key: str) -> None:
        (self.folder / "begun").write_text(key)

    def end_row(self) -> None:
        (self.folder / "begun").unlink(missing_ok=True)

    def add_row(self, row: dict) -> None:
        self._append_line("rows.jsonl", {**row, "repeat": self.measurement_counts[row["key"]]})
        self.measurement_counts[row["key"]] += 1
        self._keys_to_repeat.discard(row["key"])

    def add_failure(self, key: str, reason: str) -> None:
        self._append_line("rows.jsonl", {"key": key, "failed": reason})
        self.failed_keys.add(key)

    def add_uncapturable_group(self, group: str, reason: str) -> None:
        self._append_line("rows.jsonl", {"not_in_graph": group, "reason": reason})

    def add_layers(self, line: dict) -> None:
        self._append_line("layers.jsonl", line)

    def add_slice(self, line: dict) -> None:
        self._append_line("slices.jsonl", line)

    def _append_line(self, name: str, line: dict) -> None:
        with (self.folder / name).open("a") as file:
            file.write(json.dumps(line) + "\n")


def read_json_lines(folder: Path) -> Iterator[dict]:
    yield from tables.read_rows(folder)
    for path in sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")]):
        stream = gzip.open(path, "rt") if path.suffix == ".gz" else path.open()
        with stream as file:
            for line_text in file:
                try:
                    yield json.loads(line_text)
                except json.JSONDecodeError:  # truncated last line of a killed run
                    continue


def read_measured_rows(folder: Path) -> list[dict]:
    lines = list(read_json_lines(folder))
    uncapturable_groups = {line["not_in_graph"] for line in lines if "not_in_graph" in line}
    rows = [line for line in lines if "energy_j" in line and is_valid_row(line, uncapturable_groups)]
    # The same row may be stored as a JSON line and in a table.
    return list({(row["key"], row.get("slice"), row.get("repeat")): row for row in rows}.values())


def find_disturbed_networks(folder: Path) -> set[str]:
    """Returns keys of host-bound networks whose host was disturbed in every measurement, or for which this is
    unknown."""
    busy_s = {line["layers_of"]: line["busy_us"] * 1e-6 for line in read_json_lines(folder) if "busy_us" in line}
    network_rows = [row for row in read_measured_rows(folder) if row["kind"] == "network"]
    timed_rows = [row for row in network_rows if row.get("launch_s") is not None]
    fastest_launch_s: dict[str, float] = {}
    for row in timed_rows:
        fastest_launch_s[row["slice"]] = min(row["launch_s"], fastest_launch_s.get(row["slice"], row["launch_s"]))
    undisturbed_rows = [
        row for row in timed_rows if row["launch_s"] < MAX_LAUNCH_RATIO * fastest_launch_s[row["slice"]]
    ]
    undisturbed_rows = [
        row for row in undisturbed_rows if row.get("quiet_windows") or was_host_ahead(row, MAX_ISSUE_SHARE)
    ]
    measured_keys = {row["key"] for row in undisturbed_rows if has_plausible_time(row, busy_s.get(row["key"]))}
    measured_keys |= {row["key"] for row in network_rows if was_host_ahead(row, SMALL_ISSUE_SHARE)}
    host_bound_keys = {
        row["key"] for row in network_rows if busy_s.get(row["key"], 0.0) < MIN_BUSY_SHARE * (row.get("time_s") or 0.0)
    }
    return host_bound_keys - measured_keys


def was_host_ahead(row: dict, share: float) -> bool:
    """Returns whether issuing took the host less than `share` of the step time."""
    return 0.0 < (row.get("issue_s") or 0.0) < share * (row.get("time_s") or 0.0)


def has_plausible_time(row: dict, busy_s: Optional[float]) -> bool:
    """Returns False for a step that took far longer than both issuing it on the host and computing it on the GPU."""
    if not row.get("issue_s") or not busy_s:
        return True
    return (row.get("time_s") or 0.0) < MAX_STEP_RATIO * max(row["issue_s"], busy_s)


def is_valid_row(row: dict, uncapturable_groups: set[str]) -> bool:
    """Returns False for rows that launched nothing, and for rows that ran without a graph although they are short."""
    if row["kind"] in KINDS_WITHOUT_CUDA_GRAPH or capture_group_key(row) in uncapturable_groups:
        return True
    return row["time_s"] >= (MIN_CALL_S if row["way"] == "graph" else MIN_CALL_WITHOUT_GRAPH_S)


def capture_group_key(row: dict) -> str:
    """Returns the group of rows that run the same code: kind, form and pass."""
    form = dict(assignment.split("=") for assignment in row["parameters"].split(";")).get("form", "")
    return f"{row['kind']} {form} {row['pass']}"
