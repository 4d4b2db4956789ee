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
        whole_energies_j, parts = (
            self._list_pass_energies_j(pass_variant, subtracts_idle) for pass_variant in (WHOLE_VARIANT, variant)
        )
        return mean_interval(
            [whole_j / parts_j for whole_j, parts_j in zip(whole_energies_j, parts) if parts_j > 0] or [math.nan]
        )

    def _list_pass_energies_j(self, variant: str, subtracts_idle: bool) -> list[float]:
        idle_w = self.idle_w if subtracts_idle else 0.0
        return [j - idle_w * s for j, s in zip(self.pass_j[variant], self.pass_s[variant])]

    def mean_s(self, variant: str) -> float:
        return mean_interval(self.pass_s[variant]).value

    def watts(self, variant: str) -> float:
        return mean_interval(self.pass_j[variant]).value / self.mean_s(variant)


def read_network(recording: Recording, entry: dict, device: str) -> Network:
    windows = sorted(entry["windows"], key=lambda entry_window: entry_window["round"])
    rest_energy_use, *window_energies = recording.compute_span_energies(
        [drop_rest_begin(entry["rest"]), *windows], device
    )
    pass_j: dict[str, list[float]] = {}
    pass_s: dict[str, list[float]] = {}
    for window, energy_use in zip(windows, window_energies):
        pass_j.setdefault(window["variant"], []).append(energy_use.joules / window["passes"])
        pass_s.setdefault(window["variant"], []).append(energy_use.seconds / window["passes"])
    network_properties = entry["network"], entry["batch"], entry["multiplications"], entry["calls"]
    return Network(*network_properties, rest_energy_use.watts, pass_j, pass_s)


def format_interval_cell(interval: Interval | None) -> str:
    if interval is None or math.isnan(interval.value):
        return "-"
    if math.isinf(interval.low):
        return f"{interval.value:.2f}"
    return f"{interval.value:.3f} ± {(interval.high - interval.low) / 2:.3f}"


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
    for network in networks:
        rows.append(
            [
                network.name,
                str(network.batch),
                f"{1e3 * network.mean_s(WHOLE_VARIANT):.3f} ms",
                f"{mean_interval(network.pass_j[WHOLE_VARIANT]).value:.4f} J",
                f"{network.watts(WHOLE_VARIANT):.0f} W",
                f"{network.idle_w:.0f} W",
                format_interval_cell(network.factor(LAYERS_VARIANT)),
                format_interval_cell(network.factor(LAYERS_VARIANT, True)),
                format_interval_cell(network.factor(BLOCKS_VARIANT)),
                format_interval_cell(network.factor(SYNCHRONIZED_VARIANT)),
                f"{network.mean_s(LAYERS_VARIANT) / network.mean_s(WHOLE_VARIANT):.2f}",
            ]
        )
    findings.table(head, rows)


def write_verdicts(findings: Findings, networks: list[Network]) -> None:
    """Writes the verdicts on additivity, on its dependence on size, and on the causes of a factor other than 1."""
    factors = [(network, network.factor(LAYERS_VARIANT)) for network in networks]
    verdicts = [verdict_within(factor, *ADDITIVE_FACTOR_RANGE) for _, factor in factors]
    verdict_counts = ", ".join(
        f"{sum(verdict == kind for verdict in verdicts)} {kind}" for kind in sorted(set(verdicts))
    )
    low, high = min(factor.value for _, factor in factors), max(factor.value for _, factor in factors)
    findings.add_line(
        f"- **Layers add up to the network within 10 %**: {verdict_counts} of {len(networks)}; factors from {low:.2f} to "
        f"{high:.2f}."
    )
    write_time_and_power_ratios(
        findings, [(network, factor) for (network, factor), verdict in zip(factors, verdicts) if verdict != CONFIRMED]
    )
    above_idle_factors = [network.factor(LAYERS_VARIANT, True) for network in networks]
    findings.add_line(
        f"- Above idle power the factors lie between {min(factor.value for factor in above_idle_factors):.2f} and "
        f"{max(factor.value for factor in above_idle_factors):.2f}: what is "
        "left there is the layers' own work; the rest is a device that waits for launches, in the network and in the "
        "loops."
    )
    blocks = [
        (network.factor(LAYERS_VARIANT).value, network.factor(BLOCKS_VARIANT).value)
        for network in networks
        if BLOCKS_VARIANT in network.pass_j
    ]
    if blocks:
        layers, mean_block_factor = (sum(pair[i] for pair in blocks) / len(blocks) for i in (0, 1))
        findings.add_line(
            f"- Residual networks by blocks: {mean_block_factor:.3f} on average, by layers {layers:.3f}. Sums of "
            "residuals are in blocks and in no layer; the difference is theirs, and that of layers that find their "
            "input in a cache."
        )
    synchronized_factors = [
        network.factor(SYNCHRONIZED_VARIANT) for network in networks if SYNCHRONIZED_VARIANT in network.pass_j
    ]
    if synchronized_factors:
        findings.add_line(
            f"- When the device is waited for after every call, as when each layer is timed by hand, factors lie "
            f"between {min(factor.value for factor in synchronized_factors):.2f} "
            f"and {max(factor.value for factor in synchronized_factors):.2f}: the wrong way to measure "
            "layers, not a property of networks."
        )
    write_size_dependence(findings, factors)


def write_time_and_power_ratios(findings: Findings, factors: list) -> None:
    """Splits each factor into a ratio of times and a ratio of powers."""
    for network, factor in factors:
        time = network.mean_s(WHOLE_VARIANT) / network.mean_s(LAYERS_VARIANT)
        waits = network.mean_s(LAYERS_VARIANT) / network.calls * 1e6
        findings.add_line(
            f"  - {network.name}, batch {network.batch}: {factor.value:.2f} = {time:.2f} by time x "
            f"{factor.value / time:.2f} by power ({network.watts(WHOLE_VARIANT):.0f} W whole, "
            f"{network.watts(LAYERS_VARIANT):.0f} W alone, "
            f"{network.idle_w:.0f} W at rest; a layer's call takes {waits:.0f} us alone)."
        )


def write_size_dependence(findings: Findings, factors: list) -> None:
    """Tests DAML's claim that the factor approaches 1 with size."""
    rows = [[1.0, math.log10(network.multiplications)] for network, _ in factors]
    absolute_log_factors = [abs(math.log(factor.value)) for _, factor in factors]
    try:
        slope = least_squares(rows, absolute_log_factors).coefficient(1)
    except ValueError:
        findings.add_line("- Nearer to 1 with size: **not shown**, the networks are all of one size.")
        return
    convergence = verdict_above(slope.scaled_by(-1), 0.0)
    convergence_phrase = {CONFIRMED: "on average", REFUTED: "away from it"}.get(
        convergence, "which is no more than chance"
    )
    findings.add_line(
        f"- **Nearer to 1 with larger networks: {convergence}.** Ten times the multiplications change how far the factor "
        f"is from "
        f"1 by {slope.value:+.1%} ({slope.low:+.1%} to {slope.high:+.1%}), {convergence_phrase}."
    )


def analyse_recordings(options, findings: Findings) -> None:
    load_log = read_load_log(options.folder, NAME)
    recording = Recording(str(options.joulemap.resolve()), options.folder / f"{NAME}.joule")
    networks = [read_network(recording, entry, load_log["device"]) for entry in load_log["entries"]]
    if not networks:
        findings.missed.append("nothing was collected")
        return
    write_table(findings, sorted(networks, key=lambda network: (network.batch, network.multiplications)))
    write_verdicts(findings, networks)
    for failure_text in load_log["failed"]:
        findings.add_line(f"- not measured: {failure_text}")


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
