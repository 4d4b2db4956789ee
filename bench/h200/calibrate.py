#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what `joulemap calibrate` measures with square waves of load on a real NVIDIA GPU.

    python3 bench/h200/calibrate.py --joulemap build/bin/joulemap --markdown OUT.md [--rounds 3]

Needs only the driver: no toolkit, no torch. Takes about 27 s per round; nothing else should run on the GPU. Settings of
the GPU are not changed, and results are stored in a separate folder. Exits 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))
from findings import Findings  # noqa: E402

LAG_RANGE_S = (0.0, 0.040)  # the lag of the counter must lie between these
MAX_LAG_DIFFERENCE_S = 0.004  # largest difference of the lag between rounds
MAX_GAIN_ERROR = 0.03


def calibrate(joulemap: Path, folder: Path, seconds: float) -> dict:
    command = [str(joulemap), "calibrate", "--json", "--sensors", "nvml", "--seconds", str(seconds)]
    environment = {**os.environ, "JOULEMAP_DATA": str(folder)}
    completed_process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60 + 40 * 16)
    if completed_process.returncode != 0:
        sys.exit(f"calibrate failed: {completed_process.stderr}")
    return json.loads(completed_process.stdout.strip().split("\n")[-1])


def format_value(value: float | None, scale: float = 1, unit: str = "", digits: int = 1) -> str:
    return "-" if value is None else f"{value * scale:.{digits}f}{unit}"


def describe_averaging(entry: dict) -> str:
    if entry["window_s"] is not None:
        return f"mean of {entry['window_s'] * 1e3:.1f} ms"
    if entry["memory_s"] is not None:
        return f"memory of {entry['memory_s'] * 1e3:.1f} ms"
    return "everything" if entry["lag_s"] is not None else "-"


def table(bench: Findings, entries: list[dict]) -> None:
    bench.add_line(
        "| channel | refresh | lag | 90 % | shows | idle | active idle | loaded | gain | settles | sleeps |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|"
    )
    for entry in entries:
        low, high = format_value(entry["lag_low_s"], 1e3), format_value(entry["lag_high_s"], 1e3, " ms")
        gain_cell = (
            "-" if entry["gain"] is None else f"{100 * (entry['gain'] - 1):+.2f} +- {100 * entry['gain_spread']:.2f} %"
        )
        settle_cell = f"{format_value(entry['settle_s'], 1e3, ' ms', 0)} at {format_value(entry['settle_w'], 1, ' W')}"
        sleep_cell = f"{format_value(entry['sleep_s'], 1, ' s', 2)} at {format_value(entry['sleep_w'], 1, ' W')}"
        powers = " | ".join(format_value(entry[name], 1, " W") for name in ("idle_w", "active_idle_w", "loaded_w"))
        bench.add_line(
            f"| {entry['channel']} | {format_value(entry['refresh_s'], 1e3, ' ms', 2)} | "
            f"{format_value(entry['lag_s'], 1e3, ' ms')} | "
            f"{low} .. {high} | {describe_averaging(entry)} | {powers} | {gain_cell} | {settle_cell} | {sleep_cell} |"
        )


def check(bench: Findings, counter: dict, power_channels: list[dict]) -> None:
    def bar(bar_name: str, is_met: bool) -> None:
        bench.add_line(f"- {bar_name}: {bench.bar(bar_name, is_met)}")

    bar("the counter's lag is known", counter["lag_s"] is not None)
    if counter["lag_s"] is not None:
        bar("the counter lags by 0 to 40 ms", LAG_RANGE_S[0] <= counter["lag_s"] <= LAG_RANGE_S[1])
    powers = [counter["idle_w"], counter["active_idle_w"], counter["loaded_w"]]
    bar("idle < active idle < load", None not in powers and powers[0] < powers[1] < powers[2])
    for entry in power_channels:
        name = entry["channel"].split("-", 1)[1]
        bar(f"what {name} averages over is known", entry["window_s"] is not None or entry["memory_s"] is not None)
        if entry["gain"] is not None:
            bar(f"{name} agrees with the counter within 3 %", abs(entry["gain"] - 1) <= MAX_GAIN_ERROR)
    bar("a gain was found", any(entry["gain"] is not None for entry in power_channels))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5, help="idle, before the load")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path, help="all that calibrate said, a line for each round")
    options = parser.parse_args()
    bench = Findings()
    bench.add_line("# Square waves of load\n")
    lags: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, options.rounds + 1):
            result = calibrate(options.joulemap, Path(folder), options.seconds)
            if options.json:
                with options.json.open("a") as file:
                    file.write(json.dumps(result) + "\n")
            bench.add_line(
                f"\n## Round {number}: {result['watched_s']:.0f} s, loaded {', '.join(result['loaded']) or 'nothing'}\n"
            )
            for diagnostic in result["diagnostics"]:
                bench.add_line(f"{diagnostic['code']}: {diagnostic['message']}\n")
            bench.bar("a GPU was loaded", bool(result["loaded"]))
            for domain in result["loaded"]:
                names = [f"{domain}-{name}" for name in ("energy", "power-instant", "power-average", "power-history")]
                entries = [entry for entry in result["calibration"] if entry["channel"] in names]
                table(bench, entries)
                bench.add_line("")
                counter = next(entry for entry in entries if entry["channel"].endswith("-energy"))
                check(bench, counter, [entry for entry in entries if entry is not counter])
                if counter["lag_s"] is not None:
                    lags.setdefault(domain, []).append(counter["lag_s"])
    for domain, domain_lags_s in lags.items():
        apart_s = max(domain_lags_s) - min(domain_lags_s)
        verdict = bench.bar("the lag is the same in every round", apart_s <= MAX_LAG_DIFFERENCE_S)
        bench.add_line(f"\n{domain}: the counter's lag differs by {apart_s * 1e3:.2f} ms between rounds: {verdict}")
    return bench.conclude(options.markdown)


if __name__ == "__main__":
    sys.exit(main())
