#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the time to read a trace of PyTorch's profiler, beside Python's json.loads and HolisticTraceAnalysis.

    bench/ingest/kineto.py [--build build] [--repeats 7] [TRACE.json[.gz] ...]   # exits 1 when a bar is missed

Without a trace it generates one of 64 MB. Each trace is read plain and from gzip. The readers take turns, and the best
time of each counts: other load on the machine can only add time. json.loads gets the uncompressed text in memory;
Joulemap's reader starts with the file. `joulemap import` is the whole command: start, reading, assigning scopes, writing the
recording, waiting for the disk, exit. It has its own bar. HolisticTraceAnalysis runs once, in its own environment
(BUILD/venv-hta, created when it is missing).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from trace_maker import write_trace
from whole_command import run_import

SCRIPT_FOLDER = Path(__file__).resolve().parent
ROOT = SCRIPT_FOLDER.parent.parent
MIN_SPEED_RATIO = 20.0
MIN_TRACE_BYTES = 20_000_000  # bytes; no bar applies to smaller traces
MAX_BASE_MEMORY_BYTES = 64 << 20
MAX_BYTES_PER_EVENT = 48
GENERATED_TRACE_BYTES = 64_000_000

HTA = """
import contextlib, io, json, logging, sys, time
logging.disable(logging.CRITICAL)
from hta.common.trace_parser import parse_trace_dataframe
from hta.configs.parser_config import ParserConfig
begin = time.perf_counter()
with contextlib.redirect_stdout(io.StringIO()):
    parse_trace_dataframe(sys.argv[1], ParserConfig.get_default_cfg())
print(json.dumps({"seconds": time.perf_counter() - begin}))
"""


@dataclass
class Row:
    trace: str
    megabytes: float
    events: int
    reader: str
    seconds: float
    ratio: float
    peak_mb: float | None = None
    bar: str = ""
    command_verdict: str = ""


def measure_json_loads_s(text: bytes) -> float:
    begin = time.perf_counter()
    json.loads(text)
    return time.perf_counter() - begin


def run_joulemap(program: Path, trace: Path) -> dict:
    completed_process = subprocess.run([str(program), str(trace)], check=True, capture_output=True, text=True)
    return json.loads(completed_process.stdout)


def prepare_hta_python(build: Path) -> Path | None:
    """Returns the interpreter with HolisticTraceAnalysis; None when it cannot be installed here."""
    python = build / "venv-hta" / "bin" / "python"
    install_marker = build / "venv-hta" / ".installed"
    if not install_marker.exists():
        subprocess.run([sys.executable, "-m", "venv", str(build / "venv-hta")], check=True)
        pip_command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*pip_command, "-r", str(SCRIPT_FOLDER / "requirements.txt")], check=False).returncode != 0:
            return None
        install_marker.touch()
    return python


def measure_hta_s(python: Path | None, trace: Path) -> float | None:
    if python is None:
        return None
    completed_process = subprocess.run(
        [str(python), "-c", HTA, str(trace)], check=False, capture_output=True, text=True
    )
    if completed_process.returncode != 0:
        print(f"HolisticTraceAnalysis failed: {completed_process.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(completed_process.stdout)["seconds"]


def provide_both_forms(trace: Path, folder: Path) -> tuple[Path, Path]:
    """Returns the trace plain and compressed, whichever form was given."""
    plain_trace, compressed_trace = folder / "trace.json", folder / "trace.json.gz"
    is_compressed = trace.read_bytes()[:2] == b"\x1f\x8b"
    if is_compressed:
        compressed_trace.write_bytes(trace.read_bytes())
        plain_trace.write_bytes(gzip.decompress(trace.read_bytes()))
    else:
        shutil.copy(trace, plain_trace)
        compressed_trace.write_bytes(gzip.compress(plain_trace.read_bytes(), 6))
    return plain_trace, compressed_trace


def judge_speed_and_memory(result: dict, ratio: float, text_bytes: int, events: int) -> str:
    is_lean = result["peak_bytes"] <= MAX_BASE_MEMORY_BYTES + MAX_BYTES_PER_EVENT * events
    is_fast = ratio >= MIN_SPEED_RATIO or text_bytes < MIN_TRACE_BYTES
    return "met" if is_lean and is_fast else "MISSED"


def compare(trace: Path, arguments: argparse.Namespace, hta_interpreter: Path | None) -> list[Row]:
    reader, command = (arguments.build / "bin" / name for name in ("bench_read_trace", "joulemap"))
    with tempfile.TemporaryDirectory() as folder:
        trace_forms = provide_both_forms(trace, Path(folder))
        text = trace_forms[0].read_bytes()
        json_loads_s = float("inf")
        read_results, import_results = ([{"seconds": float("inf")}] * 2 for _ in range(2))
        for _ in range(arguments.repeats):
            json_loads_s = min(json_loads_s, measure_json_loads_s(text))
            for i, form in enumerate(trace_forms):
                read_results[i] = min(read_results[i], run_joulemap(reader, form), key=lambda result: result["seconds"])
                import_results[i] = min(
                    import_results[i], run_import(command, "kineto", form), key=lambda result: result["seconds"]
                )
        size, events = len(text) / 1e6, read_results[0]["events"]

        def row_of(name: str, result: dict) -> Row:
            ratio = json_loads_s / result["seconds"]
            return Row(trace.name, size, events, name, result["seconds"], ratio, result["peak_bytes"] / 1e6)

        rows = [Row(trace.name, size, events, "json.loads, text in memory", json_loads_s, 1.0)]
        for form, read, import_result in zip(("plain", "gzip"), read_results, import_results):
            rows.append(row_of(f"joulemap, {form}", read))
            rows[-1].bar = judge_speed_and_memory(read, rows[-1].ratio, len(text), events)
            rows.append(row_of(f"joulemap import, whole command, {form}", import_result))
            rows[-1].command_verdict = judge_speed_and_memory(import_result, rows[-1].ratio, len(text), events)
        hta_s = measure_hta_s(hta_interpreter, trace_forms[1])
        if hta_s is not None:
            rows.append(Row(trace.name, size, events, "HolisticTraceAnalysis, gzip", hta_s, json_loads_s / hta_s))
    return rows


def print_table(rows: list[Row]) -> None:
    memory = f"64 MiB and {MAX_BYTES_PER_EVENT} bytes an event"
    print(f"Bars, for traces above 20 MB: {MIN_SPEED_RATIO:.0f} times json.loads; {memory}.\n")
    print("| trace | MB | events | reader | seconds | MB/s | times json.loads | peak MB | bar | whole command |")
    print("|---|--:|--:|---|--:|--:|--:|--:|---|---|")
    for row in rows:
        peak = f"{row.peak_mb:.1f}" if row.peak_mb is not None else ""
        print(
            f"| {row.trace} | {row.megabytes:.1f} | {row.events} | {row.reader} | {row.seconds:.4f} | "
            f"{row.megabytes / row.seconds:.0f} | {row.ratio:.1f} | {peak} | {row.bar} | {row.command_verdict} |"
        )
    print(f"\n{os.cpu_count()} cores, Python {sys.version.split()[0]}.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--without-hta", action="store_true")
    arguments = parser.parse_args()
    hta_interpreter = None if arguments.without_hta else prepare_hta_python(arguments.build)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        traces = arguments.traces
        if not traces:
            traces = [Path(folder) / "made.json"]
            write_trace(traces[0], GENERATED_TRACE_BYTES)
        for trace in traces:
            rows += compare(trace, arguments, hta_interpreter)
    print_table(rows)
    return 1 if any("MISSED" in (row.bar, row.command_verdict) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
