#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the inputs on which our statistics are compared with R and scipy: tests/data/statistics/inputs.json.

    apt-get install r-base-core r-cran-coin r-cran-exactranktests r-cran-jsonlite r-cran-lme4 r-cran-emmeans
    python3 -m venv build/goldens && build/goldens/bin/pip install scipy==1.17.1 scikit-posthocs
    python3 tools/statistics_goldens/inputs.py
    Rscript tools/statistics_goldens/goldens.R
    build/goldens/bin/python tools/statistics_goldens/goldens.py

The numbers are committed: tests need neither R nor scipy. Values are integers or eighths, so that differences that are
equal on paper are equal in floating point, and every program sees the same ties.
"""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

GOLDENS_FOLDER = Path(__file__).resolve().parent.parent.parent / "tests" / "data" / "statistics"


def draw_multiples_of_eighth(draw: random.Random, n: int, centre: float, spread: float) -> list[float]:
    return [round(8 * draw.gauss(centre, spread)) / 8 for _ in range(n)]


def draw_untied_values(draw: random.Random, n: int, centre: float, spread: float) -> list[float]:
    """Multiples of 2^-20 that differ from each other, as do all their sums and differences, nearly surely."""
    return [round(2**20 * draw.gauss(centre, spread)) / 2**20 for _ in range(n)]


def integers(draw: random.Random, n: int, most: int) -> list[int]:
    return [draw.randint(0, most) for _ in range(n)]


def make_pair_cases(draw: random.Random) -> list[dict]:
    named_pairs = [
        ("pairs-1", [3], [1]),
        ("pairs-2", [3, 4], [1, 6]),
        ("pairs-5-floor", [5, 6, 7, 8, 9], [1, 1, 1, 1, 1]),
        ("pairs-10-floor", list(range(11, 21)), list(range(1, 20, 2))),
        ("pairs-zeros", [5, 5, 5, 7, 9, 3, 3, 12], [5, 6, 3, 4, 4, 4, 3, 7]),
        ("pairs-one-left", [1, 2, 3, 4, 9], [1, 2, 3, 4, 4]),
    ]
    for n in (3, 6, 8, 10, 13, 20, 30):
        named_pairs.append((f"pairs-heavy-ties-{n}", integers(draw, n, 3), integers(draw, n, 4)))
    for n in (7, 12, 30, 60):
        first_sample, second_sample = (
            draw_multiples_of_eighth(draw, n, 10.5, 2),
            draw_multiples_of_eighth(draw, n, 10, 2),
        )
        named_pairs.append((f"pairs-eighths-{n}", first_sample, second_sample))
    for n in (4, 9, 10, 30, 49, 150, 250):
        named_pairs.append(
            (f"pairs-untied-{n}", draw_untied_values(draw, n, 10.5, 2), draw_untied_values(draw, n, 10, 2))
        )
    return [{"id": name, "kind": "pairs", "first": a, "second": b} for name, a, b in named_pairs]


def make_two_group_cases(draw: random.Random) -> list[dict]:
    named_samples = [
        ("two-1-1", [1], [2]),
        ("two-1-5", [7], [1, 2, 3, 4, 5]),
        ("two-10-floor", list(range(10)), list(range(20, 30))),
    ]
    for m, n in ((3, 4), (5, 9), (8, 15), (10, 10), (30, 30), (50, 50)):
        named_samples.append((f"two-heavy-ties-{m}-{n}", integers(draw, m, 4), integers(draw, n, 5)))
    for m, n in ((6, 7), (12, 25), (30, 30)):
        first_sample, second_sample = (
            draw_multiples_of_eighth(draw, m, 10.5, 2),
            draw_multiples_of_eighth(draw, n, 10, 2),
        )
        named_samples.append((f"two-eighths-{m}-{n}", first_sample, second_sample))
    for m, n in ((2, 3), (10, 10), (7, 20), (30, 30), (50, 50), (70, 80)):
        named_samples.append(
            (f"two-untied-{m}-{n}", draw_untied_values(draw, m, 10.5, 2), draw_untied_values(draw, n, 10, 2))
        )
    named_samples.append(("two-large-ties-90-60", integers(draw, 90, 9), integers(draw, 60, 10)))
    return [{"id": name, "kind": "two", "first": a, "second": b} for name, a, b in named_samples]


def make_group_cases(draw: random.Random) -> list[dict]:
    """Friedman takes blocks of one size each (of `width` values), Kruskal and Wallis groups of any."""
    named_groups = []
    for blocks, width in ((3, 3), (10, 4), (12, 3), (30, 6)):
        named_groups.append((f"blocks-ties-{blocks}-{width}", [integers(draw, width, 4) for _ in range(blocks)]))
        named_groups.append(
            (f"blocks-untied-{blocks}-{width}", [draw_untied_values(draw, width, 10, 2) for _ in range(blocks)])
        )
    for sizes in ((3, 4, 5), (10, 10, 10), (1, 7, 2), (30, 25, 28, 31)):
        name = "-".join(map(str, sizes))
        named_groups.append((f"groups-ties-{name}", [integers(draw, size, 5) for size in sizes]))
        named_groups.append(
            (f"groups-untied-{name}", [draw_untied_values(draw, size, 10 + size / 10, 2) for size in sizes])
        )
    return [
        {
            "id": name,
            "kind": name.split("-")[0],
            "sizes": list(map(len, value_groups)),
            "values": [value for group_values in value_groups for value in group_values],
        }
        for name, value_groups in named_groups
    ]


def make_p_value_families(draw: random.Random) -> list[dict]:
    values_by_name = {f"family-{n}": [round(draw.random() ** 3, 6) for _ in range(n)] for n in (1, 4, 26, 48)}
    values_by_name["family-ties"] = [0.01, 0.01, 0.5, 0.04, 0.04, 1, 0.01, 0.2]
    return [{"id": name, "kind": "family", "values": values} for name, values in values_by_name.items()]


def make_sample_cases(draw: random.Random) -> list[dict]:
    # Sums of eighths are exact, so that a mean does not depend on the order: scipy takes rounding for a difference.
    values_by_name = {f"sample-{n}": [round(8 * draw.expovariate(0.1)) / 8 for _ in range(n)] for n in (5, 12, 31)}
    return [{"id": name, "kind": "sample", "values": values} for name, values in values_by_name.items()]


def make_strata_cases(draw: random.Random) -> list[dict]:
    """Two treatments in strata of their own level. Strata of pairs have as many values of one as of the other."""
    cases = []
    for name, sizes, max_value in (
        ("strata-paired-n2", [(2, 2)] * 12, None),
        ("strata-paired-ties", [(4, 4)] * 5, 6),
        ("strata-paired-unequal", [(3, 3), (5, 5), (2, 2), (7, 7)], None),
        ("strata-paired-unequal-ties", [(3, 3), (5, 5), (4, 4), (6, 6)], 5),
        ("strata-paired-n10", [(10, 10)] * 6, None),
        ("strata-unpaired-unequal", [(3, 5), (2, 2), (6, 4), (1, 4)], None),
        ("strata-unpaired-ties", [(4, 6), (5, 3), (7, 7)], 5),
    ):
        case: dict = {"id": name, "kind": "strata", "values": [], "groups": [], "strata": []}
        for stratum, (m, n) in enumerate(sizes):
            first_sample = (
                integers(draw, m, max_value) if max_value else draw_untied_values(draw, m, 10 * stratum + 1, 2)
            )
            second_sample = (
                integers(draw, n, max_value - 1) if max_value else draw_untied_values(draw, n, 10 * stratum, 2)
            )
            case["values"] += first_sample + second_sample
            case["groups"] += [0] * m + [1] * n
            case["strata"] += [stratum] * (m + n)
        cases.append(case)
    return cases


def make_factorial_cases(draw: random.Random) -> list[dict]:
    """Logarithms of an experiment of two or three factors in blocks, some of them with missing rows."""
    cases = []
    for name, levels, blocks, block_sd, missing_row_count in (
        ("factorial-two", (2, 3), 5, 0.3, 0),
        ("factorial-three", (2, 3, 4), 3, 0.5, 0),
        ("factorial-missing", (2, 3, 2), 4, 0.4, 5),
        ("factorial-no-block-effect", (3, 2), 6, 0, 0),
    ):
        case: dict = {"id": name, "kind": "factorial", "factors": len(levels), "values": [], "levels": [], "blocks": []}
        main_effects = [[draw.gauss(0, 0.4) for _ in range(count)] for count in levels]
        interactions = {(i, j): draw.gauss(0, 0.2) for i in range(levels[0]) for j in range(levels[1])}
        rows = []
        for block in range(blocks):
            of_block = draw.gauss(0, block_sd)
            for combination in itertools.product(*(range(count) for count in levels)):
                value = (
                    5
                    + of_block
                    + sum(shift[i] for shift, i in zip(main_effects, combination))
                    + interactions[combination[:2]]
                )
                rows.append((round(2**20 * (value + draw.gauss(0, 0.2))) / 2**20, combination, block))
        for removed_index in sorted(draw.sample(range(len(rows)), missing_row_count), reverse=True):
            del rows[removed_index]
        for value, combination, block in rows:
            case["values"].append(value)
            case["levels"] += combination
            case["blocks"].append(block)
        cases.append(case)
    return cases


def main() -> None:
    draw = random.Random(20261)
    cases = make_pair_cases(draw) + make_two_group_cases(draw) + make_group_cases(draw)
    cases += make_p_value_families(draw) + make_sample_cases(draw)
    cases += make_strata_cases(random.Random(20262)) + make_factorial_cases(random.Random(20263))
    GOLDENS_FOLDER.mkdir(parents=True, exist_ok=True)
    (GOLDENS_FOLDER / "inputs.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
