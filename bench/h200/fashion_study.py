#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GATorch's study: trains its Fashion-MNIST network for 100 epochs and tests whether and why energy falls towards the
end.

    make dist; apt-get install dataset-fashion-mnist
    python3 bench/h200/fashion_study.py --joulemap build/dist/joulemap-*/bin/joulemap --folder DIR --collect \\
        --data /usr/share/datasets/fashion-mnist                                                               about 170 s
    python3 bench/h200/fashion_study.py --joulemap J --folder DIR --markdown OUT.md     anywhere

fashion_load.py trains; the recording contains only the counter and the gauges, so that capture slows no steps. Settings
of the GPU are not changed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable, NamedTuple

from findings import Findings
from recordings import (
    SCRIPT_FOLDER,
    EnergyUse,
    Recording,
    collect,
    drop_rest_begin,
    run_study,
    make_study_parser,
    read_load_log,
)
from study_statistics import (
    CONFIRMED,
    NOT_SHOWN,
    REFUTED,
    Interval,
    Trend,
    least_squares,
    mean_interval,
    mann_kendall_trend,
    verdict_above,
)

NAME = "fashion"
WARM_UP_EPOCHS, MIN_EPOCHS = 5, 13
COMPARED_EPOCHS, MIN_COMPARED_EPOCHS = 30, 4
REPORTED_EPOCHS = {0, 1, 2, 4, 9, 19, 39, 59, 79, 99}
GAUGE_WINDOW_S = 1.0


class Epoch(NamedTuple):
    number: int
    loss: float
    steps: int
    joules: float
    seconds: float
    loading_s: float
    clock_mhz: float | None
    temperature_c: float | None

    @property
    def step_j(self) -> float:
        return self.joules / self.steps

    @property
    def watts(self) -> float:
        return self.joules / self.seconds

    @property
    def loading_step_s(self) -> float:
        return self.loading_s / self.steps

    @property
    def working_step_s(self) -> float:
        return (self.seconds - self.loading_s) / self.steps


def epochs_of(recording: Recording, load_log: dict, run: str) -> list[Epoch]:
    entries, device = [log_entry for log_entry in load_log["entries"] if log_entry["run"] == run], load_log["device"]

    def epoch(entry: dict, energy_use: EnergyUse) -> Epoch:
        gauges = [recording.gauge(f"{device}-{name}", entry, GAUGE_WINDOW_S) for name in ("sm-clock", "temperature")]
        epoch_properties = entry["epoch"], entry["loss"], entry["steps"]
        return Epoch(*epoch_properties, energy_use.joules, energy_use.seconds, entry["loading_s"], *gauges)

    return [epoch(*pair) for pair in zip(entries, recording.compute_span_energies(entries, device))]


def format_gauge(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def write_epochs(findings: Findings, epochs: list[Epoch]) -> None:
    rows = []
    for previous_epoch, current_epoch in zip([None, *epochs], epochs):
        if current_epoch.number in REPORTED_EPOCHS or current_epoch is epochs[-1]:
            fell = previous_epoch.loss - current_epoch.loss if previous_epoch else None
            energy_per_loss_cell = f"{current_epoch.joules / fell:.0f} J" if fell and fell > 0 else "-"
            rows.append(
                [
                    str(current_epoch.number + 1),
                    f"{current_epoch.loss:.4f}",
                    f"{current_epoch.joules:.1f} J",
                    f"{current_epoch.joules / current_epoch.loss:.1f} J",
                    energy_per_loss_cell,
                    f"{1e3 * current_epoch.step_j:.2f} mJ",
                    f"{1e6 * current_epoch.working_step_s:.0f} us",
                    f"{1e6 * current_epoch.loading_step_s:.0f} us",
                    f"{current_epoch.watts:.1f} W",
                    format_gauge(current_epoch.clock_mhz, ".0f"),
                    format_gauge(current_epoch.temperature_c, ".1f"),
                ]
            )
    head = [
        "epoch",
        "loss",
        "energy",
        "energy / loss",
        "for each unit that the loss fell",
        "a step",
        "its work",
        "its loading",
        "power",
        "SM clock, MHz",
        "°C",
    ]
    findings.table(head, rows)
    total_j = sum(epoch.joules for epoch in epochs)
    per_loss = [epoch.joules / epoch.loss for epoch in epochs]
    findings.add_line(
        f"{len(epochs)} epochs, {total_j:.0f} J. Energy over loss, as GATorch plots it, went from {per_loss[0]:.1f} "
        f"to {per_loss[-1]:.1f} J; "
        f"half of the loss that training took away was gone after epoch {midpoint_epoch(epochs)}."
    )


def midpoint_epoch(epochs: list[Epoch]) -> int:
    half_loss = (epochs[0].loss + epochs[-1].loss) / 2
    return next((epoch.number + 1 for epoch in epochs if epoch.loss <= half_loss), len(epochs))


EPOCH_QUANTITIES: dict[str, Callable[[Epoch], float | None]] = {
    "energy of a step": lambda epoch: epoch.step_j,
    "power": lambda epoch: epoch.watts,
    "time of a step's work": lambda epoch: epoch.working_step_s,
    "time of its loading": lambda epoch: epoch.loading_step_s,
    "SM clock": lambda epoch: epoch.clock_mhz,
    "temperature": lambda epoch: epoch.temperature_c,
}


def complete_values(epochs: list[Epoch], epoch_quantity: Callable[[Epoch], float | None]) -> list[float]:
    """Returns the values of all epochs, or an empty list if one is missing: a trend with gaps would be a different
    one."""
    values = [epoch_quantity(epoch) for epoch in epochs]
    return [] if any(value is None for value in values) else values


def write_trends(findings: Findings, steady: list[Epoch]) -> dict[str, Trend]:
    findings.add_line(
        f"\nTrends over the {len(steady)} epochs after the first {WARM_UP_EPOCHS}: Theil-Sen's slope over all of "
        "them (90 %, blocks drawn anew) and Mann-Kendall's test, whose variance is widened for values that remember one "
        "another.\n"
    )
    rows, trends = [], {}
    for name, epoch_quantity in EPOCH_QUANTITIES.items():
        values = complete_values(steady, epoch_quantity)
        if not values:
            rows.append([name, "not read", "", "", ""])
            continue
        trend, mean = mann_kendall_trend(values), sum(values) / len(values)
        trends[name] = trend
        change = trend.slope.scaled_by(len(values) / mean) if mean else Interval(0, 0, 0)
        rows.append(
            [
                name,
                change.as_text("+.2%"),
                f"{trend.p:.3g}",
                f"{trend.inflation:.1f}",
                "yes" if trend.is_significant() else "no",
            ]
        )
    findings.table(["", "change over these epochs", "p", "variance times", "a trend"], rows)
    return trends


def write_time_and_power_changes(findings: Findings, steady: list[Epoch], trends: dict[str, Trend]) -> None:
    """Splits the change of energy per step into change of time at mean power and change of power at mean time."""
    count, mean_j = len(steady), mean_interval([epoch.step_j for epoch in steady]).value
    watts = mean_interval([epoch.watts for epoch in steady]).value
    step_s = mean_interval([epoch.seconds / epoch.steps for epoch in steady]).value

    def share(name: str, factor: float) -> str:
        return trends[name].slope.scaled_by(count * factor / mean_j).as_text("+.2%")

    rows = [
        ["work of a step takes longer or shorter", share("time of a step's work", watts)],
        ["loading takes longer or shorter", share("time of its loading", watts)],
        ["power", share("power", step_s)],
    ]
    for name, slope_w in fit_power_by_gauges(steady).items():
        rows.append([f"of that, {name} ({slope_w.as_text('+.2f')} W a unit)", share(name, slope_w.value * step_s)])
    findings.add_line("\nThe same change of a step's energy, by what changed:\n")
    findings.table(["", "of a step's energy"], rows)


def fit_power_by_gauges(steady: list[Epoch]) -> dict[str, Interval]:
    """Regresses power on all gauges that varied: W per unit. Empty where they are collinear."""
    varied_gauges = {}
    for name in ("SM clock", "temperature"):
        values = complete_values(steady, EPOCH_QUANTITIES[name])
        if values and max(values) > min(values):
            varied_gauges[name] = values
    if not varied_gauges:
        return {}
    rows = [[1.0, *values] for values in zip(*varied_gauges.values())]
    try:
        fit = least_squares(rows, [epoch.watts for epoch in steady])
    except ValueError:
        return {}
    return {name: fit.coefficient(1 + gauge_index) for gauge_index, name in enumerate(varied_gauges)}


def write_warm_up(findings: Findings, epochs: list[Epoch], steady: list[Epoch]) -> None:
    warm_up_step_j = mean_interval([epoch.step_j for epoch in epochs[:WARM_UP_EPOCHS]])
    steady_step_j = mean_interval([epoch.step_j for epoch in steady])
    ratio = warm_up_step_j.ratio_to(steady_step_j)
    first_epoch_ratio = epochs[0].step_j / steady_step_j.value
    findings.add_line(
        f"- Warm-up: a step of the first epoch used {first_epoch_ratio:.3f} of a later one's energy, of the first "
        f"{WARM_UP_EPOCHS} epochs {ratio.as_text('.3f')}."
    )


def write_rest_power(findings: Findings, recording: Recording, load_log: dict) -> None:
    rest_spans = [drop_rest_begin(log_entry) for log_entry in load_log["entries"] if log_entry["run"] == "rest"]
    watts = [recording.energy_of_span(rest_span, load_log["device"]).watts for rest_span in rest_spans]
    findings.add_line(
        f"- Background: at rest before, between and after, the power of the device was "
        f"{', '.join(f'{rest_power_w:.1f}' for rest_power_w in watts)} W."
    )


def write_warm_repetition(findings: Findings, epochs: list[Epoch], repeated_epochs: list[Epoch], fell: str) -> None:
    """Tests fresh weights on a warm machine: the part of the fall that repeats is due to the training."""
    count = min(COMPARED_EPOCHS, len(repeated_epochs) - WARM_UP_EPOCHS, (len(epochs) - WARM_UP_EPOCHS) // 2)
    if count < MIN_COMPARED_EPOCHS:
        findings.add_line("- Fresh weights: too few epochs were run again for a result.")
        return
    early_epochs, fresh_weight_epochs = (
        run[WARM_UP_EPOCHS : WARM_UP_EPOCHS + count] for run in (epochs, repeated_epochs)
    )
    late_epochs = epochs[-count:]
    from_first = mean_interval(
        [
            fresh_epoch.step_j / early_epoch.step_j - 1
            for fresh_epoch, early_epoch in zip(fresh_weight_epochs, early_epochs)
        ]
    )
    from_last = mean_interval(
        [
            fresh_epoch.step_j / late_epoch.step_j - 1
            for fresh_epoch, late_epoch in zip(fresh_weight_epochs, late_epochs)
        ]
    )
    findings.add_line(
        f"- Again from fresh weights, {count} epochs after warm-up: a step used {from_first.as_text('+.2%')} against the "
        f"same epochs of the first training, and {from_last.as_text('+.2%')} against its last {count}."
    )
    energy_decrease_j = (
        sum(epoch.step_j for epoch in early_epochs) / count - sum(epoch.step_j for epoch in late_epochs) / count
    )
    if fell != CONFIRMED or energy_decrease_j <= 0:
        return
    returned_share = mean_interval(
        [
            (fresh_epoch.step_j - late_epoch.step_j) / energy_decrease_j
            for fresh_epoch, late_epoch in zip(fresh_weight_epochs, late_epochs)
        ]
    )
    cause = {
        CONFIRMED: "came back with fresh weights: it is the training's own",
        REFUTED: "did not come back with fresh weights: it is the machine's",
        NOT_SHOWN: "came back in part: its cause cannot be identified",
    }[verdict_above(returned_share, 0.5)]
    findings.add_line(f"- **The fall {cause}** ({returned_share.as_text('.0%')} of it came back).")


def write_verdict(findings: Findings, trend: Trend) -> str:
    is_significant = trend.is_significant()
    fell = CONFIRMED if is_significant and trend.slope.value < 0 else REFUTED if is_significant else NOT_SHOWN
    words = {
        CONFIRMED: "energy of a step falls over the training",
        REFUTED: "energy of a step rises over the training",
        NOT_SHOWN: "what changes is no more than chance, once values are allowed to remember one another",
    }
    findings.add_line(
        '\n- **"Consumes the most energy at the start and seems to drop towards the end": '
        f"{fell}** after warm-up; {words[fell]}."
    )
    return fell


def analyse_recordings(options, findings: Findings) -> None:
    load_log = read_load_log(options.folder, NAME)
    recording = Recording(str(options.joulemap.resolve()), options.folder / f"{NAME}.joule")
    epochs, repeated_epochs = (epochs_of(recording, load_log, run) for run in ("training", "again"))
    if not load_log["real_data"]:
        findings.add_line("**Random images, not Fashion-MNIST: the mechanics alone.**")
    if len(epochs) < MIN_EPOCHS:
        findings.add_line(f"{len(epochs)} epochs were collected: too few.")
        findings.missed.append("collecting")
        return
    write_epochs(findings, epochs)
    steady = epochs[WARM_UP_EPOCHS:]
    trends = write_trends(findings, steady)
    write_time_and_power_changes(findings, steady, trends)
    fell = write_verdict(findings, trends["energy of a step"])
    write_warm_up(findings, epochs, steady)
    write_rest_power(findings, recording, load_log)
    write_warm_repetition(findings, epochs, repeated_epochs, fell)


def main() -> int:
    parser = make_study_parser(__doc__, 170)
    parser.add_argument("--data", type=Path, help="folder of the idx files; else random images")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--again", type=int, default=100)
    parser.add_argument("--images", type=int, help="use only the first N images; default: all")
    options = parser.parse_args()
    load = [str(SCRIPT_FOLDER / "fashion_load.py"), "--epochs", str(options.epochs), "--again", str(options.again)]
    load += ["--data", str(options.data)] if options.data else []
    load += ["--images", str(options.images)] if options.images else []
    load += ["--tiny"] if options.device == "cpu" else []

    def collect_recordings() -> list[str]:
        return [] if collect(options, NAME, load, options.seconds, "--trace", "off", "--period", "100") else [NAME]

    return run_study(options, collect_recordings, analyse_recordings)


if __name__ == "__main__":
    sys.exit(main())
