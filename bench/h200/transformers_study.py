#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Smaragdine's study of BERT and ALBERT on this GPU: energy by part, and the effect of hidden size and layer count.

    make dist
    python3 bench/h200/transformers_study.py --joulemap build/dist/joulemap-*/bin/joulemap --folder DIR --collect  # 150 s
    python3 bench/h200/transformers_study.py --joulemap J --folder DIR --markdown OUT.md  # anywhere

transformers_load.py runs the models in two recordings: base sizes with every kernel, then other sizes with the counter
only. Rows of reports use the data of their span and the powers of kernels learned from the whole recording
(kernels.joule beside it). Settings of the GPU are not changed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from findings import Findings
from recordings import (
    SCRIPT_FOLDER,
    INVALID_DATA_ERRORS,
    EnergyUse,
    Recording,
    collect,
    run_study,
    make_study_parser,
    read_load_log,
    why,
)
from study_statistics import CONFIRMED, NOT_SHOWN, REFUTED, Interval, fit_power_law, sum_interval, verdict_above
from transformer_parts import ATTENTION_PART, FEED_FORWARD_PART, LAYER_PARTS, TRANSFORMER_PARTS, transformer_part_of

CASES_RECORDING, SWEEP_RECORDING = "cases", "sweep"
CASES_TIME_SHARE = 0.57  # share of the time for the recording of cases
MAX_ALBERT_RATIO = 0.65
MIN_ENERGY_SHARE = 0.01
LISTED_TENSOR_COUNT = 10


class TaskCase(NamedTuple):
    model: str
    task: str
    precision: str
    step: EnergyUse
    passes: int
    forward_j: Interval | None  # J per step without backward pass and update, by the counter
    parts: dict[str, Interval]  # J per step, by part
    by_time: dict[str, float]
    phases: dict[str, Interval]
    tensors: list[dict]

    @property
    def step_j(self) -> Interval:
        return energy_per_pass(self.step, self.passes)

    @property
    def name(self) -> str:
        return f"{self.model}, {self.task}" + ("" if self.precision == "fp32" else f", {self.precision}")


def energy_per_pass(drawn: EnergyUse, passes: int) -> Interval:
    half = drawn.half_width_j
    return Interval(*(joules / passes for joules in (drawn.joules, drawn.joules - half, drawn.joules + half)))


def is_device_energy_row(row: dict, device: str) -> bool:
    return (
        row["device"] == device and row["energy_j"] is not None and row["path"][:1] not in (["probe"], ["background"])
    )


def make_row_interval(row: dict) -> Interval:
    low, high = row["low_j"], row["high_j"]
    energy = row["energy_j"]
    return Interval(energy, energy if low is None else low, energy if high is None else high)


def sum_by_group(rows: list[dict], key, passes: int) -> dict[str, Interval]:
    groups: dict[str, list[Interval]] = {}
    for row in rows:
        groups.setdefault(key(row["path"]), []).append(make_row_interval(row).scaled_by(1 / passes))
    return {name: sum_interval(parts) for name, parts in groups.items()}


class CaseRecording:
    def __init__(self, options) -> None:
        self.load_log = read_load_log(options.folder, CASES_RECORDING)
        self.recording = Recording(str(options.joulemap.resolve()), options.folder / f"{CASES_RECORDING}.joule")
        library = options.library or options.folder / "kernels.joule"
        self._library_options = ["--library", str(library)] if library.exists() else []

    def all(self) -> list[TaskCase]:
        steps = [one for one in self.load_log["entries"] if one["part"] == "step"]
        return [self._make_case(one) for one in steps]

    def _make_case(self, entry: dict) -> TaskCase:
        device, passes, recording = self.load_log["device"], entry["passes"], self.recording
        key = ("model", "task", "precision")
        forward = [
            one for one in self.load_log["entries"] if one["part"] == "forward" and all(one[k] == entry[k] for k in key)
        ]

        def rows(by: str, *more: str) -> list[dict]:
            return [
                row for row in recording.report(["--by", by, *more], entry)["rows"] if is_device_energy_row(row, device)
            ]

        layers = rows("layer", *self._library_options)
        return TaskCase(
            entry["model"],
            entry["task"],
            entry["precision"],
            recording.energy_of_span(entry, device),
            passes,
            energy_per_pass(recording.energy_of_span(forward[0], device), forward[0]["passes"]) if forward else None,
            sum_by_group(layers, transformer_part_of, passes),
            {
                name: one.value
                for name, one in sum_by_group(rows("layer", "--mode", "integral"), transformer_part_of, passes).items()
            },
            sum_by_group(rows("phase", *self._library_options), lambda path: path[-1], passes),
            sorted(rows("tensor", *self._library_options), key=lambda row: -row["energy_j"])[:LISTED_TENSOR_COUNT],
        )


def combine_verdicts(verdicts: list[str]) -> str:
    """Combines verdicts: the claim must hold in all of them."""
    if verdicts and all(one == CONFIRMED for one in verdicts):
        return CONFIRMED
    return REFUTED if verdicts and all(one == REFUTED for one in verdicts) else NOT_SHOWN


def write_part_energies(findings: Findings, cases: list[TaskCase]) -> None:
    findings.add_line(
        "Energy of a step by part: joules (90 %), share of the energy of layers and updates, and the share by time "
        "alone."
    )
    rows = []
    for case in cases:
        total_j, time_j = (
            sum(values) or 1.0 for values in ([one.value for one in case.parts.values()], case.by_time.values())
        )
        for part in [name for name in TRANSFORMER_PARTS if name in case.parts]:
            found = case.parts[part]
            by_time = case.by_time.get(part, 0.0) / time_j
            rows.append(
                [case.name, part, f"{found.as_text('.3f')} J", f"{found.value / total_j:.1%}", f"{by_time:.1%}"]
            )
        rows.append([case.name, "**all**, by the counter", f"**{case.step_j.as_text('.3f')} J**", "", ""])
    findings.table(["", "part", "energy", "share", "by time"], rows)


def write_backward(findings: Findings, cases: list[TaskCase]) -> None:
    """Compares attribution with the counter alone: a step against the same step without backward pass and update."""
    rows, verdicts, counted = [], [], []
    for case in cases:
        if "backward" not in case.phases or "forward" not in case.phases:
            continue
        ratio = case.phases["backward"].ratio_to(case.phases["forward"])
        verdicts.append(verdict_above(ratio, 1.0))
        counter_ratio_cell = "-"
        if case.forward_j is not None:
            forward, step = case.forward_j, case.step_j
            rest = Interval(step.value - forward.value, step.low - forward.high, step.high - forward.low).ratio_to(
                forward
            )
            counted.append(verdict_above(rest, 1.0))
            counter_ratio_cell = rest.as_text(".2f")
        rows.append([case.name, ratio.as_text(".2f"), verdicts[-1], counter_ratio_cell])
    findings.add_line("\n### Backward against forward\n")
    head = ["", "backward / forward, attributed", "above 1", "(backward + update) / forward, by the counter"]
    findings.table(head, rows)
    findings.add_line(
        f"**The backward pass dominates: {combine_verdicts(verdicts)}** by attribution; with the update, by the counter "
        f"alone: {combine_verdicts(counted)}."
    )


def write_attention(findings: Findings, cases: list[TaskCase]) -> None:
    rows, ratio_verdicts, layers = [], [], []
    for case in cases:
        if ATTENTION_PART not in case.parts or FEED_FORWARD_PART not in case.parts:
            continue
        ratio = case.parts[ATTENTION_PART].ratio_to(case.parts[FEED_FORWARD_PART])
        others = [case.parts[name] for name in TRANSFORMER_PARTS if name in case.parts and name not in LAYER_PARTS]
        encoder = sum_interval([case.parts[name] for name in LAYER_PARTS if name in case.parts])
        outside = encoder.ratio_to(sum_interval(others)) if others else None
        ratio_verdicts.append(verdict_above(ratio, 1.0))
        layers += [verdict_above(outside, 1.0)] if outside else []
        rows.append([case.name, ratio.as_text(".2f"), ratio_verdicts[-1], outside.as_text(".1f") if outside else "-"])
    findings.add_line("\n### Self-attention\n")
    findings.table(["", "self-attention / feed-forward", "above 1", "transformer layers / all else"], rows)
    findings.add_line(
        f"**Self-attention dominates, against the feed-forward part of the same layers: "
        f"{combine_verdicts(ratio_verdicts)}.** That transformer layers, "
        f"both parts together, outweigh embeddings, pooler, heads and update: {combine_verdicts(layers)}."
    )


def write_albert(findings: Findings, cases: list[TaskCase]) -> None:
    by_name = {(one.model, one.task, one.precision): one for one in cases}
    rows, halves, large = [], [], []
    for (model, task, precision), bert in by_name.items():
        albert = by_name.get(("ALBERT", task, precision))
        if model != "BERT" or albert is None:
            continue
        total_j = sum(one.value for one in bert.parts.values())
        for part in [name for name in TRANSFORMER_PARTS if name in bert.parts and name in albert.parts]:
            ratio = albert.parts[part].ratio_to(bert.parts[part])
            half = verdict_above(ratio.scaled_by(-1), -MAX_ALBERT_RATIO)
            if bert.parts[part].value >= MIN_ENERGY_SHARE * total_j:
                large.append(half)
                halves += [f"{part} ({task})"] if half == CONFIRMED else []
            rows.append([task, part, f"{bert.parts[part].value:.4f} J", ratio.as_text(".2f"), half])
        rows.append(
            [
                task,
                "**all**, by the counter",
                f"{bert.step_j.value:.3f} J",
                albert.step_j.ratio_to(bert.step_j).as_text(".2f"),
                "",
            ]
        )
    findings.add_line("\n### ALBERT against BERT\n")
    findings.table(["task", "part", "BERT", "ALBERT / BERT", f"at most {MAX_ALBERT_RATIO}"], rows)
    some = CONFIRMED if halves else REFUTED if large and all(one == REFUTED for one in large) else NOT_SHOWN
    where = f": {', '.join(halves)}" if halves else ""
    findings.add_line(
        f"**ALBERT needs about half or less in some modules (of those above {MIN_ENERGY_SHARE:.0%} of BERT's energy): "
        f"{some}**{where}."
    )


def write_tensors(findings: Findings, cases: list[TaskCase]) -> None:
    for case in cases:
        if case.task == "pre-training" and case.precision == "fp32" and case.tensors:
            findings.add_line(f"\n### The {len(case.tensors)} tensors whose making used the most energy: {case.name}\n")
            total_j = case.step.joules
            findings.table(
                ["tensor", "energy of a step", "share", "basis"],
                [
                    [
                        " ".join(row["path"]),
                        f"{row['energy_j'] / case.passes:.4f} J",
                        f"{row['energy_j'] / total_j:.1%}",
                        row["basis"],
                    ]
                    for row in case.tensors
                ],
            )


def write_size_sweep(findings: Findings, options) -> None:
    load_log = read_load_log(options.folder, SWEEP_RECORDING)
    recording = Recording(str(options.joulemap.resolve()), options.folder / f"{SWEEP_RECORDING}.joule")
    entries = sorted(
        (one for one in load_log["entries"] if one["part"] == "step"), key=lambda one: (one["hidden"], one["layers"])
    )
    drawn = recording.compute_span_energies(entries, load_log["device"])
    findings.add_line("\n### Hidden size and number of layers: BERT, fine-tuning\n")
    findings.table(
        ["hidden", "layers", "parameters", "a step", "energy", "power"],
        [
            [
                str(e["hidden"]),
                str(e["layers"]),
                f"{e['parameters'] / 1e6:.1f} M",
                f"{1e3 * d.seconds / e['passes']:.2f} ms",
                f"{energy_per_pass(d, e['passes']).as_text('.3f')} J",
                f"{d.watts:.0f} W",
            ]
            for e, d in zip(entries, drawn)
        ],
    )
    sizes = [(one["hidden"], one["layers"]) for one in entries]
    try:
        energy = fit_power_law(sizes, [one.joules / entry["passes"] for entry, one in zip(entries, drawn)])
        power = fit_power_law(sizes, [one.watts for one in drawn])
    except (ValueError, IndexError) as error:
        findings.add_line(f"**Hidden size outweighs layers: not shown**, too few sizes were run ({error}).")
        return
    difference = energy.linear_combination([0, 1, -1])
    findings.add_line(
        f"Energy of a step grows as hidden size to the {energy.coefficient(1).as_text('.2f')} and layers to the "
        f"{energy.coefficient(2).as_text('.2f')}; power as {power.coefficient(1).as_text('.2f')} and "
        f"{power.coefficient(2).as_text('.2f')}.\n\n"
        f"**Hidden size outweighs layers, size for size: {verdict_above(difference, 0.0)}** (exponents differ by "
        f"{difference.as_text('.2f')}); "
        f"in power: {verdict_above(power.linear_combination([0, 1, -1]), 0.0)}."
    )


def analyse_recordings(options, findings: Findings) -> None:
    try:
        cases = CaseRecording(options).all()
        write_part_energies(findings, cases)
        for write_section in (write_backward, write_attention, write_albert, write_tensors):
            write_section(findings, cases)
    except INVALID_DATA_ERRORS as error:
        findings.add_line(f"\n**Cases not analysed**: {why(error)}")
        findings.missed.append(CASES_RECORDING)
    try:
        write_size_sweep(findings, options)
    except INVALID_DATA_ERRORS as error:
        findings.add_line(f"\n**The sweep not analysed**: {why(error)}")
        findings.missed.append(SWEEP_RECORDING)


def main() -> int:
    parser = make_study_parser(__doc__, 150)
    parser.add_argument("--probe-s", type=float, default=12, help="of replaying modules, once; 0: none")
    parser.add_argument("--library", type=Path, help="of kernels; else kernels.joule in the folder")
    options = parser.parse_args()
    more = ["--probe-s", str(options.probe_s), *(["--tiny"] if options.device == "cpu" else [])]
    load, cases_time_s = str(SCRIPT_FOLDER / "transformers_load.py"), options.seconds * CASES_TIME_SHARE
    plan = [
        (CASES_RECORDING, cases_time_s, ["--trace", "full"]),
        (SWEEP_RECORDING, options.seconds - cases_time_s, ["--trace", "off"]),
    ]

    def collect_recordings() -> list[str]:
        good = [collect(options, name, [load, name, *more], s, *trace, "--period", "100") for name, s, trace in plan]
        return [name for (name, _, _), is_good in zip(plan, good) if not is_good]

    return run_study(options, collect_recordings, analyse_recordings)


if __name__ == "__main__":
    sys.exit(main())
