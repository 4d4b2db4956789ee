# SPDX-License-Identifier: Apache-2.0
"""Compares joulemap with its peers: start-up, accuracy, estimates, overhead while measuring.

Needs root: the simulated machine mounts its counters at /sys in its own mount namespace. Exit
codes: 0 all bars of joulemap are met, 1 some are not, 77 the simulated machine is not permitted here.
"""

import argparse
import json
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, List

import accuracy
import accuracy_report
import cost_report
import estimate
import startup
from document import format_document, unfavourable_results
from machine import (
    EXIT_NOT_PERMITTED,
    JOULEMAP_PROGRAM,
    SIMULATED_MACHINE,
    SimulatedMachineError,
    NotPermittedError,
    check_permission,
    describe_this_machine,
)
from tables import Bar, ReportSection, format_list, bars_table, section_as_text, table_as_text


def _print_progress(text: str) -> None:
    """Prints progress, separate from the tables."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="shorter loads and fewer rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables as a document")
    return parser.parse_args()


def _read_versions() -> Dict[str, str]:
    process = subprocess.run([str(JOULEMAP_PROGRAM), "--version"], capture_output=True, text=True, check=True)
    versions = {"joulemap": process.stdout.split()[-1]}
    for package in ["pyJoules", "zeus", "codecarbon"]:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "(not installed)"
    return versions


def _measure_figures(is_quick_run: bool) -> Dict[str, Any]:
    _print_progress("start-up")
    start_time_s = time.monotonic()
    figures: Dict[str, Any] = {"quick": is_quick_run, "startup": startup.measure(8 if is_quick_run else 25)}
    figures["accuracy"] = accuracy.measure(3 if is_quick_run else 10, 2 if is_quick_run else 3, _print_progress)
    figures["estimate"] = estimate.measure(2 if is_quick_run else 5, _print_progress)
    figures["took_s"] = time.monotonic() - start_time_s
    return figures


def _make_sections(figures: Dict[str, Any]) -> List[ReportSection]:
    return [
        startup.report(figures["startup"]),
        accuracy_report.report(figures["accuracy"]),
        cost_report.report(figures["accuracy"]),
        estimate.report(figures["estimate"]),
    ]


def main() -> int:
    """Measures, prints and writes the results."""
    options = _parse_arguments()
    for program in [JOULEMAP_PROGRAM, SIMULATED_MACHINE]:
        if not program.exists():
            print(f"bench: {program.name} is not built: make build", file=sys.stderr)
            return 1
    try:
        check_permission()
        figures = _measure_figures(options.quick)
    except NotPermittedError as reason:
        print(f"bench: skipped: {reason}", file=sys.stderr)
        return EXIT_NOT_PERMITTED
    except SimulatedMachineError as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    figures["machine"] = describe_this_machine()
    figures["versions"] = _read_versions()
    sections = _make_sections(figures)
    bars: List[Bar] = [acceptance_bar for section in sections for acceptance_bar in section.bars]
    print("\n\n".join([*map(section_as_text, sections), table_as_text(bars_table(bars))]))
    short = unfavourable_results(sections, bars)
    if short:
        print(f"\n  Where joulemap falls short\n\n{format_list(short)}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(format_document(sections, bars, figures), encoding="utf-8")
    return 0 if all(acceptance_bar.met for acceptance_bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
