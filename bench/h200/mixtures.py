#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how well attribution separates the powers of kinds of GPU work that alternate far faster than sensors
update.

    make dist
    python3 bench/h200/mixtures.py --joulemap build/dist/joulemap-*/bin/joulemap --kinds A --seeds 2,3 --markdown OUT.md
    python3 bench/h200/mixtures.py --joulemap J --folder DIR      recordings that were made before, e.g. elsewhere

mixture_load.py runs each kind beside one companion kind (the reference, by direct reads of the counter) and all kinds
mixed at random. Windows of the mixture are then attributed, each from its own data only, and compared with the
reference. The modes `hold` and `integral` are shown beside. Settings of the GPU are not changed. Exits 1 when a bar is
missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))
from findings import Findings  # noqa: E402

COMPANION_KERNEL = "add"  # as in mixture_load.py

ATTRIBUTION_MODES = ["regress", "integral", "hold"]
MAX_RMS_ERROR, MAX_CAPPED_RMS_ERROR = 0.025, 0.08
MAX_HALF_WIDTH, MIN_ENERGY_SHARE = 0.06, 0.02
MIN_COVERAGE, MAX_COVERAGE, MIN_WINDOWS = 0.85, 0.95, 200
# If the power of a kind exceeds this multiple of the power limit, the limit may have throttled its bursts.
MAX_POWER_LIMIT_RATIO = 1.0


class Recording:
    def __init__(self, joulemap: str, file: Path, load_log: dict) -> None:
        self.joulemap, self.file, self.load_log = joulemap, file, load_log
        self.began_ns = self.report("domain", "integral", None)["start_monotonic_ns"]
        self.limit_w = load_log.get("limit_w", 700)

    def report(self, by: str, mode: str, window: tuple[float, float] | None) -> dict:
        command = [self.joulemap, "report", "--json", "--by", by, "--mode", mode, str(self.file)]
        if window is not None:
            command += ["--time", f"{window[0]:.6f},{window[1]:.6f}"]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout)

    def seconds(self, moment_ns: int) -> float:
        return (moment_ns - self.began_ns) * 1e-9

    def rows(self, mode: str, window: tuple[float, float]) -> dict[str, dict]:
        """GPU rows by kind, which is the region of the row."""
        rows: dict[str, dict] = {}
        for row in self.report("region", mode, window)["rows"]:
            if row["device"].startswith("gpu") and row["path"][-1] in self.kinds():
                rows[row["path"][-1]] = row
        return rows

    def call_s(self) -> dict[str, float]:
        """Mean kernel time of a call in each region of the reference, over all its measurements, s."""
        calls: dict[str, int] = {}
        for entry in self.load_log["truth"]:
            for region, count in entry["all_calls"].items():
                calls[region] = calls.get(region, 0) + count
        rows = self.report("region", "integral", None)["rows"]
        times = {row["path"][-1]: row["time_s"] for row in rows if row["device"].startswith("gpu")}
        return {region: times[region] / count for region, count in calls.items() if region.endswith(" alone") and count}

    def kernel_s(self) -> dict[str, float]:
        """Mean duration of each kind's kernels in the reference, s."""
        rows = self.report("region", "integral", None)["rows"]
        mean = {row["path"][-1]: row["time_s"] / row["count"] for row in rows if row["device"].startswith("gpu")}
        return {kind: mean[f"{kind} alone"] for kind in self.kinds()}

    def true_powers_w(self) -> tuple[dict[str, list[float]], float]:
        """Power while a kind's kernels run, one value per measurement, and idle power between bursts, W."""
        call_s, companion = self.call_s(), f"{COMPANION_KERNEL} alone"
        known_power_w: dict[str | None, float] = {None: 0.0, COMPANION_KERNEL: 0.0}
        watts: dict[str | None, list[float]] = {}

        def estimate(entry: dict) -> float:
            length_s = (entry["end_ns"] - entry["begin_ns"]) * 1e-9
            busy_s = {region: count * call_s[region] for region, count in entry["calls"].items() if region in call_s}
            rest_s = length_s - sum(busy_s.values())
            if entry["kind"] == COMPANION_KERNEL:
                return (entry["joules"] - known_power_w[None] * rest_s) / busy_s[companion]
            left_j = entry["joules"] - known_power_w[COMPANION_KERNEL] * busy_s[companion]
            if entry["kind"] is None:
                return left_j / rest_s
            return (left_j - known_power_w[None] * rest_s) / busy_s[f"{entry['kind']} alone"]

        for _ in range(20):  # alternates: companion power depends on idle power, and idle power on companion power
            for kind in (COMPANION_KERNEL, None):
                known_power_w[kind] = statistics.fmean(
                    estimate(entry) for entry in self.load_log["truth"] if entry["kind"] == kind
                )
        for entry in self.load_log["truth"]:
            watts.setdefault(entry["kind"], []).append(estimate(entry))
        idle_w = statistics.fmean(watts.pop(None))
        return watts, idle_w

    def kinds(self) -> list[str]:
        return sorted({entry["kind"] for entry in self.load_log["truth"] if entry["kind"] is not None})

    def windows(self, length_s: float) -> list[tuple[float, float]]:
        begin_s, end_s = (self.seconds(self.load_log["mixture"][edge]) for edge in ("begin_ns", "end_ns"))
        count = max(1, int((end_s - begin_s) / length_s))
        return [(begin_s + i * length_s, begin_s + (i + 1) * length_s) for i in range(count)]


def make(joulemap: str, folder: Path, kinds: str, seed: int, truth_s: float, mix_s: float, options: list[str]) -> None:
    file = folder / f"mixture-{kinds}-{seed}"
    program = [sys.executable, str(SCRIPT_FOLDER / "mixture_load.py"), "--kinds", kinds, "--seed", str(seed)]
    program += ["--truth-s", str(truth_s), "--mix-s", str(mix_s), "--out", f"{file}.json"]
    command = [joulemap, "record", "--trace", "full", *options, "-o", f"{file}.joule", "--", *program]
    subprocess.run(command, check=True, timeout=1200, env={**os.environ, "PYTHONUNBUFFERED": "1"})


def rms(values: list[float]) -> float:
    return math.sqrt(statistics.fmean(value * value for value in values)) if values else math.nan


def binomial_interval(success_count: int, count: int) -> tuple[float, float]:
    """Wilson's interval, 95 %."""
    z, share = 1.96, success_count / count
    center = (share + z * z / (2 * count)) / (1 + z * z / count)
    half_width = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return center - half_width, center + half_width


class KernelKindErrors:
    """Results of windows by kind, over all recordings."""

    def __init__(self) -> None:
        self.errors: dict[str, dict[str, list[float]]] = {mode: {} for mode in ATTRIBUTION_MODES}
        self.whole: dict[str, list[float]] = {}
        self.whole_power_errors: dict[str, list[float]] = {}
        self.power_capped_kinds: set[str] = set()
        self.held, self.count = 0, 0
        self.half_widths: list[float] = []
        self.bases: dict[str, int] = {}

    def add(self, recording: Recording, window_s: float) -> None:
        truth, idle_w = recording.true_powers_w()
        mean_w = {kind: statistics.mean(values) for kind, values in truth.items()}
        self.power_capped_kinds |= {
            kind for kind, watts in mean_w.items() if watts > MAX_POWER_LIMIT_RATIO * recording.limit_w
        }
        print(
            f"{recording.file.name}: idle {idle_w:.1f} W; "
            + ", ".join(
                f"{kind} {'/'.join(f'{power_w:.0f}' for power_w in values)}" for kind, values in sorted(truth.items())
            )
        )
        begin, end = recording.windows(1)[0][0], recording.windows(1)[-1][1]
        kernel_s = recording.kernel_s()
        kernel_j = {kind: watts * kernel_s[kind] for kind, watts in mean_w.items()}
        for kind, row in recording.rows("regress", (begin, end)).items():
            self.whole.setdefault(kind, []).append(row["energy_j"] / row["count"] / kernel_j[kind] - 1)
            self.whole_power_errors.setdefault(kind, []).append(row["energy_j"] / row["time_s"] / mean_w[kind] - 1)
        for window in recording.windows(window_s):
            for mode in ATTRIBUTION_MODES:
                self._add_window_errors(recording.rows(mode, window), mode, kernel_j)

    def _add_window_errors(self, rows: dict[str, dict], mode: str, kernel_j: dict[str, float]) -> None:
        total_j = sum(row["energy_j"] for row in rows.values())
        for kind, row in rows.items():
            truth_j = kernel_j[kind] * row["count"]
            self.errors[mode].setdefault(kind, []).append(row["energy_j"] / truth_j - 1)
            if mode != "regress" or kind in self.power_capped_kinds:
                continue
            self.count += 1
            self.held += row["low_j"] <= truth_j <= row["high_j"]
            self.bases[row["basis"]] = self.bases.get(row["basis"], 0) + 1
            if row["energy_j"] > MIN_ENERGY_SHARE * total_j:
                self.half_widths.append((row["high_j"] - row["low_j"]) / 2 / row["energy_j"])


def write_results(findings: Findings, tally: KernelKindErrors, window_s: float) -> None:
    findings.add_line(
        f"\nJoules of a kernel: mean error of whole mixtures, and root mean square error over windows of {window_s:g} s. "
        "Clocks fall a little while kinds at the power limit take their turns, which makes others slower: the column "
        "`its power` shows their power.\n"
    )
    findings.add_line(
        "| kind | whole | its power | "
        + " | ".join(ATTRIBUTION_MODES)
        + " |\n|---|---|---|"
        + "---|" * len(ATTRIBUTION_MODES)
    )
    for kind in sorted(tally.errors["regress"]):
        cells = " | ".join(f"{rms(tally.errors[mode].get(kind, [])):.1%}" for mode in ATTRIBUTION_MODES)
        name = f"{kind} (at the power limit)" if kind in tally.power_capped_kinds else kind
        power = statistics.fmean(tally.whole_power_errors[kind])
        findings.add_line(f"| {name} | {statistics.fmean(tally.whole[kind]):+.1%} | {power:+.1%} | {cells} |")
    findings.add_line("\n| | figure | bar |\n|---|---|---|")
    for name, kinds, max_rms_error in (
        ("kinds below the power limit", set(tally.whole) - tally.power_capped_kinds, MAX_RMS_ERROR),
        ("kinds at the power limit", tally.power_capped_kinds, MAX_CAPPED_RMS_ERROR),
    ):
        mixture_rms_error = rms([error for kind in kinds for error in tally.whole[kind]])
        windows = [rms([error for kind in kinds for error in tally.errors[mode][kind]]) for mode in ATTRIBUTION_MODES]
        if kinds:
            verdict = findings.bar(name, mixture_rms_error <= max_rms_error)
            findings.add_line(
                f"| {name}: RMS error of whole mixtures | {mixture_rms_error:.2%} | <= {max_rms_error:.1%}: {verdict} |"
            )
            load_log = ", ".join(f"{mode} {error:.1%}" for mode, error in zip(ATTRIBUTION_MODES, windows))
            findings.add_line(f"| {name}: of windows | {load_log} | |")
            power = rms([error for kind in kinds for error in tally.whole_power_errors[kind]])
            findings.add_line(f"| {name}: RMS error of their power | {power:.2%} | |")
    width = statistics.median(tally.half_widths)
    width_verdict = findings.bar("half width", width <= MAX_HALF_WIDTH)
    findings.add_line(f"| median half width of kinds above 2 % | {width:.1%} | <= 6%: {width_verdict} |")
    share, (low, high) = tally.held / tally.count, binomial_interval(tally.held, tally.count)
    has_target_coverage = MIN_COVERAGE <= share <= MAX_COVERAGE and tally.count >= MIN_WINDOWS
    findings.add_line(
        f"| 90 % intervals that hold the truth | {share:.1%} of {tally.count} (95 %: {low:.1%} to {high:.1%}) | "
        f"85-95 % of 200: {findings.bar('coverage', has_target_coverage)} |"
    )
    findings.add_line(f"| basis | {tally.bases} | |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--kinds", default="A")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--truth-s", type=float, default=2)
    parser.add_argument("--mix-s", type=float, default=90)
    parser.add_argument("--window-s", type=float, default=15)
    parser.add_argument("--record", default="", help="options of record")
    parser.add_argument("--folder", type=Path, help="keep recordings there, or use those that are there")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    joulemap, findings, tally = str(options.joulemap.resolve()), Findings(), KernelKindErrors()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        if not list(folder.glob("*.joule")):
            for seed in options.seeds.split(","):
                make(joulemap, folder, options.kinds, int(seed), options.truth_s, options.mix_s, options.record.split())
        findings.add_line("## Mixtures of kernels that alternate every 2 to 60 ms\n")
        for file in sorted(folder.glob("*.joule")):
            tally.add(Recording(joulemap, file, json.loads(file.with_suffix(".json").read_text())), options.window_s)
        write_results(findings, tally, options.window_s)
    return findings.conclude(options.markdown)


if __name__ == "__main__":
    sys.exit(main())
