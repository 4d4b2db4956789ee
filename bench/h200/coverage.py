# SPDX-License-Identifier: Apache-2.0
"""Computes which share of the kernel time in a recording has a phase and a layer, from `joulemap report`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

# Phases that belong to the network as a whole and to no layer.
WHOLE_NETWORK_PHASES = {"optimizer", "loss", "zero_grad", "dataloader", "input", "setup", "compile"}
PHASES = WHOLE_NETWORK_PHASES | {"forward", "backward", "recompute", "gradients"}
# Bookkeeping of XLA, launched by its own threads: not an operation of the program.
BOOKKEEPING_COPIES = {"HtoH"}


class KernelTimeCoverage:
    def __init__(self, joulemap: str, file: Path) -> None:
        layers, kernels = (_report(joulemap, file, report_level) for report_level in ("layer", "kernel"))
        self.rows = [row for row in layers["rows"] if row["device"].startswith("gpu")]
        # Rows of other processes on the same GPU (background) have no layers and do not count.
        program_rows = [row for row in kernels["rows"] if row["path"][:1] != ["background"]]
        self.kernels = sum(row["count"] or 0 for row in program_rows)
        self.total_s = sum(row["time_s"] for row in program_rows if row["name"] not in BOOKKEEPING_COPIES)
        self.diagnostics = layers["diagnostics"]
        self.bytes_per_kernel = layers["file_bytes"] / max(self.kernels, 1)
        self.phase = self._sum_time_s(lambda path: bool(PHASES.intersection(path))) / max(self.total_s, 1e-12)
        # The share with a layer refers to the remaining time: the passes, and time without a phase.
        whole_s = self._sum_time_s(lambda path: bool(WHOLE_NETWORK_PHASES.intersection(path)))
        layer_time_s = self._sum_time_s(lambda path: len(path) > 2 and not WHOLE_NETWORK_PHASES.intersection(path))
        self.module = layer_time_s / max(self.total_s - whole_s, 1e-12)

    def _sum_time_s(self, counts) -> float:
        return sum(row["time_s"] for row in self.rows if counts(row["path"]))

    def largest_rows(self, count: int) -> list[list]:
        sorted_rows = sorted(self.rows, key=lambda row: -row["time_s"])
        return [[" ".join(row["path"]), row["count"], round(row["time_s"], 6)] for row in sorted_rows[:count]]


def _report(joulemap: str, file: Path, by: str) -> dict:
    command = [joulemap, "report", "--json", "--by", by, str(file)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout)
