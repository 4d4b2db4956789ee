#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how often `joulemap diff` reports a change between runs of one program, and which changes it can detect.

    make dist-x86_64 (or dist)
    python3 bench/h200/diff_false_positives.py --joulemap build/dist/joulemap-*/bin/joulemap --record --pack PACKED
    python3 bench/h200/diff_false_positives.py --joulemap build/bin/joulemap --analyze PACKED --markdown OUT.md

--record runs the programs of diff_programs.py in turn (unet resnet18 transformer mlp unet ...), 11 times each, under
`joulemap record`. In the time that remains of --seconds it runs variants in which every 8th step runs the model twice.
--pack puts the recordings into archives below 15 MB. --analyze needs no GPU. It compares neighbouring recordings of
each program, 40 pairs without any difference, and prints three results. First, how many pairs `diff` reports as
changed at its 90 % level (the bar: at most 10 %). Second, the standard deviation between runs beside the prior. Third,
the smallest change that 1, 3 and 5 recordings per side detect, as printed and as tried. Exits 1 when the bar is
missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))
from findings import Findings  # noqa: E402

NETWORK_NAMES = [
    "unet",
    "resnet18",
    "transformer",
    "mlp",
]  # of diff_programs.py, repeated here because that file imports torch
MAX_FALSE_POSITIVE_RATE = 0.10
DOUBLED_STEP_INTERVAL = 8
CHANGED_KIND = "changed"
SPLIT_COUNT = 20  # random splits of a program's recordings into two sides
MAX_PACK_BYTES = 15_000_000
STUDENT_T_90_DF4 = 2.1318  # Student's t for the prior's 4 degrees of freedom, two-sided at 90 %
PRIOR_SDS = [0.005, 0.01, 0.015, 0.02, 0.03, 0.05]


# Recording


def record(options: argparse.Namespace, name: str, number: int, twice_every: int) -> float:
    kind = CHANGED_KIND if twice_every else "same"
    file = options.folder / f"{name}-{kind}-{number:02d}.joule"
    load = [sys.executable, str(SCRIPT_FOLDER / "diff_programs.py"), name, "--seconds", str(options.loop_s)]
    load += ["--device", options.device, "--twice-every", str(twice_every)]
    # Powers of kernels learned in one run must not affect the next: each starts with an empty library.
    environment = {**os.environ, "JOULEMAP_DATA": str((options.folder / "data" / file.stem).resolve())}
    begun = time.monotonic()
    command = [str(options.joulemap), "record", *options.record_option, "-o", str(file), "--", *load]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    took_s = time.monotonic() - begun
    if run.returncode != 0:
        raise SystemExit(f"{file.name}: exit code {run.returncode}\n{run.stderr[-2000:]}")
    print(f"{file.name}: {run.stdout.strip()} steps, {took_s:.1f} s, {file.stat().st_size} bytes", flush=True)
    return took_s


def record_programs(options: argparse.Namespace) -> None:
    options.folder.mkdir(parents=True, exist_ok=True)
    until_s = time.monotonic() + options.seconds
    longest_s = 0.0
    planned_recordings = [
        (n, name, 0) for n in range(0 if options.changed_only else options.recordings) for name in options.programs
    ]
    planned_recordings += [
        (n, name, DOUBLED_STEP_INTERVAL) for n in range(options.changed) for name in options.programs
    ]
    for number, name, twice_every in planned_recordings:
        if time.monotonic() + longest_s > until_s:
            return print(f"no time left for {name} {number}{' changed' if twice_every else ''}", flush=True)
        longest_s = max(longest_s, record(options, name, number, twice_every))


def pack_recordings(folder: Path, archive_folder: Path) -> None:
    archive_folder.mkdir(parents=True, exist_ok=True)
    parts: list[list[Path]] = [[]]
    size = 0
    for file in sorted(folder.glob("*.joule")):
        if parts[-1] and size + file.stat().st_size > MAX_PACK_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(file)
        size += file.stat().st_size
    for number, files in enumerate(parts):
        with tarfile.open(archive_folder / f"recordings-{number}.tar.gz", "w:gz") as archive:
            for file in files:
                archive.add(file, file.name)


def unpack_recordings(folder: Path, target_folder: Path) -> Path:
    archives = sorted(folder.glob("recordings-*.tar.gz"))
    for name in archives:
        with tarfile.open(name) as archive:
            archive.extractall(target_folder, filter="data")
    return target_folder if archives else folder


# Analysis


class Program:
    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.same = sorted(folder.glob(f"{name}-same-*.joule"))
        self.changed = sorted(folder.glob(f"{name}-{CHANGED_KIND}-*.joule"))
        self.pairs: list[dict] = []  # comparisons with one recording per side
        self.repeated: dict[int, list[dict]] = {3: [], 5: []}
        self.found: dict[int, list[dict]] = {1: [], 3: [], 5: []}  # with a known change on one side


def run_diff(options: argparse.Namespace, baseline_files: list[Path], compared_files: list[Path]) -> dict:
    command = [str(options.joulemap), "diff", "--json", "--by", options.by, "--per", "step", *options.diff_option]
    command += [*map(str, compared_files), "--baseline", *map(str, baseline_files)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if run.returncode not in (0, 1) or not run.stdout:
        raise SystemExit(f"{' '.join(command)}\n{run.stderr}")
    return json.loads(run.stdout)


def draw_comparison_sides(files: list[Path], count: int) -> list[tuple[list[Path], list[Path]]]:
    """Draws pairs of sides with `count` recordings each, at random without replacement."""
    if len(files) < 2 * count:
        return []
    draw = random.Random(5)
    file_samples = [draw.sample(files, 2 * count) for _ in range(SPLIT_COUNT)]
    return [(sides[:count], sides[count:]) for sides in file_samples]


def compare_programs(options: argparse.Namespace, programs: list[Program]) -> None:
    jobs: list[tuple[list, list[Path], list[Path]]] = []
    for program in programs:
        jobs += [
            (program.pairs, [baseline_file], [compared_file])
            for baseline_file, compared_file in zip(program.same, program.same[1:])
        ]
        for count, results in program.repeated.items():
            jobs += [
                (results, baseline_files, compared_files)
                for baseline_files, compared_files in draw_comparison_sides(program.same, count)
            ]
        jobs += [
            (program.found[1], [baseline_file], [compared_file])
            for baseline_file, compared_file in zip(program.same, program.changed)
        ]
        for count in (3, 5):
            if len(program.changed) >= count:
                jobs.append((program.found[count], program.same[:count], program.changed[:count]))
    with ThreadPoolExecutor(options.jobs) as pool:
        for (results, _, _), comparison in zip(jobs, pool.map(lambda job: run_diff(options, job[1], job[2]), jobs)):
            results.append(comparison)


def is_changed(comparison: dict) -> bool:
    return comparison["total"]["verdict"] in ("grew", "shrank")


def has_changed_entry(comparison: dict) -> bool:
    return any(entry["verdict"] in ("grew", "shrank") for entry in comparison["entries"])


def list_run_energies_j(program: Program) -> list[float]:
    baseline_energies_j = [pair["a"]["recordings"][0]["energy_j"] for pair in program.pairs]
    return [*baseline_energies_j, program.pairs[-1]["b"]["recordings"][0]["energy_j"]]


def relative_deviations(values: list[float]) -> tuple[float, float]:
    """Relative standard deviation over all runs, and from differences of consecutive runs alone, without drift."""
    logs = [math.log(value) for value in values]
    steps = [next_log - previous_log for previous_log, next_log in zip(logs, logs[1:])]
    return statistics.stdev(logs), math.sqrt(sum(step * step for step in steps) / (2 * len(steps)))


def format_percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def write_pair_comparisons(findings: Findings, programs: list[Program], options: argparse.Namespace) -> None:
    rows, pairs = [], [pair for program in programs for pair in program.pairs]
    for program in programs:
        runs, neighbours = relative_deviations(list_run_energies_j(program))
        within_run_sd = statistics.median(pair["a"]["recordings"][0]["within"] for pair in program.pairs)
        left_out = [(pair["a"]["recordings"][0]["left_out"] or {}).get("warm_up_steps", 0) for pair in program.pairs]
        largest_difference = max(abs(pair["total"]["relative"]) for pair in program.pairs)
        rows.append([
            program.name, str(len(program.same)), f"{statistics.mean(list_run_energies_j(program)):.3g} J",
            f"{statistics.median(left_out):.0f}",
            format_percent(runs, 2), format_percent(neighbours, 2), format_percent(within_run_sd, 2),
            format_percent(largest_difference),
            f"{sum(map(is_changed, program.pairs))} of {len(program.pairs)}",
            f"{sum(map(has_changed_entry, program.pairs))} of {len(program.pairs)}",
        ])  # fmt: skip
    findings.add_line("Runs of one program, each against the next:")
    findings.table(
        ["program", "runs", "a step", "warm-up steps", "sd of runs", "sd by neighbours", "within a run",
         "largest difference", "called changed", "with a changed entry"], rows)  # fmt: skip
    changed_count = sum(map(is_changed, pairs))
    covered_count = sum(pair["total"]["low_j"] <= 0 <= pair["total"]["high_j"] for pair in pairs)
    named_pair_count = sum(map(has_changed_entry, pairs))
    steady = sum(pair["state"] == "steady" for pair in pairs)
    bar_verdict = findings.bar(
        "false positives", len(pairs) > 0 and changed_count <= MAX_FALSE_POSITIVE_RATE * len(pairs)
    )
    share = format_percent(changed_count / len(pairs))
    findings.add_line(
        f"**{changed_count} of {len(pairs)} pairs that differ in nothing are called changed** ({share}; the bar is "
        f"{format_percent(MAX_FALSE_POSITIVE_RATE, 0)}: {bar_verdict}). "
        f"Intervals of 90 % cover 0 in {format_percent(covered_count / len(pairs))}; "
        f"an entry by {options.by} is named in {named_pair_count} pairs; {steady} pairs compare steady states."
    )


def write_prior_sensitivity(findings: Findings, programs: list[Program]) -> None:
    """Writes the spread between runs of these programs, and how many pairs would be called changed with other priors of
    that spread."""
    deviations = [relative_deviations(list_run_energies_j(program)) for program in programs]
    rms, neighbour_rms = (
        math.sqrt(sum(deviation_pair[i] ** 2 for deviation_pair in deviations) / len(deviations)) for i in (0, 1)
    )
    prior = programs[0].pairs[0]["run_variation"]
    findings.add_line(
        f"\nStandard deviation between runs, root mean square over programs: {format_percent(rms, 2)} "
        f"({format_percent(neighbour_rms, 2)} by neighbours); the prior is {format_percent(prior['prior_sd'], 2)} with "
        f"{prior['prior_degrees_of_freedom']:g} degrees of freedom."
    )
    rows = []
    for sd in PRIOR_SDS:
        changed_flags = []
        for program in programs:
            for pair in program.pairs:
                within_run_sds = [pair[side]["recordings"][0]["within"] for side in "ab"]
                half_width = STUDENT_T_90_DF4 * math.sqrt(
                    2 * sd**2 + sum(within_run_sd**2 for within_run_sd in within_run_sds)
                )
                changed_flags.append(abs(pair["total"]["relative"]) > half_width)
        rows.append([format_percent(sd), format_percent(sum(changed_flags) / len(changed_flags))])
    findings.table(["prior (4 degrees of freedom)", "false positives it would give"], rows)


def write_detectable_changes(findings: Findings, programs: list[Program]) -> None:
    rows = []
    for program in programs:
        comparisons_by_count = {1: program.pairs, 3: program.repeated[3], 5: program.repeated[5]}
        cells = []
        for results in comparisons_by_count.values():
            cells.append(
                format_percent(statistics.median(comparison["smallest_change"] for comparison in results))
                if results
                else "-"
            )
        false = [f"{sum(map(is_changed, sides))} of {len(sides)}" for sides in program.repeated.values()]
        rows.append([program.name, *cells, *false])
    findings.add_line(
        "The smallest change that one, three and five recordings a side establish, as `diff` prints it (median), and "
        "pairs of such sides, which differ in nothing, that are called changed:"
    )
    findings.table(["program", "1", "3", "5", "3: called changed", "5: called changed"], rows)


def write_found_changes(findings: Findings, programs: list[Program]) -> None:
    rows = []
    for program in programs:
        for count, results in program.found.items():
            if not results:
                continue
            change = statistics.median(comparison["total"]["relative"] for comparison in results)
            smallest_change = statistics.median(comparison["smallest_change"] for comparison in results)
            found_count = sum(comparison["total"]["verdict"] == "grew" for comparison in results)
            rows.append(
                [
                    program.name,
                    str(count),
                    format_percent(change),
                    format_percent(smallest_change),
                    f"{found_count} of {len(results)}",
                ]
            )
    if not rows:
        return findings.add_line("No recordings of a changed program: which changes are found was not tried.")
    findings.add_line(f"The same programs with the model run twice in every {DOUBLED_STEP_INTERVAL}th step:")
    findings.table(["program", "recordings a side", "measured change", "smallest change printed", "found"], rows)


def analyze(options: argparse.Namespace, folder: Path) -> int:
    findings = Findings()
    programs = [program for program in (Program(name, folder) for name in NETWORK_NAMES) if len(program.same) > 1]
    if not programs:
        raise SystemExit(f"{folder}: no recordings")
    compare_programs(options, programs)
    write_pair_comparisons(findings, programs, options)
    write_prior_sensitivity(findings, programs)
    write_detectable_changes(findings, programs)
    write_found_changes(findings, programs)
    return findings.conclude(options.markdown)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--analyze", type=Path, metavar="FOLDER", help="of recordings, or of what --pack wrote")
    parser.add_argument("--folder", type=Path, default=Path("diff-recordings"), help="where --record writes")
    parser.add_argument("--pack", type=Path, metavar="FOLDER", help="archives of the recordings, below 15 MB each")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--programs", default=",".join(NETWORK_NAMES), type=lambda text: text.split(","))
    parser.add_argument("--recordings", type=int, default=11, help="of each program")
    parser.add_argument("--changed", type=int, default=5, help="of each changed program, if there is time")
    parser.add_argument("--changed-only", action="store_true")
    parser.add_argument("--seconds", type=float, default=350, help="that recording may take")
    parser.add_argument("--loop-s", type=float, default=2.0, help="of a recorded program")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument(
        "--record-option", action="append", default=[], help="of joulemap record, such as --sysroot=DIR"
    )
    parser.add_argument("--diff-option", action="append", default=[], help="of joulemap diff, such as --run-sd=1%%")
    parser.add_argument("--by", default="layer")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    options.joulemap = options.joulemap.resolve()
    return options


def main() -> int:
    options = parse_arguments()
    if options.record:
        record_programs(options)
    if options.pack:
        pack_recordings(options.folder, options.pack)
    if not options.analyze:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return analyze(options, unpack_recordings(options.analyze, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
