# SPDX-License-Identifier: Apache-2.0
"""The report of a benchmark as text and as JSON (docs/reference/schemas/bench_serve.json). Pure."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict, dataclass
from typing import Any, Optional, Sequence

from .._energy import Diagnostic, Energy
from .result import MIN_LATENESS_S, LatencyDistribution, Latencies, LoadLevelResult, EnergyPerToken

LINE_WIDTH = 80
INTERVAL_PROBABILITY = 0.95  # probability of the intervals of windows


@dataclass(frozen=True)
class ReportedSettings:
    """What was asked for, as reported."""

    kind: str  # "endpoint" or "engine"
    address: str  # URL, or FILE.py:FUNCTION
    model: Optional[str]
    api: Optional[str]  # "completions" or "chat"; None for an engine
    is_local: bool
    arrivals: str  # "poisson" or "trace"
    trace_file: Optional[str]
    seed: int
    prompt_tokens: Optional[str]  # distribution; None with a trace
    output_tokens: Optional[str]
    timeout_s: float
    ramp_share: float
    warm_up_requests: int


def to_json(settings: ReportedSettings, levels: Sequence[LoadLevelResult], diagnostics: Sequence[Diagnostic]) -> str:
    document = {
        "schema": "joulemap.bench_serve/1",
        "interval": INTERVAL_PROBABILITY,
        "target": {
            "kind": settings.kind,
            "address": settings.address,
            "model": settings.model,
            "api": settings.api,
            "is_local": settings.is_local,
        },
        "workload": {
            "arrivals": settings.arrivals,
            "trace_file": settings.trace_file,
            "seed": settings.seed,
            "prompt_tokens": settings.prompt_tokens,
            "output_tokens": settings.output_tokens,
            "warm_up_requests": settings.warm_up_requests,
        },
        "timeout_s": settings.timeout_s,
        "ramp_share": settings.ramp_share,
        "late_limit_s": MIN_LATENESS_S,
        "levels": [_load_level_to_json(level) for level in levels],
        "diagnostics": [{**asdict(diagnostic), "remedy": diagnostic.remedy or None} for diagnostic in diagnostics],
    }
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _load_level_to_json(level: LoadLevelResult) -> dict[str, Any]:
    return {
        "rate_per_s": level.rate_per_s,
        "span_s": level.run.level.span_s,
        "requests": {
            "planned": len(level.run.outcomes),
            "sent": level.sent,
            "succeeded": level.succeeded,
            "failed": level.failed,
            "late": level.late,
            "late_max_s": level.max_lateness_s,
        },
        "failures": [asdict(failure) for failure in level.failures],
        **_latencies_to_json(level.latencies),
        "steady": _steady_part_to_json(level),
        "energy": _energy_to_json(level.energy),
        "per_output_token": asdict(level.energy_per_output_token),
        "per_total_token": asdict(level.energy_per_total_token),
        "tenants": [
            {
                "name": tenant.name,
                "requests": tenant.requests,
                "succeeded": tenant.succeeded,
                "output_tokens": tenant.output_tokens,
                **_latencies_to_json(tenant.latencies),
            }
            for tenant in level.tenants
        ],
    }


def _latencies_to_json(latencies: Latencies) -> dict[str, Any]:
    return {
        "ttft_s": asdict(latencies.ttft_s),
        "tpot_s": asdict(latencies.tpot_s),
        "latency_s": asdict(latencies.latency_s),
    }


def _steady_part_to_json(level: LoadLevelResult) -> Optional[dict[str, Any]]:
    steady_part = level.steady
    if steady_part is None:
        return None
    return {
        "begin_s": steady_part.begin_s,
        "end_s": steady_part.end_s,
        "time_s": steady_part.time_s,
        "arrivals": steady_part.arrivals,
        "completed": steady_part.completed,
        "output_tokens": steady_part.output_tokens,
        "prompt_tokens": steady_part.prompt_tokens,
        "requests_per_s": steady_part.completed / steady_part.time_s,
        "output_tokens_per_s": steady_part.output_tokens / steady_part.time_s,
        "total_tokens_per_s": steady_part.total_tokens / steady_part.time_s,
        "in_flight_begin": steady_part.in_flight_begin,
        "in_flight_end": steady_part.in_flight_end,
        "in_flight_mean": steady_part.in_flight_mean,
    }


def _energy_to_json(energy: Optional[Energy]) -> dict[str, Any]:
    """Keys are present and null without energy; a diagnostic says why."""
    return {
        "energy_j": energy.joules if energy else None,
        "low_j": energy.low_j if energy else None,
        "high_j": energy.high_j if energy else None,
        "uncertainty_j": energy.uncertainty_j if energy else None,
        "mean_w": energy.watts if energy else None,
        "time_s": energy.seconds if energy else None,
        "provenance": energy.provenance if energy else None,
        "domains": [
            {
                "name": domain.name,
                "energy_j": domain.joules,
                "uncertainty_j": domain.uncertainty_j,
                "mean_w": domain.watts,
                "provenance": domain.provenance,
                "counted": domain.counted,
                "part_of": domain.part_of or None,
                "sensor": domain.sensor,
                "reason": domain.reason or None,
            }
            for domain in (energy.domains if energy else [])
        ],
    }


def to_text(
    settings: ReportedSettings,
    levels: Sequence[LoadLevelResult],
    diagnostics: Sequence[Diagnostic],
    with_notes: bool = True,
) -> str:
    model_text = f", model {settings.model}" if settings.model else ""
    arrivals_text = f"arrivals of {settings.trace_file}" if settings.trace_file else "Poisson arrivals"
    lines = _wrap_text(" ", f"Load on {settings.address}{model_text}: {arrivals_text}, seed {settings.seed}")
    lines += ["", *_latency_table(levels), "", *_energy_table(levels)]
    if any(level.tenants for level in levels):
        lines += ["", *_tenant_table(levels)]
    lines += ["", *_explanation_lines(settings)]
    for note in diagnostics if with_notes else ():
        count_text = f" ({note.count} times)" if note.count > 1 else ""
        lines += _wrap_text(" note: ", note.message + (count_text if not note.message.startswith("at ") else ""))
        lines += _wrap_text("    -> ", note.remedy) if note.remedy else []
    return "\n".join(["", *lines, ""]) + "\n"


def _explanation_lines(settings: ReportedSettings) -> list[str]:
    ramp_text = f"{100 * settings.ramp_share:g} %"
    explanation = (
        f"Steady part: from {ramp_text} of the arrivals' span to the last arrival; the ramps before and after are left "
        "out of rates, latencies and energies. TTFT: time to the first token, from the planned arrival. TPOT: mean "
        "time per output token after the first one. ±: half of the 95 % interval. J are of the whole machine, also "
        "while it waits and for the benchmark itself."
    )
    return _wrap_text(" ", explanation)


def _latency_table(levels: Sequence[LoadLevelResult]) -> list[str]:
    rows = [
        [
            _rate_text(level.rate_per_s),
            _format_optional(level.steady and level.steady.completed / level.steady.time_s),
            *_percentile_cells(level.latencies.ttft_s, 1000),
            *_percentile_cells(level.latencies.tpot_s, 1000),
            str(level.succeeded),
            str(level.failed),
            str(level.late),
        ]
        for level in levels
    ]
    header = ["offered", "done", "P50", "P90", "P99", "P50", "P90", "P99", "ok", "failed", "late"]
    column_groups = [("requests/s", 2), ("TTFT, ms", 3), ("TPOT, ms", 3), ("requests", 3)]
    return _format_table(column_groups, header, rows)


def _energy_table(levels: Sequence[LoadLevelResult]) -> list[str]:
    rows = []
    for level in levels:
        steady_part, energy = level.steady, level.energy
        rows.append(
            [
                _rate_text(level.rate_per_s),
                _format_optional(steady_part and steady_part.output_tokens / steady_part.time_s),
                _format_optional(steady_part and steady_part.total_tokens / steady_part.time_s),
                *_energy_cells(level.energy_per_output_token),
                *_energy_cells(level.energy_per_total_token),
                _format_optional(energy and energy.watts),
                (energy and energy.provenance) or "unknown",
            ]
        )
    header = ["offered", "output", "all", "output", "±", "all", "±", "W", "energy"]
    return _format_table([("requests/s", 1), ("tokens/s", 2), ("J per token", 4), ("", 2)], header, rows)


def _tenant_table(levels: Sequence[LoadLevelResult]) -> list[str]:
    rows = [
        [
            _rate_text(level.rate_per_s),
            tenant.name,
            str(tenant.requests),
            str(tenant.succeeded),
            *_percentile_cells(tenant.latencies.ttft_s, 1000),
            *_percentile_cells(tenant.latencies.tpot_s, 1000),
        ]
        for level in levels
        for tenant in level.tenants
    ]
    header = ["offered", "tenant", "sent", "ok", "P50", "P90", "P99", "P50", "P90", "P99"]
    return _format_table([("requests/s", 1), ("", 1), ("requests", 2), ("TTFT, ms", 3), ("TPOT, ms", 3)], header, rows)


def _format_table(
    column_groups: Sequence[tuple[str, int]], header: Sequence[str], rows: Sequence[Sequence[str]]
) -> list[str]:
    """Columns are right-aligned; a group has a title over its columns."""
    column_widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    first_column = 0
    for group_title, column_count in column_groups:  # a title may be wider than its columns
        column_widths[first_column] += max(
            0, len(group_title) - sum(column_widths[first_column : first_column + column_count]) - (column_count - 1)
        )
        first_column += column_count
    group_titles, first_column = [], 0
    for group_title, column_count in column_groups:
        group_titles.append(
            group_title.rjust(sum(column_widths[first_column : first_column + column_count]) + column_count - 1)
        )
        first_column += column_count
    group_starts = {
        sum(column_count for _, column_count in column_groups[:group_index])
        for group_index in range(1, len(column_groups))
    }
    table_lines = ["  ".join(group_titles).rstrip()]
    for row in [header, *rows]:
        cells = [
            ("  " if column in group_starts else " ") + cell.rjust(column_widths[column])
            for column, cell in enumerate(row)
        ]
        table_lines.append("".join(cells)[1:].rstrip())
    return [" " + line for line in table_lines]


def _percentile_cells(distribution: LatencyDistribution, factor: float) -> list[str]:
    return [
        _format_optional(None if percentile is None else factor * percentile)
        for percentile in (distribution.p50, distribution.p90, distribution.p99)
    ]


def _energy_cells(energy_per_token: EnergyPerToken) -> list[str]:
    if energy_per_token.energy_j is None:
        return ["?", "?"]
    return [
        _format_optional(energy_per_token.energy_j),
        _format_optional(
            None if energy_per_token.high_j is None else energy_per_token.high_j - energy_per_token.energy_j
        ),
    ]


def _rate_text(rate_per_s: Optional[float]) -> str:
    return "at once" if rate_per_s is None else f"{rate_per_s:.4g}"


def _format_optional(value: Optional[float]) -> str:
    """Three significant digits; all digits before the point."""
    if value is None:
        return "?"
    if abs(value) >= 100:
        return f"{value:.0f}"
    digits = 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}" if value == 0 or abs(value) >= 0.01 else f"{value:.2g}"


def _wrap_text(first_indent: str, text: str) -> list[str]:
    later_indent = " " * len(first_indent)
    return textwrap.wrap(
        text, LINE_WIDTH, initial_indent=first_indent, subsequent_indent=later_indent, break_on_hyphens=False
    ) or [first_indent]
