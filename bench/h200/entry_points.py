#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls every command and every public Python function once with a real GPU, and prints what failed.

    make dist
    python3 bench/h200/entry_points.py --joulemap build/dist/joulemap-*/bin/joulemap --folder DIR        about 4 minutes

The load is a small training of entry_points_load.py. Writes what each call printed to DIR/outputs.txt. Exits 1 when a call
fails, when a measured energy is missing, or when the energies of the entry points that measure the same loop differ by
more than 5 %. --only TEXT runs the calls whose name contains the text. --device cpu is a trial on a machine without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))
from entry_points_load import FUNCTIONS, LOAD_S  # noqa: E402
from findings import Findings  # noqa: E402

MAX_RUN_S = 150
MAX_RELATIVE_DIFFERENCE = 0.05  # of the joules per step between entry points
LOAD = str(SCRIPT_FOLDER / "entry_points_load.py")


def list_commands(joulemap: str, device: str, folder: Path) -> dict[str, list[str]]:
    """Name of a call -> its command line. Later commands read what earlier ones wrote."""
    python, first_recording, second_recording = (
        sys.executable,
        str(folder / "first.joule"),
        str(folder / "second.joule"),
    )
    train = [python, LOAD, "train", "--device", device]
    commands = {
        "doctor": ["doctor"],
        "stat": ["stat", "-r", "2", "--", *train, "--seconds", "2"],
        "record": ["record", "-o", first_recording, "--", *train],
        "record --trace full --probe": ["record", "--trace", "full", "--probe", "-o", second_recording, "--", *train],
        "record -p": ["record", "-p", "{pid}", "-o", str(folder / "pid.joule")],
        "report": ["report", first_recording],
        "report --json": ["report", "--json", first_recording],
        **{f"report --by {level}": ["report", "--by", level, first_recording] for level in
           ("module", "op", "kernel", "phase", "step", "epoch", "region", "domain", "function", "stack", "tensor")},
        "report --html": ["report", "--html", str(folder / "first.html"), first_recording],
        **{f"report --plot {plot}": ["report", "--plot", plot, "-o", str(folder / f"{plot}.svg"), first_recording]
           for plot in ("timeline", "violin", "box", "lines", "bars", "loss", "flame", "heatmap")},
        "report --disclose": ["report", "--disclose", "boamps", "--stage", "training", first_recording],
        "advise": ["advise", first_recording],
        "diff": ["diff", first_recording, second_recording],
        **{f"export {form}": ["export", "--to", form, "-o", str(folder / f"export.{form}"), first_recording] for form in
           ("tensorboard", "parquet", "perfetto", "pprof", "folded", "speedscope", "dot", "csv", "sqlite")},
        "predict": ["predict", "--device", "h200", str(folder / "operations.json")],
        "share": ["share", "-o", str(folder / "shared.joule"), first_recording],
        "bundle": ["bundle", "-o", str(folder / "first.bundle"), first_recording],
        "verify": ["verify", str(folder / "first.bundle")],
        "operation": ["operation", "torch.nn.Conv2d"],
    }  # fmt: skip
    return {name: [joulemap, *arguments] for name, arguments in commands.items()}


def run(name: str, command: list[str], package: Path, outputs: Path) -> dict:
    began = time.monotonic()
    variables = {**os.environ, "PYTHONPATH": f"{package}:{os.environ.get('PYTHONPATH', '')}"}
    try:
        completed_process = subprocess.run(
            command, capture_output=True, text=True, timeout=MAX_RUN_S, check=False, env=variables, errors="replace"
        )
        code, text = completed_process.returncode, completed_process.stdout + completed_process.stderr
    except subprocess.TimeoutExpired as expired:
        code, text = 124, str(expired.stdout)[-2000:]
    with outputs.open("a") as file:
        file.write(f"\n===== {name}: exit {code}\n$ {' '.join(command)}\n{text[:6000]}\n")
    line = next(
        (output_line for output_line in reversed(text.splitlines()) if output_line.startswith('{"joules_per_step"')),
        "{}",
    )
    return {"name": name, "code": code, "time_s": time.monotonic() - began, "text": text, **json.loads(line)}


def run_attached_to_process(name: str, command: list[str], device: str, package: Path, outputs: Path) -> dict:
    training = subprocess.Popen(
        [sys.executable, LOAD, "train", "--device", device, "--seconds", "5", "--ready"],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(package)})  # fmt: skip
    try:
        training.stdout.readline()  # it has made its first steps
        return run(name, [part.format(pid=training.pid) for part in command], package, outputs)
    finally:
        training.kill()
        training.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--only", default="")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    joulemap, outputs = str(options.joulemap.resolve()), options.folder / "outputs.txt"
    package = Path(joulemap).parent.parent / "python"
    calls = {f"jm.{name}": [sys.executable, LOAD, name, "--device", options.device, "--folder", str(options.folder)]
             for name in FUNCTIONS if name != "train"}  # fmt: skip
    calls["jm.validate"] = [
        joulemap,
        "record",
        "-o",
        str(options.folder / "validate.joule"),
        "--",
        *calls["jm.validate"],
    ]
    calls |= list_commands(joulemap, options.device, options.folder)
    findings, results = Findings(), []
    for name, command in calls.items():
        if not any(text in name for text in options.only.split(",")):
            continue
        if name == "record -p":
            results.append(run_attached_to_process(name, command, options.device, package, outputs))
        else:
            results.append(run(name, command, package, outputs))
    rows = []
    for result in results:
        bar_verdict = findings.bar(f"{result['name']}: exit {result['code']}", result["code"] == 0)
        per_step = f"{result['joules_per_step']:.3f} J" if result.get("joules_per_step") else ""
        last_line = (result["text"].strip().splitlines() or [""])[-1][:100].replace("|", "/")
        rows.append([result["name"], bar_verdict, f"{result['time_s']:.1f} s", per_step, last_line])
    findings.table(["call", "ended well", "time", "energy of a step", "last line"], rows)
    steps_j = {
        call_result["name"]: call_result["joules_per_step"]
        for call_result in results
        if call_result.get("joules_per_step")
    }
    if steps_j:
        median_j = statistics.median(steps_j.values())
        for name, energy_j in steps_j.items():
            difference = energy_j / median_j - 1
            findings.bar(f"{name}: {difference:+.1%} from the median", abs(difference) <= MAX_RELATIVE_DIFFERENCE)
    findings.add_line(f"Loops of {LOAD_S:.0f} s. What each call printed: {outputs}")
    return findings.conclude(options.markdown)


if __name__ == "__main__":
    sys.exit(main())
