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


def energy_per_pass(energy_use: EnergyUse, passes: int) -> Interval:
    half_width_j = energy_use.half_width_j
    return Interval(
        *(
            joules / passes
            for joules in (energy_use.joules, energy_use.joules - half_width_j, energy_use.joules + half_width_j)
        )
    )


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
        steps = [log_entry for log_entry in self.load_log["entries"] if log_entry["part"] == "step"]
        return [self._make_case(step_entry) for step_entry in steps]

    def _make_case(self, entry: dict) -> TaskCase:
        device, passes, recording = self.load_log["device"], entry["passes"], self.recording
        key = ("model", "task", "precision")
        forward = [
            log_entry
            for log_entry in self.load_log["entries"]
            if log_entry["part"] == "forward" and all(log_entry[k] == entry[k] for k in key)
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
                name: part_energy.value
                for name, part_energy in sum_by_group(
                    rows("layer", "--mode", "integral"), transformer_part_of, passes
                ).items()
            },
            sum_by_group(rows("phase", *self._library_options), lambda path: path[-1], passes),
            sorted(rows("tensor", *self._library_options), key=lambda row: -row["energy_j"])[:LISTED_TENSOR_COUNT],
        )


def combine_verdicts(verdicts: list[str]) -> str:
    """Combines verdicts: the claim must hold in all of them."""
    if verdicts and all(verdict == CONFIRMED for verdict in verdicts):
        return CONFIRMED
    return REFUTED if verdicts and all(verdict == REFUTED for verdict in verdicts) else NOT_SHOWN


def write_part_energies(findings: Findings, cases: list[TaskCase]) -> None:
    findings.add_line(
        "Energy of a step by part: joules (90 %), share of the energy of layers and updates, and the share by time "
        "alone."
    )
    rows = []
    for case in cases:
        total_j, time_j = (
            sum(values) or 1.0
            for values in ([part_energy.value for part_energy in case.parts.values()], case.by_time.values())
        )
        for part in [name for name in TRANSFORMER_PARTS if name in case.parts]:
            energy_interval = case.parts[part]
            by_time = case.by_time.get(part, 0.0) / time_j
            rows.append(
                [
                    case.name,
                    part,
                    f"{energy_interval.as_text('.3f')} J",
                    f"{energy_interval.value / total_j:.1%}",
                    f"{by_time:.1%}",
                ]
            )
        rows.append([case.name, "**all**, by the counter", f"**{case.step_j.as_text('.3f')} J**", "", ""])
    findings.table(["", "part", "energy", "share", "by time"], rows)


def write_backward(findings: Findings, cases: list[TaskCase]) -> None:
    """Compares attribution with the counter alone: a step against the same step without backward pass and update."""
    rows, verdicts, counter_verdicts = [], [], []
    for case in cases:
        if "backward" not in case.phases or "forward" not in case.phases:
            continue
        ratio = case.phases["backward"].ratio_to(case.phases["forward"])
        verdicts.append(verdict_above(ratio, 1.0))
        counter_ratio_cell = "-"
        if case.forward_j is not None:
            forward, step = case.forward_j, case.step_j
            counter_ratio = Interval(
                step.value - forward.value, step.low - forward.high, step.high - forward.low
            ).ratio_to(forward)
            counter_verdicts.append(verdict_above(counter_ratio, 1.0))
            counter_ratio_cell = counter_ratio.as_text(".2f")
        rows.append([case.name, ratio.as_text(".2f"), verdicts[-1], counter_ratio_cell])
    findings.add_line("\n### Backward against forward\n")
    head = ["", "backward / forward, attributed", "above 1", "(backward + update) / forward, by the counter"]
    findings.table(head, rows)
    findings.add_line(
        f"**The backward pass dominates: {combine_verdicts(verdicts)}** by attribution; with the update, by the counter "
        f"alone: {combine_verdicts(counter_verdicts)}."
    )


def write_attention(findings: Findings, cases: list[TaskCase]) -> None:
    rows, ratio_verdicts, layers = [], [], []
    for case in cases:
        if ATTENTION_PART not in case.parts or FEED_FORWARD_PART not in case.parts:
            continue
        ratio = case.parts[ATTENTION_PART].ratio_to(case.parts[FEED_FORWARD_PART])
        other_part_energies = [
            case.parts[name] for name in TRANSFORMER_PARTS if name in case.parts and name not in LAYER_PARTS
        ]
        encoder = sum_interval([case.parts[name] for name in LAYER_PARTS if name in case.parts])
        encoder_ratio = encoder.ratio_to(sum_interval(other_part_energies)) if other_part_energies else None
        ratio_verdicts.append(verdict_above(ratio, 1.0))
        layers += [verdict_above(encoder_ratio, 1.0)] if encoder_ratio else []
        rows.append(
            [
                case.name,
                ratio.as_text(".2f"),
                ratio_verdicts[-1],
                encoder_ratio.as_text(".1f") if encoder_ratio else "-",
            ]
        )
    findings.add_line("\n### Self-attention\n")
    findings.table(["", "self-attention / feed-forward", "above 1", "transformer layers / all else"], rows)
    findings.add_line(
        f"**Self-attention dominates, against the feed-forward part of the same layers: "
        f"{combine_verdicts(ratio_verdicts)}.** That transformer layers, "
        f"both parts together, outweigh embeddings, pooler, heads and update: {combine_verdicts(layers)}."
    )


def write_albert(findings: Findings, cases: list[TaskCase]) -> None:
    by_name = {(case.model, case.task, case.precision): case for case in cases}
    rows, halves, large_part_verdicts = [], [], []
    for (model, task, precision), bert in by_name.items():
        albert = by_name.get(("ALBERT", task, precision))
        if model != "BERT" or albert is None:
            continue
        total_j = sum(part_energy.value for part_energy in bert.parts.values())
        for part in [name for name in TRANSFORMER_PARTS if name in bert.parts and name in albert.parts]:
            ratio = albert.parts[part].ratio_to(bert.parts[part])
            part_verdict = verdict_above(ratio.scaled_by(-1), -MAX_ALBERT_RATIO)
            if bert.parts[part].value >= MIN_ENERGY_SHARE * total_j:
                large_part_verdicts.append(part_verdict)
                halves += [f"{part} ({task})"] if part_verdict == CONFIRMED else []
            rows.append([task, part, f"{bert.parts[part].value:.4f} J", ratio.as_text(".2f"), part_verdict])
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
    albert_verdict = (
        CONFIRMED
        if halves
        else REFUTED
        if large_part_verdicts and all(verdict == REFUTED for verdict in large_part_verdicts)
        else NOT_SHOWN
    )
    halved_parts_text = f": {', '.join(halves)}" if halves else ""
    findings.add_line(
        f"**ALBERT needs about half or less in some modules (of those above {MIN_ENERGY_SHARE:.0%} of BERT's energy): "
        f"{albert_verdict}**{halved_parts_text}."
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
        (log_entry for log_entry in load_log["entries"] if log_entry["part"] == "step"),
        key=lambda log_entry: (log_entry["hidden"], log_entry["layers"]),
    )
    energy_uses = recording.compute_span_energies(entries, load_log["device"])
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
            for e, d in zip(entries, energy_uses)
        ],
    )
    sizes = [(log_entry["hidden"], log_entry["layers"]) for log_entry in entries]
    try:
        energy = fit_power_law(
            sizes, [energy_use.joules / entry["passes"] for entry, energy_use in zip(entries, energy_uses)]
        )
        power = fit_power_law(sizes, [energy_use.watts for energy_use in energy_uses])
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
    extra_arguments = ["--probe-s", str(options.probe_s), *(["--tiny"] if options.device == "cpu" else [])]
    load, cases_time_s = str(SCRIPT_FOLDER / "transformers_load.py"), options.seconds * CASES_TIME_SHARE
    plan = [
        (CASES_RECORDING, cases_time_s, ["--trace", "full"]),
        (SWEEP_RECORDING, options.seconds - cases_time_s, ["--trace", "off"]),
    ]

    def collect_recordings() -> list[str]:
        success_flags = [
            collect(options, name, [load, name, *extra_arguments], s, *trace, "--period", "100")
            for name, s, trace in plan
        ]
        return [name for (name, _, _), is_good in zip(plan, success_flags) if not is_good]

    return run_study(options, collect_recordings, analyse_recordings)


if __name__ == "__main__":
    sys.exit(main())
