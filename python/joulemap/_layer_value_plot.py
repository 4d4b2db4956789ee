# SPDX-License-Identifier: Apache-2.0
"""The picture and the page of jm.layer_value: joules on the horizontal axis, what a layer earns on the vertical one.
All text is escaped; nothing is loaded from elsewhere."""

from __future__ import annotations

import html
import math
from typing import Any, Callable

from ._notebook import TABLE_STYLE

PLOT_WIDTH, PLOT_HEIGHT = 760, 460
MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, MARGIN_BOTTOM = 90, 20, 50, 60
PARETO_FRONT_COLOUR, POINT_COLOUR = "#d9822b", "#5c7080"
MAX_POINT_LABELS = 12


def draw_svg(values: Any) -> str:
    """A point for each layer of which both values are known, with bars for their intervals."""
    rows = [row for row in values.rows if row.energy_j is not None and row.earned is not None]
    svg_elements = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PLOT_WIDTH} {PLOT_HEIGHT}" '
        f'width="{PLOT_WIDTH}" height="{PLOT_HEIGHT}" '
        f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>',
        _svg_text(MARGIN_LEFT, 22, "What each layer costs and earns", size=15),
        _svg_text(MARGIN_LEFT, 40, values.title(), colour=POINT_COLOUR),
    ]
    if rows:
        svg_elements += _draw_points(values, rows)
    else:
        svg_elements.append(_svg_text(MARGIN_LEFT, PLOT_HEIGHT / 2, "no layer has both an energy and a result"))
    return "".join([*svg_elements, "</svg>"])


def _draw_points(values: Any, rows: list) -> list:
    energies = [bound for row in rows for bound in (row.energy_j, row.low_j, row.high_j) if bound is not None]
    earnings = [bound for row in rows for bound in (row.earned, row.earned_low, row.earned_high) if bound is not None]
    x = _make_linear_scale(min(0.0, *energies), max(0.0, *energies), MARGIN_LEFT, PLOT_WIDTH - MARGIN_RIGHT)
    earning_scale = _make_earning_scale(earnings)
    scaled_earnings = list(map(earning_scale, [0.0, *earnings]))
    earning_to_y = _make_linear_scale(
        min(scaled_earnings), max(scaled_earnings), PLOT_HEIGHT - MARGIN_BOTTOM, MARGIN_TOP
    )

    def y(earned: float) -> float:
        return earning_to_y(earning_scale(earned))

    earning_label = "accuracy lost" if values.higher_is_better else "loss added"
    svg_elements = [*_draw_axes(x, y, energies, earnings, f"{earning_label} when skipped")]
    front_rows = sorted((row for row in rows if row.is_front), key=lambda row: row.energy_j)
    if len(front_rows) > 1:
        polyline_points = " ".join(f"{x(row.energy_j):.1f},{y(row.earned):.1f}" for row in front_rows)
        svg_elements.append(
            f'<polyline points="{polyline_points}" fill="none" stroke="{PARETO_FRONT_COLOUR}" stroke-dasharray="4 3"/>'
        )
    for row in sorted(rows, key=lambda row: row.is_front):
        svg_elements += _draw_point(row, x, y)
    labelled_rows = [*front_rows, *(row for row in rows if not row.is_front)][:MAX_POINT_LABELS]
    svg_elements += [_svg_text(x(row.energy_j) + 7, y(row.earned) - 6, row.name, size=11) for row in labelled_rows]
    return svg_elements


def _draw_point(row: Any, x: Callable, y: Callable) -> list:
    colour = PARETO_FRONT_COLOUR if row.is_front else POINT_COLOUR
    centre_x, centre_y = x(row.energy_j), y(row.earned)
    svg_elements = []
    if row.low_j is not None and row.high_j is not None:
        svg_elements.append(_svg_line(x(row.low_j), centre_y, x(row.high_j), centre_y, colour))
    if row.earned_low is not None and row.earned_high != row.earned_low:
        svg_elements.append(_svg_line(centre_x, y(row.earned_low), centre_x, y(row.earned_high), colour))
    tooltip = html.escape(f"{row.name}: {row.energy_j:.4g} J, {row.earned:+.4g}, skipped by {row.skip}")
    svg_elements.append(
        f'<circle cx="{centre_x:.1f}" cy="{centre_y:.1f}" r="4" fill="{colour}"><title>{tooltip}</title></circle>'
    )
    return svg_elements


def _draw_axes(x: Callable, y: Callable, energies: list, earnings: list, earning_label: str) -> list:
    svg_elements = [
        _svg_line(MARGIN_LEFT, y(0.0), PLOT_WIDTH - MARGIN_RIGHT, y(0.0), "#ccc"),
        _svg_line(x(0.0), MARGIN_TOP, x(0.0), PLOT_HEIGHT - MARGIN_BOTTOM, "#ccc"),
    ]
    for tick in _choose_round_ticks(min(0.0, *energies), max(0.0, *energies)):
        svg_elements.append(_svg_text(x(tick), PLOT_HEIGHT - MARGIN_BOTTOM + 18, f"{tick:g}", anchor="middle"))
    labelled_y: list = []
    for tick in _choose_earning_ticks(earnings):
        if all(abs(y(tick) - other_y) > 14 for other_y in labelled_y):
            labelled_y.append(y(tick))
            svg_elements.append(_svg_text(MARGIN_LEFT - 8, y(tick) + 4, f"{tick:g}", anchor="end"))
    svg_elements.append(
        _svg_text(
            (MARGIN_LEFT + PLOT_WIDTH - MARGIN_RIGHT) / 2, PLOT_HEIGHT - 18, "energy of the layer, J", anchor="middle"
        )
    )
    centre_y = (MARGIN_TOP + PLOT_HEIGHT - MARGIN_BOTTOM) / 2
    rotation_attribute = f'transform="rotate(-90 20 {centre_y:.0f})"'
    return [*svg_elements, _svg_text(20, centre_y, earning_label, anchor="middle", extra_attributes=rotation_attribute)]


def _make_linear_scale(low: float, high: float, first_pixel: float, last_pixel: float) -> Callable:
    low, high = _widen_range(low, high)
    return lambda value: first_pixel + (value - low) / (high - low) * (last_pixel - first_pixel)


def _widen_range(low: float, high: float) -> tuple:
    range_margin = 0.05 * (high - low) or 1.0
    return low - range_margin, high + range_margin


def _make_earning_scale(earnings: list) -> Callable:
    """Linear up to the median of the values, logarithmic above: one layer often earns a hundred times another."""
    linear_limit = _median_absolute_earning(earnings)
    return lambda value: math.asinh(value / linear_limit)


def _median_absolute_earning(earnings: list) -> float:
    absolute_earnings = sorted(abs(value) for value in earnings if value)
    return absolute_earnings[len(absolute_earnings) // 2] if absolute_earnings else 1.0


def _choose_earning_ticks(earnings: list) -> list:
    """0 and powers of 10 within the values, those farthest from 0 last."""
    low, high, linear_limit = min(0.0, *earnings), max(0.0, *earnings), _median_absolute_earning(earnings)
    min_exponent = math.floor(math.log10(linear_limit)) - 1
    powers_of_10 = [10.0**exponent for exponent in range(min_exponent, min_exponent + 8)]
    return [0.0, *(sign * power for power in powers_of_10 for sign in (1, -1) if low <= sign * power <= high)]


def _choose_round_ticks(low: float, high: float) -> list:
    value_range = high - low
    if value_range <= 0:
        return [low]
    tick_step = 10.0 ** math.floor(math.log10(value_range / 4))
    tick_step = next(tick_step * factor for factor in (1, 2, 5, 10) if value_range / (tick_step * factor) <= 6)
    first_tick_number = math.ceil(low / tick_step)
    return [
        round(tick_number * tick_step, 12) for tick_number in range(first_tick_number, math.floor(high / tick_step) + 1)
    ]


def _svg_line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _svg_text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 12,
    colour: str = "#222",
    anchor: str = "start",
    extra_attributes: str = "",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" {extra_attributes}>'
        f"{html.escape(text)}</text>"
    )


def make_html_body(values: Any) -> str:
    """Picture and table, for notebooks."""
    header, *rows = values.table()
    rows_html = "".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    header_html = "".join(f"<th>{html.escape(text)}</th>" for text in header)
    refusal_notes = [f"not skipped: {name}: {reason}" for name, reason in values.refused.items()]
    notes_html = "".join(f"<p>{html.escape(text)}</p>" for text in [*refusal_notes, *values.notes])
    return (
        f'{TABLE_STYLE}<div class="joulemap">{draw_svg(values)}<table><thead><tr>{header_html}</tr></thead>'
        f"<tbody>{rows_html}</tbody></table>{notes_html}</div>"
    )


def make_html_page(values: Any) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Value of layers</title></head>'
        f'<body style="font-family:sans-serif">{make_html_body(values)}</body></html>\n'
    )
