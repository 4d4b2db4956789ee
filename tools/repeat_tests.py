#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the current build repeatedly and prints a table: passed tests per run, and failures.

    tools/repeat_tests.py --runs 10              on the machine as it is
    tools/repeat_tests.py --runs 10 --beside 2   beside two busy loops

The output of each run and its results (JUnit XML) are kept in build/repeated/. Exits 1 if a run had failures.
"""

from __future__ import annotations

import argparse
import collections
import subprocess
import sys
import time
import xml.etree.ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUSY_LOOP_COMMAND = ["nice", "-n", "0", "sh", "-c", "while :; do :; done"]


def read_outcomes(folder: Path) -> dict[str, str]:
    """Returns the outcome of each test: passed, skipped or failed. Tests that ctest lists but did not run count as
    failed."""
    outcome_by_test = {}
    for file in sorted(folder.glob("*.xml")):
        for case in xml.etree.ElementTree.parse(file).iter("testcase"):
            has_failed = case.find("failure") is not None or case.find("error") is not None
            is_skipped = case.find("skipped") is not None
            name = case.get("name") if file.stem == "unit" else f"{case.get('classname')}::{case.get('name')}"
            outcome_by_test[name] = "failed" if has_failed else "skipped" if is_skipped else "passed"
    return outcome_by_test


def run_command_once(command: list[str], folder: Path) -> tuple[int, float]:
    folder.mkdir(parents=True, exist_ok=True)
    for stale_report in folder.glob("*.xml"):
        stale_report.unlink()
    begin = time.monotonic()
    with open(folder / "output.txt", "w") as output:
        code = subprocess.run([*command, str(folder)], stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    return code, time.monotonic() - begin


def repeat_command(command: list[str], runs: int, busy_loop_count: int, folder: Path) -> bool:
    """Returns whether all runs passed."""
    failures: collections.Counter[str] = collections.Counter()
    green = 0
    print(f"{'run':>4} {'result':>8} {'seconds':>8} {'passed':>7} {'skipped':>8} {'failed':>7}", flush=True)
    for run in range(1, runs + 1):
        loops = [subprocess.Popen(BUSY_LOOP_COMMAND) for _ in range(busy_loop_count)]
        try:
            code, took_s = run_command_once(command, folder / f"run-{run}")
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        outcomes_of_run = read_outcomes(folder / f"run-{run}")
        count = collections.Counter(outcomes_of_run.values())
        has_run_passed = code == 0 and count["failed"] == 0
        green += has_run_passed
        failed_tests = sorted(name for name, outcome in outcomes_of_run.items() if outcome == "failed")
        failures.update(failed_tests if failed_tests or has_run_passed else ["(no failed test: see output.txt)"])
        print(f"{run:4} {'green' if has_run_passed else 'RED':>8} {took_s:8.0f} {count['passed']:7} {count['skipped']:8} "
              f"{count['failed']:7}", flush=True)  # fmt: skip
        for name in failed_tests:
            print(f"       {name}", flush=True)
    print(f"{green} of {runs} runs green{f', beside {busy_loop_count} busy loops' if busy_loop_count else ''}")
    for name, times in failures.most_common():
        print(f"{times:4} x {name}")
    return green == runs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--beside", type=int, default=0, metavar="LOOPS", help="busy loops that run next to the tests")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "repeated")
    parser.add_argument("--command", nargs="+", default=[str(ROOT / "tools" / "run_tests.sh")],
                        help="test command; gets the result folder as argument")  # fmt: skip
    options = parser.parse_args()
    return 0 if repeat_command(options.command, options.runs, options.beside, options.folder) else 1


if __name__ == "__main__":
    sys.exit(main())
