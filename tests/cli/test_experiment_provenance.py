"""`experiment analyze` compares only measured energy of the same domains, and reports which domains it compares."""

from __future__ import annotations

import csv
import io

import pytest
from made_rows import make_domain, deterministic_noise, write_rows


@pytest.fixture
def analyzed(joulemap, tmp_path):
    """analyzed(domains_of): the analysis of rows whose domains are domains_of(level, block)."""

    def analyze(domains_of, *flags: str) -> dict:
        folder = tmp_path / f"exp-{len(list(tmp_path.iterdir()))}"
        write_rows(
            folder,
            lambda level, block: {"elapsed_s": 10 + deterministic_noise(block), "domains": domains_of(level, block)},
        )
        return joulemap("experiment", "analyze", folder, "--json", *flags).json

    return analyze


def codes(result: dict) -> set[str]:
    return {flag["code"] for flag in result["flags"]}


def find_energy_comparison(result: dict) -> dict:
    return next(comparison for comparison in result["comparisons"] if comparison["metric"] == "energy_j")


def test_different_estimates_do_not_change_equal_measurements(analyzed):
    result = analyzed(lambda level, block: [make_domain("gpu0", 100 + deterministic_noise(block + 5 * level)),
                                            make_domain("package-0", 1000 * (1 + level), "estimated")])  # fmt: skip
    energy_comparison = find_energy_comparison(result)
    assert not energy_comparison["different"], energy_comparison["verdict"]
    assert (energy_comparison["provenance"], energy_comparison["domains"], energy_comparison["left_out"]) == (
        "measured",
        ["gpu0"],
        [],
    )
    assert all(cell["energy_j"]["mean"] < 102 for cell in result["cells"])
    assert [cell["domains"]["package"]["mean"] for cell in result["cells"]] == [1000, 2000]
    assert not [comparison for comparison in result["comparisons"] if comparison["metric"] == "package"]
    assert "estimates_not_added" in codes(result)
    assert "Energy is measured: the sum of gpu0." in result["methods"]


def test_comparisons_of_only_estimates_are_marked_estimated(analyzed):
    result = analyzed(
        lambda level, block: [make_domain("package-0", 100 * (1 + level) + deterministic_noise(block), "estimated")]
    )
    energy_comparison = find_energy_comparison(result)
    assert energy_comparison["different"] and energy_comparison["provenance"] == "estimated"
    assert "less estimated energy than b" in energy_comparison["verdict"]
    assert "estimated_energy" in codes(result)


def test_rows_of_different_domains_are_compared_by_those_they_share(analyzed):
    result = analyzed(lambda level, block: [make_domain("gpu0", 100 + deterministic_noise(block + 5 * level)),
                                            *([make_domain("package-0", 500)] if level else [])])  # fmt: skip
    energy_comparison = find_energy_comparison(result)
    assert not energy_comparison["different"], energy_comparison["verdict"]
    assert (energy_comparison["domains"], energy_comparison["left_out"]) == (["gpu0"], ["package-0"])
    assert "domains_differ" in codes(result)
    message = next(flag["message"] for flag in result["flags"] if flag["code"] == "domains_differ")
    assert "gpu0" in message and "excluded: package-0" in message


def test_rows_that_share_no_domain_are_not_compared_and_the_verdict_says_why(analyzed):
    result = analyzed(lambda level, block: [make_domain("gpu0" if level else "psys", 100 + 100 * level)])
    energy_comparison = find_energy_comparison(result)
    assert energy_comparison["p"] is None and not energy_comparison["different"]
    assert "no common domain" in energy_comparison["verdict"]
    assert "no_common_domain" in codes(result)
    assert all(cell["energy_j"] is None and cell["time_s"] is not None for cell in result["cells"])


def test_a_row_that_could_not_read_a_domain_has_no_energy_and_the_others_keep_theirs(analyzed):
    def measured(level, block):
        gpu_j = None if block == 3 else 100 + deterministic_noise(block)
        return [make_domain("package-0", 50), make_domain("gpu0", gpu_j)]

    result = analyzed(measured)
    assert find_energy_comparison(result)["domains"] == ["package-0", "gpu0"]
    assert [cell["energy_j"]["n"] for cell in result["cells"]] == [9, 9]
    assert all("missing_energy" in {flag["code"] for flag in cell["flags"]} for cell in result["cells"])


def test_single_rows_have_their_sums_by_provenance(joulemap, tmp_path):
    def row_of(level: int, block: int) -> dict:
        domains = [make_domain("gpu0", 100), make_domain("package-0", 1000, "estimated")]
        powers = {"baseline_measured_w": 60, "baseline_estimated_w": 9, "first_measured_w": 61, "first_estimated_w": 10}
        return {"elapsed_s": 10, "domains": domains, "energy_j": 100, **powers}

    folder = write_rows(tmp_path / "exp", row_of, repetitions=2)
    text = joulemap("experiment", "analyze", folder, "--csv-rows").out
    for row in csv.DictReader(io.StringIO(text, newline="")):
        assert (row["energy_j"], row["measured_j"], row["estimated_j"]) == ("100", "100", "1000")
        assert (row["energy_provenance"], row["measured_domains"]) == ("measured", "gpu0")
        assert (row["baseline_w"], row["baseline_measured_w"], row["baseline_estimated_w"]) == ("60", "60", "9")
        assert (row["first_w"], row["first_estimated_w"]) == ("61", "10")


def test_an_older_folder_is_read_and_its_mixed_sums_are_ignored(joulemap, tmp_path):
    def row_of(level: int, block: int) -> dict:
        domains = [
            make_domain("gpu0", 100 + deterministic_noise(block)),
            make_domain("package-0", 1000 * (1 + level), "estimated"),
        ]
        mixed_provenance_sums = {"energy_j": 1100 + 1000 * level, "baseline_w": 100, "first_w": 900}
        return {"elapsed_s": 10 + deterministic_noise(block), "domains": domains, **mixed_provenance_sums}

    result = joulemap("experiment", "analyze", write_rows(tmp_path / "exp", row_of), "--json").json
    assert not find_energy_comparison(result)["different"]
    flags = {flag["code"] for flag in result["cells"][0]["flags"]}
    assert "mixed_idle_power" in flags and "cool_down" not in flags
