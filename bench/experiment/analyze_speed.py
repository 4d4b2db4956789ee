#!/usr/bin/env python3
"""Measures the time of `experiment analyze` for 10,000 rows from a folder on disk, and of scipy on the same numbers.

    python3 bench/experiment/analyze_speed.py --joulemap build/bin/joulemap [--rows 10000]

Generates runs as PrEnGDL writes them (models x 2 frameworks x 10 repetitions), imports them and analyses them with one
thread and with all threads: the output must be identical. If scipy is installed, its signed-rank and rank-sum tests
run on the same pairs, and its BCa intervals on a part of the cells, which is stated.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PERF_OUTPUT = "{:.2f} Joules power/energy-pkg/\n{:.2f} Joules power/energy-ram/\n{:.6f} seconds time elapsed\n"
REPETITIONS = 10


def make(folder: Path, rows: int) -> dict[tuple[str, str], list[float]]:
    draw = random.Random(1)
    cells: dict[tuple[str, str], list[float]] = {}
    target = folder / "measurements_train"
    target.mkdir(parents=True)
    for number in range(rows // (2 * REPETITIONS)):
        for framework, factor in (("PyTorch", 1.0), ("TensorFlow", 1.02)):
            values = cells.setdefault((f"m{number}", framework), [])
            for repetition in range(1, REPETITIONS + 1):
                seconds = factor * draw.gauss(100, 1)
                stem = f"m{number}_{framework}"
                (target / f"{stem}_perf_{repetition}.txt").write_text(
                    PERF_OUTPUT.format(seconds * 60, seconds * 6, seconds)
                )
                (target / f"{stem}_nvidia_smi_{repetition}.txt").write_text("100.00 W\n120.00 W\n")
                values.append(seconds * (66 + 110))
    return cells


def time_command(command: list[str]) -> tuple[str, bytes]:
    """Formats wall time and CPU time: other load on the machine increases the wall time."""
    begin, begin_usage = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    output = subprocess.run(command, check=True, capture_output=True).stdout
    end_usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = end_usage.ru_utime + end_usage.ru_stime - begin_usage.ru_utime - begin_usage.ru_stime
    return f"{time.perf_counter() - begin:.2f} s ({cpu_s:.2f} s of CPU)", output


def measure_scipy_times(cells: dict[tuple[str, str], list[float]]) -> str:
    try:
        import numpy
        from scipy import stats
    except ImportError:
        return "scipy is not here"
    models = sorted({model for model, _ in cells})
    begin = time.perf_counter()
    for model in models:
        pytorch_values, tensorflow_values = cells[model, "PyTorch"], cells[model, "TensorFlow"]
        stats.wilcoxon(pytorch_values, tensorflow_values)
        stats.mannwhitneyu(pytorch_values, tensorflow_values)
    tests_s = time.perf_counter() - begin
    part = models[:10]
    begin = time.perf_counter()
    for model in part:
        stats.bootstrap((numpy.array(cells[model, "PyTorch"]),), numpy.mean, n_resamples=2000, method="BCa")
    bca_interval_s = (time.perf_counter() - begin) / len(part)
    return (
        f"scipy: two tests of energy alone {tests_s:.2f} s; a BCa interval {1e3 * bca_interval_s:.1f} ms, "
        f"for the {len(cells) * 5} intervals here {bca_interval_s * len(cells) * 5:.0f} s (from {len(part)} of them)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--joulemap", default="build/bin/joulemap")
    parser.add_argument("--rows", type=int, default=10_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        cells = make(Path(scratch) / "made", arguments.rows)
        experiment = f"{scratch}/experiment"
        import_s, _ = time_command([arguments.joulemap, "import", "prengdl", f"{scratch}/made", "-o", experiment])
        analyze = [arguments.joulemap, "experiment", "analyze", experiment, "--json"]
        single_thread_time, single_thread_output = time_command([*analyze, "--threads", "1"])
        all_threads_time, all_threads_output = time_command(analyze)
    print(
        f"{arguments.rows} rows in {len(cells)} cells: import {import_s}, analyze {single_thread_time} with one thread, "
        f"{all_threads_time} with all; the same bytes: {single_thread_output == all_threads_output}"
    )
    print(measure_scipy_times(cells))
    return 0 if single_thread_output == all_threads_output else 1


if __name__ == "__main__":
    sys.exit(main())
