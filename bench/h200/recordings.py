# SPDX-License-Identifier: Apache-2.0
"""Recordings of a study: recorded once, perhaps on another machine, and analysed later, span by span.

A load (study_load.py) writes what it did and when, in nanoseconds of CLOCK_MONOTONIC. `Recording` runs `joulemap
report` for these spans. Energies are joules of the device that the load ran on: gpu0, or the CPUs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, NamedTuple

from findings import Findings

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.append(str(SCRIPT_FOLDER.parent.parent / "python" / "joulemap"))
import _validate_statistics as doubled  # noqa: E402  pure computation

# Time that the recorder needs after its command ends, to join parts and to learn powers of kernels.
RECORDER_EXIT_S = 6
# Lag of a GPU's energy counter at an update: 5.6 ms (2.4 to 8.7) on an H200, by bench/h200/calibrate.py.
COUNTER_LAG_NS = 6_000_000
# Errors that incomplete or invalid data of a folder cause in an analysis.
INVALID_DATA_ERRORS = (OSError, ValueError, LookupError, ArithmeticError, subprocess.SubprocessError)


class EnergyUse(NamedTuple):
    joules: float
    half_width_j: float  # half width of the 90 % interval, from the recording
    seconds: float

    @property
    def watts(self) -> float:
        return self.joules / self.seconds


class Recording:
    def __init__(self, joulemap: str, file: Path) -> None:
        self.joulemap, self.file = joulemap, file
        self.whole = self.report([], None)
        self.began_ns = self.whole["start_monotonic_ns"]

    def report(self, arguments: list[str], span: dict | None) -> dict:
        command = [self.joulemap, "report", "--json", *arguments, str(self.file)]
        if span is not None:
            begin_s, end_s = ((span[edge] - self.began_ns) * 1e-9 for edge in ("begin_ns", "end_ns"))
            command += ["--time", f"{begin_s:.6f},{end_s:.6f}"]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout)

    def energy_of_span(self, span: dict, device: str) -> EnergyUse:
        late_ns = 0 if device == "cpu" else COUNTER_LAG_NS
        report = self.report([], {edge: span[edge] + late_ns for edge in ("begin_ns", "end_ns")})
        widths = [domain["uncertainty_j"] or 0.0 for domain in report["domains"] if is_domain_of(domain, device)]
        seconds = (span["end_ns"] - span["begin_ns"]) * 1e-9
        domains = doubled.device_domains(report, device)
        return EnergyUse(sum(domain["measured_j"] for domain in domains), sum(widths), seconds)

    def compute_span_energies(self, spans: list[dict], device: str) -> list[EnergyUse]:
        """Returns the energy of each span. Each span takes one run of `joulemap report`; several run in parallel."""
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            return list(pool.map(lambda span: self.energy_of_span(span, device), spans))

    def gauge(self, name: str, span: dict, margin_s: float = 0.0) -> float | None:
        """Mean of a gauge over the span, extended by margin_s at both ends; None where it was not read."""
        for track in self.whole["power"]["tracks"]:
            if track["name"] == name:
                slice_s = self.whole["power"]["slice_s"]
                begin, end = ((span[edge] - self.began_ns) * 1e-9 / slice_s for edge in ("begin_ns", "end_ns"))
                margin_slices = margin_s / slice_s
                values = track["values"][max(0, int(begin - margin_slices)) : int(end + margin_slices) + 1]
                read = [value for value in values if value is not None]
                return sum(read) / len(read) if read else None
        return None


def is_domain_of(domain: dict, device: str) -> bool:
    if not domain["counted"] or domain["measured_j"] is None:
        return False
    return domain["name"] == device if device != "cpu" else not domain["name"].startswith("gpu")


def collect(options: argparse.Namespace, name: str, load: list[str], seconds: float, *record: str) -> bool:
    """Records one load into FOLDER/NAME.joule and passes it its deadline. True when recording succeeds."""
    options.folder.mkdir(parents=True, exist_ok=True)
    until_ns = time.monotonic_ns() + int(max(1.0, seconds - RECORDER_EXIT_S) * 1e9)
    load_arguments = [
        "--out",
        str(options.folder / f"{name}.json"),
        "--until-ns",
        str(until_ns),
        "--device",
        options.device,
    ]
    command = [str(options.joulemap.resolve()), "record", *record, "-o", str(options.folder / f"{name}.joule"), "--"]
    command += [sys.executable, *load, *load_arguments]
    print(f"{name}: {' '.join(command)}", file=sys.stderr, flush=True)
    begun = time.monotonic()
    # Powers of kernels learned in the run are stored beside it.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "JOULEMAP_DATA": str(options.folder.resolve())}
    try:
        is_recording_successful = (
            subprocess.run(command, timeout=seconds + 60, env=environment, check=False).returncode == 0
        )
    except subprocess.TimeoutExpired:
        is_recording_successful = False
    print(
        f"{name}: {time.monotonic() - begun:.0f} s, {'done' if is_recording_successful else 'FAILED'}",
        file=sys.stderr,
        flush=True,
    )
    return is_recording_successful


def drop_rest_begin(span: dict) -> dict:
    """Returns a rest without its first third, in which power still falls."""
    return {**span, "begin_ns": span["begin_ns"] + (span["end_ns"] - span["begin_ns"]) // 3}


def read_load_log(folder: Path, name: str) -> dict:
    return json.loads((folder / f"{name}.json").read_text())


def run_study(
    options: argparse.Namespace,
    collect_recordings: Callable[[], list[str]],
    analyse_recordings: Callable[[argparse.Namespace, Findings], None],
) -> int:
    """Collects if requested (`collect_recordings` returns failures), analyses unless disabled, and returns the exit code."""
    findings = Findings()
    if options.collect or options.collect_only:
        findings.missed += [f"collecting {name}" for name in collect_recordings()]
        if options.collect_only:
            return 1 if findings.missed else 0
    try:
        analyse_recordings(options, findings)
    except INVALID_DATA_ERRORS as error:
        findings.add_line(f"**Not analysed**: {why(error)}")
        findings.missed.append("analysis")
    return findings.conclude(options.markdown)


def why(error: BaseException) -> str:
    message = (getattr(error, "stderr", None) or str(error)).strip()
    return message.splitlines()[-1] if message else repr(error)


def make_study_parser(text: str | None, seconds: float) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="keeps the recordings and the results of the loads")
    parser.add_argument(
        "--collect", action="store_true", help="run the load first; else only what lies in the folder is analysed"
    )
    parser.add_argument("--collect-only", action="store_true", help="run the load, analyse nothing")
    parser.add_argument(
        "--seconds", type=float, default=seconds, help=f"that all of the collecting may take ({seconds:g})"
    )
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--markdown", type=Path, help="a page whose results are put into it, or a new file")
    return parser
