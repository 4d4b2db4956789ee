#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a training captured live with the same training traced by torch.profiler and imported.

    make dist
    python3 bench/h200/import_matches.py --joulemap build/dist/joulemap-*/bin/joulemap --markdown OUT.md [--network resnet50]

Uses two processes, because PyTorch's profiler takes over the kernel records. Both build and train the same network for
the same number of steps, and trace every step. Layers, kernel classes and numbers of kernels must be equal. Times of
rows above 1 % of all kernel time must agree within 5 %, and their sum within 2 %. The duration of copies from and to
the host depends on the host and differs between the processes: only their number must agree. Exits 1 when a check
fails.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))
from findings import Findings  # noqa: E402

STEP_COUNT = 20
HOST_COPY_KINDS = ("HtoD", "DtoH")
MAX_ROW_DIFFERENCE, MAX_TOTAL_DIFFERENCE, MIN_TIME_SHARE = 0.05, 0.02, 0.01


def train(network: str, trace: str | None) -> None:
    """Runs the training of both processes: captured live by record, or traced to a file by PyTorch's profiler."""
    import capture_worker
    import joulemap as jm
    import torch

    if torch.cuda.is_available():
        torch.cuda.init()
    session = torch.profiler.profile(with_stack=True, record_shapes=True, acc_events=True)
    with contextlib.nullcontext() if trace is None else session:
        torch.manual_seed(0)
        model, compute_loss, _ = capture_worker.NETWORKS[network]()
        step = capture_worker.training_step(compute_loss, model)
        for _ in range(STEP_COUNT):
            step()
            if trace is not None:
                session.step()
        capture_worker.synchronize()
    if trace is not None:
        session.export_chrome_trace(trace)
        jm.save_module_names(model, f"{trace}.modules")


def normalize_row_name(row: dict, by: str) -> tuple:
    """Normalizes names: Kineto demangles kernels and names copies and fills differently."""
    if by != "kernel":
        return tuple(row["path"])
    name = row["display_name"]
    copy = re.match(r"Memcpy (\w+)", name)
    return (copy.group(1) if copy else "fill" if name.startswith("Memset") else name,)


def rows_of(joulemap: str, file: Path, by: str) -> dict[tuple, dict]:
    command = [joulemap, "report", "--json", "--by", by, str(file)]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout)
    device = "gpu" if any(row["device"].startswith("gpu") for row in report["rows"]) else "cpu"
    rows: dict[tuple, dict] = {}
    for row in report["rows"]:
        if not row["device"].startswith(device):
            continue
        row_totals = rows.setdefault(normalize_row_name(row, by), {"count": 0, "time_s": 0.0})
        row_totals["count"] += row["count"] or 0
        row_totals["time_s"] += row["time_s"]
    return rows


def select_pass_rows(rows: dict[tuple, dict]) -> dict[tuple, dict]:
    """Omits rows outside of the passes: a profiler names them differently."""
    phases = {"forward", "backward", "recompute", "optimizer", "loss"}
    return {path: row for path, row in rows.items() if phases.intersection(path)}


def have_equal_counts(path: tuple, live: dict, imported_row: dict) -> bool:
    """Whether the counts of a row agree. Live capture detects training at the first backward pass, so the loss of the
    first step has no phase and is missing from its row."""
    steps_with_phase = STEP_COUNT - 1 if "loss" in path else STEP_COUNT
    return live["count"] * STEP_COUNT == imported_row["count"] * steps_with_phase


def compare(findings: Findings, by: str, live: dict[tuple, dict], imported_rows: dict[tuple, dict]) -> None:
    captured_time_s, imported_time_s = (sum(row["time_s"] for row in rows.values()) for rows in (live, imported_rows))
    live_only_paths, imported_only_paths = set(live) - set(imported_rows), set(imported_rows) - set(live)
    time_share_differences = {
        path: (imported_rows[path]["time_s"] / imported_time_s) / (live[path]["time_s"] / captured_time_s) - 1
        for path in set(live) & set(imported_rows)
        if live[path]["time_s"] > MIN_TIME_SHARE * captured_time_s and path[0] not in HOST_COPY_KINDS
    }
    worst_path = (
        max(time_share_differences, key=lambda path: abs(time_share_differences[path]))
        if time_share_differences
        else ()
    )
    together = imported_time_s / captured_time_s - 1 if captured_time_s else 1.0
    count_mismatches = [
        path
        for path in sorted(set(live) & set(imported_rows))
        if not have_equal_counts(path, live[path], imported_rows[path])
    ]
    has_same_rows = not live_only_paths and not imported_only_paths
    is_import_equivalent = (
        has_same_rows
        and not count_mismatches
        and all(abs(value) <= MAX_ROW_DIFFERENCE for value in time_share_differences.values())
    )
    is_import_equivalent = is_import_equivalent and abs(together) <= MAX_TOTAL_DIFFERENCE
    findings.add_line(
        f"| {by} | {len(live)} | {len(live_only_paths)} | {len(imported_only_paths)} | "
        f"{'no' if count_mismatches else 'yes'} | "
        f"{time_share_differences.get(worst_path, 0):+.1%} ({' '.join(worst_path)[:40]}) | {together:+.2%} | "
        f"{findings.bar(f'the same by {by}', is_import_equivalent)} |"
    )
    for path in sorted(live_only_paths)[:10]:
        print("only live:", path, live[path]["count"])
    for path in sorted(imported_only_paths)[:10]:
        print("only imported:", path, imported_rows[path]["count"])
    for path in count_mismatches[:10]:
        print("counts:", path, live[path]["count"], "live,", imported_rows[path]["count"], "imported")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--network", default="resnet50")
    parser.add_argument("--keep", type=Path, help="copy both recordings into this folder")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train is not None:
        train(options.network, options.train or None)
        return 0
    joulemap, findings = str(options.joulemap.resolve()), Findings()
    environment = {**os.environ, "PYTHONPATH": str(options.joulemap.resolve().parent.parent / "python")}
    with tempfile.TemporaryDirectory() as folder:
        live, trace, imported_recording = (
            Path(folder) / name for name in ("live.joule", "trace.json", "imported.joule")
        )
        program = [sys.executable, __file__, "--network", options.network, "--train"]
        record = [joulemap, "record", "--trace", "full", "-o", str(live), "--", *program, ""]
        subprocess.run(record, check=True, timeout=200, env=environment)
        subprocess.run([*program, str(trace)], check=True, timeout=300, env=environment)
        modules = ["--modules", f"{trace}.modules"]
        subprocess.run(
            [joulemap, "import", "kineto", str(trace), *modules, "-o", str(imported_recording)], check=True, timeout=100
        )
        if options.keep:
            for file in (live, imported_recording):
                shutil.copy(file, options.keep)
        findings.add_line(f"## {options.network}: captured live, and imported from torch.profiler\n")
        findings.add_line(
            "| by | rows | only live | only imported | same calls | farthest apart | together | the same |"
        )
        findings.add_line("|---|---|---|---|---|---|---|---|")
        for grouping in ("layer", "phase"):
            compare(
                findings,
                grouping,
                *(select_pass_rows(rows_of(joulemap, file, grouping)) for file in (live, imported_recording)),
            )
        compare(findings, "kernel", *(rows_of(joulemap, file, "kernel") for file in (live, imported_recording)))
    return findings.conclude(options.markdown)


if __name__ == "__main__":
    sys.exit(main())
