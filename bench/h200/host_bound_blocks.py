#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the energy of blocks, active and waiting, with the extra energy of a step that runs the block twice.

    make dist
    python3 bench/h200/host_bound_blocks.py --joulemap build/dist/joulemap-*/bin/joulemap [--cases llama_inference,...]

Each case runs in its own process under `joulemap record` with default settings and calls jm.validate on a network of
host_bound_networks.py. Prints RMS errors over blocks of at least 5 % of a pass and how often the 90 % interval covers the
measured energy. About 90 s a case.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))
from findings import Findings  # noqa: E402
from host_bound_networks import CASES  # noqa: E402

MAX_RUN_S = 400


def examine_case(joulemap: str, case: str, options: argparse.Namespace, folder: Path) -> dict:
    command = [joulemap, "record", *options.record.split(), "-o", str(folder / f"{case}.joule"), "--", sys.executable,
               str(SCRIPT_FOLDER / "host_bound_networks.py"), case, "--out", str(folder / f"{case}.json"),
               "--recorded-s", str(options.recorded_s), "--seconds", str(options.seconds),
               "--rounds", str(options.rounds)]  # fmt: skip
    if options.probe:
        command.append("--probe")
    completed_process = subprocess.run(command, capture_output=True, text=True, timeout=MAX_RUN_S, check=False)
    out = folder / f"{case}.json"
    if not out.exists():
        return {"case": case, "failure": (completed_process.stdout + completed_process.stderr)[-1500:]}
    return {"case": case, **json.loads(out.read_text()), "text": completed_process.stdout}


def format_result_cells(result: dict) -> list[str]:
    if "failure" in result:
        return [result["case"], "failed", *[""] * 6]
    blocks = [block for block in result["blocks"] if block["share"] >= 0.05 and block["error"] is not None]
    covered_count = sum(block["low_j"] <= block["busy_j"] <= block["high_j"] for block in blocks)
    # The measured energy has an interval, too.
    overlapping_count = sum(
        block["low_j"] <= block["busy_j"] + (block["half_width_j"] or 0)
        and block["high_j"] >= block["busy_j"] - (block["half_width_j"] or 0)
        for block in blocks
    )
    rms = (sum(block["error"] ** 2 for block in blocks) / len(blocks)) ** 0.5 if blocks else float("nan")
    by_time = [block["by_time_error"] for block in blocks if block["by_time_error"] is not None]
    rms_by_time = (sum(error**2 for error in by_time) / len(by_time)) ** 0.5 if by_time else float("nan")
    noise = [block["half_width_j"] / block["busy_j"] for block in blocks if block["half_width_j"]]
    return [result["case"], f"{1e3 * result['pass_s']:.2f} ms", f"{result['pass_j'] / result['pass_s']:.0f} W",
            f"{result['idle_share']:.0%}", f"{100 * rms:.1f} %", f"{100 * rms_by_time:.1f} %",
            f"{covered_count} ({overlapping_count}) of {len(blocks)}",
            f"{100 * sum(noise) / max(len(noise), 1):.1f} %"]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--record", default="", help="further options of joulemap record")
    parser.add_argument("--recorded-s", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each loop")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--probe", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for recordings and results")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    findings = Findings()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        results = []
        for case in options.cases.split(","):
            results.append(examine_case(str(options.joulemap), case, options, folder))
            print(json.dumps(results[-1])[:200], file=sys.stderr, flush=True)
            print(results[-1].get("text") or results[-1].get("failure"), file=sys.stderr, flush=True)
    columns = ["case", "pass", "power", "in no block", "RMS error", "by time", "covered", "noise of the truth"]
    findings.table(columns, [format_result_cells(result) for result in results])
    return findings.conclude(options.markdown)


if __name__ == "__main__":
    sys.exit(main())
