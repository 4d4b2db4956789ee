# SPDX-License-Identifier: Apache-2.0
"""What was measured, in lines of JSON that are only ever added: a run that ends anywhere loses what it was at,
nothing else.

A folder holds `rows.jsonl` (one measurement a line), `slices.jsonl` (one run of the collector a line) and `begun`,
the key that is being measured: a process that dies of it finds it there the next time, and goes around it. Files of
other runs (`*.jsonl`, `*.jsonl.gz`) count as measured, too.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Iterator

COLUMNS = (
    "kind parameters dtype pass cold source way flops bytes time_s eager_s energy_j power_w power_error_w samples length_s "
    "temperature_c sm_clock_mhz limited idle_w repeat slice"
).split()


# A sample that got lost in the first slices; now such a row is not written at all.
MISSED = "too few samples of power"


class Rows:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.failed = {line["key"] for line in lines_of(folder) if "failed" in line and line["failed"] != MISSED}
        self.times = Counter(line["key"] for line in lines_of(folder) if "energy_j" in line)
        self.not_in_graph = {line["not_in_graph"] for line in lines_of(folder) if "not_in_graph" in line}
        begun = folder / "begun"
        if begun.exists() and (key := begun.read_text()) and key not in self.times:
            self.add_failure(key, "the process that measured it ended")
        begun.unlink(missing_ok=True)

    def is_settled(self, key: str) -> bool:
        return key in self.times or key in self.failed

    def begin(self, key: str) -> None:
        (self.folder / "begun").write_text(key)

    def end(self) -> None:
        (self.folder / "begun").unlink(missing_ok=True)

    def add(self, row: dict) -> None:
        self._append("rows.jsonl", {**row, "repeat": self.times[row["key"]]})
        self.times[row["key"]] += 1

    def add_failure(self, key: str, reason: str) -> None:
        self._append("rows.jsonl", {"key": key, "failed": reason})
        self.failed.add(key)

    def add_not_in_graph(self, group: str, reason: str) -> None:
        self._append("rows.jsonl", {"not_in_graph": group, "reason": reason})

    def add_slice(self, told: dict) -> None:
        self._append("slices.jsonl", told)

    def _append(self, name: str, line: dict) -> None:
        with (self.folder / name).open("a") as file:
            file.write(json.dumps(line) + "\n")


def lines_of(folder: Path) -> Iterator[dict]:
    for path in sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")]):
        opened = gzip.open(path, "rt") if path.suffix == ".gz" else path.open()
        with opened as file:
            for text in file:
                try:
                    yield json.loads(text)
                except json.JSONDecodeError:  # the last line of a run that was killed
                    continue


def rounded(value):
    return float(f"{value:.5g}") if isinstance(value, float) else int(value) if isinstance(value, bool) else value


def write_table(folder: Path, out: Path) -> int:
    """All rows of a folder as a compressed table, sorted, each repeat a row of its own; how many there are."""
    rows = [line for line in lines_of(folder) if "energy_j" in line]
    rows.sort(key=lambda row: (row["kind"], row["key"], row["slice"], row["repeat"]))
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: rounded(row.get(name)) for name in COLUMNS} for row in rows)
    # Without a time in it, so that equal rows are equal bytes.
    out.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    return len(rows)
