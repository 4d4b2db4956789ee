#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the energy of a network with the summed energies of its layers, each measured alone (inference).

    make dist
    python3 bench/h200/additivity.py --joulemap build/dist/joulemap-*/bin/joulemap --folder DIR --collect     about 100 s
    python3 bench/h200/additivity.py --joulemap J --folder DIR --markdown OUT.md          anywhere

The factor is DAML's: energy of the network divided by the summed energies of its layers. It reached 4 in DAML, and
approached 1 with larger networks. additivity_load.py collects the data and does not change settings of the GPU.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

from findings import Findings
from recordings import SCRIPT_FOLDER, Recording, collect, drop_rest_begin, run_study, make_study_parser, read_load_log
from study_statistics import CONFIRMED, REFUTED, Interval, least_squares, mean_interval, verdict_above, verdict_within

NAME = "additivity"
# Variants of a window, as additivity_load.py runs them.
WHOLE_VARIANT, LAYERS_VARIANT, BLOCKS_VARIANT, SYNCHRONIZED_VARIANT = "whole", "layers", "blocks", "layers waited for"
ADDITIVE_FACTOR_RANGE = (0.9, 1.1)


class Network(NamedTuple):
    name: str
    batch: int
    multiplications: int
    calls: int
    idle_w: float
    pass_j: dict[str, list[float]]  # J by variant, one value per round
    pass_s: dict[str, list[float]]

    def factor(self, variant: str, subtracts_idle: bool = False) -> Interval | None:
        """Energy of the network divided by that of its parts, one ratio per round."""
        if variant not in self.pass_j:
            return None
        whole, parts = (self._list_pass_energies_j(one, subtracts_idle) for one in (WHOLE_VARIANT, variant))
        return mean_interval([a / b for a, b in zip(whole, parts) if b > 0] or [math.nan])

    def _list_pass_energies_j(self, variant: str, subtracts_idle: bool) -> list[float]:
        idle_w = self.idle_w if subtracts_idle else 0.0
        return [j - idle_w * s for j, s in zip(self.pass_j[variant], self.pass_s[variant])]

    def mean_s(self, variant: str) -> float:
        return mean_interval(self.pass_s[variant]).value

    def watts(self, variant: str) -> float:
        return mean_interval(self.pass_j[variant]).value / self.mean_s(variant)


def read_network(recording: Recording, entry: dict, device: str) -> Network:
    windows = sorted(entry["windows"], key=lambda one: one["round"])
    rest, *window_energies = recording.compute_span_energies([drop_rest_begin(entry["rest"]), *windows], device)
    pass_j: dict[str, list[float]] = {}
    pass_s: dict[str, list[float]] = {}
    for window, drawn in zip(windows, window_energies):
        pass_j.setdefault(window["variant"], []).append(drawn.joules / window["passes"])
        pass_s.setdefault(window["variant"], []).append(drawn.seconds / window["passes"])
    facts = entry["network"], entry["batch"], entry["multiplications"], entry["calls"]
    return Network(*facts, rest.watts, pass_j, pass_s)


def format_interval_cell(found: Interval | None) -> str:
    if found is None or math.isnan(found.value):
        return "-"
    if math.isinf(found.low):
        return f"{found.value:.2f}"
    return f"{found.value:.3f} ± {(found.high - found.low) / 2:.3f}"


def write_table(findings: Findings, networks: list[Network]) -> None:
    findings.add_line(
        "Factor: the whole over the sum of its parts, each alone in a loop; mean and 90 % interval over rounds."
    )
    head = [
        "network",
        "batch",
        "pass",
        "whole",
        "power",
        "idle power",
        "layers",
        "layers, above idle",
        "blocks",
        "layers waited for",
        "time of layers alone over the pass",
    ]
    rows = []
    for one in networks:
        rows.append(
            [
                one.name,
                str(one.batch),
                f"{1e3 * one.mean_s(WHOLE_VARIANT):.3f} ms",
                f"{mean_interval(one.pass_j[WHOLE_VARIANT]).value:.4f} J",
                f"{one.watts(WHOLE_VARIANT):.0f} W",
                f"{one.idle_w:.0f} W",
                format_interval_cell(one.factor(LAYERS_VARIANT)),
                format_interval_cell(one.factor(LAYERS_VARIANT, True)),
                format_interval_cell(one.factor(BLOCKS_VARIANT)),
                format_interval_cell(one.factor(SYNCHRONIZED_VARIANT)),
                f"{one.mean_s(LAYERS_VARIANT) / one.mean_s(WHOLE_VARIANT):.2f}",
            ]
        )
    findings.table(head, rows)


def write_verdicts(findings: Findings, networks: list[Network]) -> None:
    """Writes the verdicts on additivity, on its dependence on size, and on the causes of a factor other than 1."""
    factors = [(one, one.factor(LAYERS_VARIANT)) for one in networks]
    verdicts = [verdict_within(found, *ADDITIVE_FACTOR_RANGE) for _, found in factors]
    verdict_counts = ", ".join(f"{sum(v == kind for v in verdicts)} {kind}" for kind in sorted(set(verdicts)))
    low, high = min(f.value for _, f in factors), max(f.value for _, f in factors)
    findings.add_line(
        f"- **Layers add up to the network within 10 %**: {verdict_counts} of {len(networks)}; factors from {low:.2f} to "
        f"{high:.2f}."
    )
    write_time_and_power_ratios(
        findings, [(one, found) for (one, found), shown in zip(factors, verdicts) if shown != CONFIRMED]
    )
    above = [one.factor(LAYERS_VARIANT, True) for one in networks]
    findings.add_line(
        f"- Above idle power the factors lie between {min(f.value for f in above):.2f} and "
        f"{max(f.value for f in above):.2f}: what is "
        "left there is the layers' own work; the rest is a device that waits for launches, in the network and in the "
        "loops."
    )
    blocks = [
        (one.factor(LAYERS_VARIANT).value, one.factor(BLOCKS_VARIANT).value)
        for one in networks
        if BLOCKS_VARIANT in one.pass_j
    ]
    if blocks:
        layers, whole = (sum(pair[i] for pair in blocks) / len(blocks) for i in (0, 1))
        findings.add_line(
            f"- Residual networks by blocks: {whole:.3f} on average, by layers {layers:.3f}. Sums of residuals are "
            f"in blocks and in "
            "no layer; the difference is theirs, and that of layers that find their input in a cache."
        )
    waited = [one.factor(SYNCHRONIZED_VARIANT) for one in networks if SYNCHRONIZED_VARIANT in one.pass_j]
    if waited:
        findings.add_line(
            f"- When the device is waited for after every call, as when each layer is timed by hand, factors lie "
            f"between "
            f"{min(f.value for f in waited):.2f} and {max(f.value for f in waited):.2f}: the wrong way to measure "
            f"layers, not a "
            "property of networks."
        )
    write_size_dependence(findings, factors)


def write_time_and_power_ratios(findings: Findings, factors: list) -> None:
    """Splits each factor into a ratio of times and a ratio of powers."""
    for one, found in factors:
        time = one.mean_s(WHOLE_VARIANT) / one.mean_s(LAYERS_VARIANT)
        waits = one.mean_s(LAYERS_VARIANT) / one.calls * 1e6
        findings.add_line(
            f"  - {one.name}, batch {one.batch}: {found.value:.2f} = {time:.2f} by time x {found.value / time:.2f} "
            f"by power ({one.watts(WHOLE_VARIANT):.0f} W whole, {one.watts(LAYERS_VARIANT):.0f} W alone, "
            f"{one.idle_w:.0f} W at rest; a layer's call takes {waits:.0f} us alone)."
        )


def write_size_dependence(findings: Findings, factors: list) -> None:
    """Tests DAML's claim that the factor approaches 1 with size."""
    rows = [[1.0, math.log10(one.multiplications)] for one, _ in factors]
    absolute_log_factors = [abs(math.log(found.value)) for _, found in factors]
    try:
        slope = least_squares(rows, absolute_log_factors).coefficient(1)
    except ValueError:
        findings.add_line("- Nearer to 1 with size: **not shown**, the networks are all of one size.")
        return
    convergence = verdict_above(slope.scaled_by(-1), 0.0)
    how = {CONFIRMED: "on average", REFUTED: "away from it"}.get(convergence, "which is no more than chance")
    findings.add_line(
        f"- **Nearer to 1 with larger networks: {convergence}.** Ten times the multiplications change how far the factor "
        f"is from "
        f"1 by {slope.value:+.1%} ({slope.low:+.1%} to {slope.high:+.1%}), {how}."
    )


def analyse_recordings(options, findings: Findings) -> None:
    load_log = read_load_log(options.folder, NAME)
    recording = Recording(str(options.joulemap.resolve()), options.folder / f"{NAME}.joule")
    networks = [read_network(recording, entry, load_log["device"]) for entry in load_log["entries"]]
    if not networks:
        findings.missed.append("nothing was collected")
        return
    write_table(findings, sorted(networks, key=lambda one: (one.batch, one.multiplications)))
    write_verdicts(findings, networks)
    for failed in load_log["failed"]:
        findings.add_line(f"- not measured: {failed}")


def main() -> int:
    parser = make_study_parser(__doc__, 100)
    parser.add_argument("--window-s", type=float, default=0.45)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    load = [
        str(SCRIPT_FOLDER / "additivity_load.py"),
        "--window-s",
        str(options.window_s),
        "--rounds",
        str(options.rounds),
    ]
    load += ["--tiny"] if options.device == "cpu" else []

    def collect_recordings() -> list[str]:
        return [] if collect(options, NAME, load, options.seconds, "--trace", "off", "--period", "100") else [NAME]

    return run_study(options, collect_recordings, analyse_recordings)


if __name__ == "__main__":
    sys.exit(main())
