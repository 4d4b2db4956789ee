#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Joulemap's statistics with scipy's, on the same numbers, in turns.

    ninja -C build bench_statistics && PYTHON bench/statistics/beside_scipy.py [--build build] [--rounds 5]

Bootstrap: BCa intervals of 100 cells, 10,000 resamples each; scipy runs every tenth cell, and its time is multiplied
by ten. Tests: 500 comparisons each, 10 with ties, where scipy enumerates all signs; else its `method="auto"`, exact up
to 50 pairs, and `method="exact"` for groups. p-values without ties must agree to 1e-9, and intervals roughly (both are
random). Times are CPU times summed over threads, which other load on the machine does not affect; medians over the
rounds.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy
from scipy import stats

ROOT = Path(__file__).resolve().parent.parent.parent
NumberLists = list[list[float]]


def make_samples(count: int, n: int, ties: bool) -> NumberLists:
    draw = random.Random(n)
    return [[round(draw.gauss(1000, 10), 0 if ties else 6) for _ in range(n)] for _ in range(count)]


def run_our_statistics(program: Path, job: str, samples: NumberLists) -> tuple[float, list[list[float]]]:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(" ".join(map(repr, sample)) for sample in samples) + "\n")
        file.flush()
        lines = subprocess.run(
            [program, job, file.name], check=True, capture_output=True, text=True
        ).stdout.splitlines()
    return float(lines[0].split()[0]), [list(map(float, line.split())) for line in lines[1:]]


def time_action(action: Callable[[], list]) -> tuple[float, list]:
    begin = time.process_time()
    results = action()
    return time.process_time() - begin, results


def scipy_intervals(samples: NumberLists, statistic: Callable) -> list[list[float]]:
    intervals = []
    for cell in samples[::10]:
        interval = stats.bootstrap(
            (np.array(cell),), statistic, n_resamples=10_000, method="BCa", rng=1
        ).confidence_interval
        intervals.append([interval.low, interval.high])
    return intervals


def format_bootstrap_row(program: Path, name: str, statistic: Callable, n: int, rounds: int) -> str:
    samples = make_samples(100, n, ties=False)
    pairs = []
    for _ in range(rounds):
        our_s, our_intervals = run_our_statistics(program, name, samples)
        scipy_s, scipy_found = time_action(lambda: scipy_intervals(samples, statistic))
        pairs.append((our_s, 10 * scipy_s))
    # Intervals of a median may differ more, because it jumps from one value of the sample to another.
    relative_tolerance = 0.1 if name == "mean" else 0.5
    for (_, low, high), (scipy_low, scipy_high) in zip(our_intervals[::10], scipy_found):
        width = scipy_high - scipy_low
        assert (
            abs(low - scipy_low) <= relative_tolerance * width and abs(high - scipy_high) <= relative_tolerance * width
        ), (low, scipy_low)
    return row(f"BCa of the {name}, 100 cells of {n}, 10,000 resamples", pairs)


def format_test_row(program: Path, job: str, test: Callable, n: int, ties: bool, rounds: int) -> str:
    samples = make_samples(20 if ties else 1000, n, ties)
    pairs = []
    for _ in range(rounds):
        our_s, our_p = run_our_statistics(program, job, samples)
        scipy_s, scipy_p = time_action(lambda: [test(a, b).pvalue for a, b in zip(samples[::2], samples[1::2])])
        pairs.append((our_s, scipy_s))
    if not ties:
        assert max(abs(a[0] - b) for a, b in zip(our_p, scipy_p)) < 1e-9
    return row(f"{job}, {len(samples) // 2} of n = {n}{', ties' if ties else ''}", pairs)


def exact_rank_sum(first_sample: list[float], second_sample: list[float]) -> object:
    return stats.mannwhitneyu(first_sample, second_sample, method="exact")


def row(benchmark_label: str, pairs: list[tuple[float, float]]) -> str:
    our_s = statistics.median(our_duration_s for our_duration_s, _ in pairs)
    scipy_s = statistics.median(b for _, b in pairs)
    ratio = statistics.median(b / a for a, b in pairs)
    return f"| {benchmark_label} | {our_s * 1e3:.3g} ms | {scipy_s * 1e3:.0f} ms | {float(f'{ratio:.2g}'):g} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    program = options.build / "bin" / "bench_statistics"
    print(f"| what | ours | scipy {scipy.__version__} | scipy / ours |\n|---|---|---|---|")
    for n in (10, 30, 100):
        print(format_bootstrap_row(program, "mean", np.mean, n, options.rounds), flush=True)
        print(format_bootstrap_row(program, "median", np.median, n, options.rounds), flush=True)
    for n in (10, 30, 50):
        print(format_test_row(program, "signed-rank", stats.wilcoxon, n, False, options.rounds), flush=True)
        print(format_test_row(program, "rank-sum", exact_rank_sum, n, False, options.rounds), flush=True)
    print(format_test_row(program, "signed-rank", stats.wilcoxon, 12, True, options.rounds), flush=True)


if __name__ == "__main__":
    main()
