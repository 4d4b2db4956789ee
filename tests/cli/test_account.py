"""report with carbon and price, and its disclosures. Uses a real recording of an H200."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE_RECORDING = ROOT / "examples" / "resnet50-h200.joule"
JOULES_PER_KWH = 3.6e6


@pytest.fixture
def report(joulemap):
    """report(options): its output, which must be a success."""

    def run(*options: object, **settings: object):
        outcome = joulemap("report", "--by", "domain", EXAMPLE_RECORDING, *options, **settings)
        assert outcome.code == 0, outcome.err
        return outcome

    return run


def test_carbon_and_price_stand_beside_the_joules_with_their_assumptions(report):
    report_without_account = report("--json").json
    assert report_without_account.pop("account") is None
    account_options = (
        "--region",
        "FR",
        "--pue",
        1.5,
        "--price-per-kwh",
        0.2,
        "--embodied-kg",
        1500,
        "--lifetime-years",
        5,
    )
    report_with_account = report("--json", *account_options).json
    account = report_with_account.pop("account")
    assert report_with_account == report_without_account, "the account changes nothing else"
    assert account["carbon"] == {
        "gco2_per_kwh": 56, "time_series": False, "region": "France", "year": 2023,
        "source": "Ember, Yearly Electricity Data, via Our World in Data",
    }  # fmt: skip
    entry = account["entries"][0]
    kwh = 1.5 * entry["energy_j"] / JOULES_PER_KWH
    assert entry["provenance"] == "measured" and entry["energy_j"] < report_without_account["measured_j"], (
        "probing is not included"
    )
    assert entry["gco2"] == pytest.approx(56 * kwh) and entry["price"] == pytest.approx(0.2 * kwh)
    assert entry["gco2_low"] < entry["gco2"] < entry["gco2_high"]
    elapsed_s = report_without_account["elapsed_s"] - report_without_account["overhead"]["probe_s"]
    assert account["embodied_gco2"] == pytest.approx(1.5e6 * elapsed_s / (5 * 365.25 * 86400))
    text = report(*account_options).out
    for part in ("g CO2e", "France, average of 2023, Ember", "PUE 1.5", "per kWh", "1500 kg over 5", "8.887 kg CO2"):
        assert part in text, text
    assert "total measured" in text


def test_a_given_carbon_intensity_replaces_the_region(report):
    account = report("--json", "--region", "Poland", "--gco2-per-kwh", 10).json["account"]
    assert account["carbon"]["gco2_per_kwh"] == 10 and account["carbon"]["source"] == "given"


def test_an_unknown_region_is_refused_with_the_nearest_names(joulemap):
    outcome = joulemap("report", EXAMPLE_RECORDING, "--region", "Germny")
    assert outcome.code == 2 and "Germany" in outcome.err and outcome.out == ""
    outcome = joulemap("report", EXAMPLE_RECORDING, "--region", "eu-west-3")
    assert outcome.code == 2 and "aws:eu-west-3" in outcome.err


def test_tables_and_time_series_of_the_user(joulemap, report, tmp_path: Path):
    table = tmp_path / "mine.csv"
    table.write_text("region,gco2_per_kwh\nlab,12\n")
    assert (
        report("--json", "--carbon-data", table, "--region", "lab").json["account"]["entries"][0]["gco2_per_kwh"] == 12
    )
    assert joulemap("report", EXAMPLE_RECORDING, "--carbon-data", table).code == 2
    start_s = report("--json").json["start_unix_ns"] // 10**9
    series = tmp_path / "grid.csv"
    series.write_text("time,gco2_per_kwh\n" + "".join(f"{start_s - 5 + 10 * i},{100 + 10 * i}\n" for i in range(6)))
    account = report("--json", "--carbon-data", series).json["account"]
    assert account["carbon"]["time_series"] and 100 < account["entries"][0]["gco2_per_kwh"] < 150
    series.write_text(f"time,gco2_per_kwh\n{start_s - 5},1\n{start_s + 1},2\n")
    outcome = joulemap("report", EXAMPLE_RECORDING, "--carbon-data", series)
    assert outcome.code == 2 and "covers" in outcome.err
    assert joulemap("report", EXAMPLE_RECORDING, "--carbon-data", tmp_path / "missing.csv").code == 1


def test_a_time_series_is_weighted_without_probing(report, tmp_path: Path):
    full_report = report("--json").json
    start_s = full_report["start_unix_ns"] / 1e9
    probing_s = start_s + full_report["elapsed_s"] - full_report["overhead"]["probe_s"]
    series = tmp_path / "grid.csv"
    series.write_text(f"\ufefftime,gco2_per_kwh\n{start_s - 1},100\n{probing_s},900\n{start_s + 100},900\n")
    entry = report("--json", "--carbon-data", series).json["account"]["entries"][0]
    assert 100 <= entry["gco2_per_kwh"] < 150, "probing comes last"


def test_carbon_data_region_and_number_exclude_each_other(report, joulemap, tmp_path: Path):
    start_s = report("--json").json["start_unix_ns"] // 10**9
    series = tmp_path / "grid.csv"
    series.write_text(f"time,gco2_per_kwh\n{start_s - 5},100\n{start_s + 100},100\n")
    assert (
        joulemap("report", EXAMPLE_RECORDING, "--gco2-per-kwh", 5, "--carbon-data", tmp_path / "missing.csv").code == 2
    )
    outcome = joulemap("report", EXAMPLE_RECORDING, "--carbon-data", series, "--region", "Germny")
    assert outcome.code == 2 and "time series" in outcome.err
    (tmp_path / "joulemap.toml").write_text('region = "Sweden"\ngco2-per-kwh = 7\n')
    carbon = report("--json", "--carbon-data", series, cwd=tmp_path).json["account"]["carbon"]
    assert carbon["time_series"] and carbon["region"] is None, "the command line replaces joulemap.toml"
    carbon = report("--json", "--region", "FR", cwd=tmp_path).json["account"]["carbon"]
    assert carbon["region"] == "France" and carbon["gco2_per_kwh"] == 56
    (tmp_path / "joulemap.toml").write_text('gco2-per-kwh = 7\ncarbon-data = "missing.csv"\n')
    outcome = joulemap("report", EXAMPLE_RECORDING, cwd=tmp_path)
    assert outcome.code == 2 and "exclude each other" in outcome.err, outcome.err
    (tmp_path / "joulemap.toml").write_text(f'carbon-data = "{series}"\n')
    carbon = report("--json", "--gco2-per-kwh", 9, cwd=tmp_path).json["account"]["carbon"]
    assert carbon["gco2_per_kwh"] == 9 and not carbon["time_series"]


def test_the_configuration_sets_site_and_prices(report, joulemap, tmp_path: Path):
    (tmp_path / "joulemap.toml").write_text('region = "Sweden"\npue = 1.1\n[report]\nprice-per-kwh = 0.3\n')
    account = report("--json", cwd=tmp_path).json["account"]
    assert (account["carbon"]["region"], account["pue"], account["price_per_kwh"]) == ("Sweden", 1.1, 0.3)
    assert report("--json", "--region", "Norway", cwd=tmp_path).json["account"]["carbon"]["region"] == "Norway"
    (tmp_path / "joulemap.toml").write_text('region = "Swede"\n')
    assert joulemap("report", EXAMPLE_RECORDING, cwd=tmp_path).code == 2


def test_disclosures_name_what_they_need(joulemap):
    for format, option in {
        "cyclonedx": "--model-name", "spdx3": "--model-name", "sci": "--region",
    }.items():  # fmt: skip
        outcome = joulemap("report", EXAMPLE_RECORDING, "--disclose", format)
        assert outcome.code == 2 and option in outcome.err, outcome.err
    assert joulemap("report", EXAMPLE_RECORDING, "--disclose", "cyclonedx", "--model-name", "m").code == 2
    assert joulemap("report", EXAMPLE_RECORDING, "--disclose", "sci", "--region", "FR").code == 2
    assert joulemap("report", EXAMPLE_RECORDING, "--disclose", "unknown").code == 2
    assert joulemap("report", EXAMPLE_RECORDING, "--disclose", "sci", "--json").code == 2


MODEL_OPTIONS = ("--model-name", "resnet50", "--stage", "training", "--region", "France")


def test_cyclonedx_disclosure_contains_the_energy(report):
    cyclonedx_bom = report("--disclose", "cyclonedx", *MODEL_OPTIONS).json
    (component,) = cyclonedx_bom["components"]
    considerations = component["modelCard"]["considerations"]["environmentalConsiderations"]
    consumption, estimate = considerations["energyConsumptions"]
    truth = report("--json", "--region", "France").json["account"]["entries"][0]
    assert consumption["activity"] == "training"
    assert consumption["activityEnergyCost"]["value"] == pytest.approx(truth["energy_j"] / JOULES_PER_KWH)
    assert consumption["co2CostEquivalent"]["value"] == pytest.approx(truth["gco2"] / 1e6)
    properties = {property_entry["name"]: property_entry["value"] for property_entry in consumption["properties"]}
    assert properties["joulemap:provenance"] == "measured"
    assert float(properties["joulemap:low_kwh"]) < consumption["activityEnergyCost"]["value"]
    properties = {property_entry["name"]: property_entry["value"] for property_entry in estimate["properties"]}
    assert properties["joulemap:provenance"] == "estimated" and float(properties["joulemap:low_kwh"]) >= 0


def test_spdx3_disclosure_contains_the_energy(report):
    graph = {element["type"]: element for element in report("--disclose", "spdx3", *MODEL_OPTIONS).json["@graph"]}
    package = graph["ai_AIPackage"]
    energy, _ = package["ai_energyConsumption"]["ai_trainingEnergyConsumption"]
    truth = report("--json", "--region", "France").json["account"]["entries"][0]["energy_j"]
    assert float(energy["ai_energyQuantity"]) == pytest.approx(truth / JOULES_PER_KWH, rel=1e-9)
    assert energy["ai_energyUnit"] == "kilowattHour" and "e" not in energy["ai_energyQuantity"]
    assert "measured" in package["comment"] and "90 % interval" in package["comment"]
    assert "profileConformance" not in graph["SpdxDocument"]


def test_boamps_states_what_it_cannot_know(report, tmp_path: Path):
    outcome = report("--disclose", "boamps", *MODEL_OPTIONS)
    assert "task.taskFamily" in outcome.err and "infrastructure.infraType" in outcome.err
    base_disclosure = {
        "task": {"taskFamily": "image classification", "dataset": [{"dataUsage": "input", "dataType": "image"}]},
        "infrastructure": {"infraType": "publicCloud"},
        "quality": "low",
    }
    (tmp_path / "base.json").write_text(json.dumps(base_disclosure))
    outcome = report("--disclose", "boamps", *MODEL_OPTIONS, "--into", tmp_path / "base.json")
    assert outcome.err == ""
    disclosure = outcome.json
    assert disclosure["task"]["taskFamily"] == "image classification" and disclosure["task"]["taskStage"] == "training"
    assert disclosure["quality"] == "low", "values of the user are kept"
    measure, estimate = disclosure["measures"]
    assert measure["measurementMethod"] == "joulemap (measured)" and measure["gpuTrackingMode"] == "nvml"
    assert estimate["measurementMethod"] == "joulemap (estimated)" and "gpuTrackingMode" not in estimate
    assert disclosure["environment"]["country"] == "France"


def test_sci_per_step(report):
    options = ("--region", "France", "--embodied-kg", 1000)
    run = report("--disclose", "sci", *options).json
    step = report("--disclose", "sci", *options, "--functional-unit", "step").json
    entry, _ = run["entries"]
    assert entry["sci_gco2_per_unit"] == pytest.approx(entry["E_kwh"] * entry["I_gco2_per_kwh"] + run["M_gco2"])
    assert step["entries"][0]["sci_gco2_per_unit"] == pytest.approx(entry["sci_gco2_per_unit"] / step["units"])
    assert step["units"] == 343 and entry["low"] < entry["sci_gco2_per_unit"] < entry["high"]


def test_eu_ai_act_disclosure_contains_the_energy(report):
    disclosure = report("--disclose", "eu-ai-act", *MODEL_OPTIONS).json
    energy, estimate = disclosure["energy"]
    assert energy["provenance"] == "measured" and energy["low_mwh"] < energy["energy_mwh"] < energy["high_mwh"]
    assert estimate["provenance"] == "estimated" and 0 < estimate["low_mwh"] < estimate["energy_mwh"]
    full_report = report("--json").json
    assert disclosure["elapsed_s"] == pytest.approx(full_report["elapsed_s"] - full_report["overhead"]["probe_s"]), (
        "as the energy"
    )
    assert "resnet50 during training" in disclosure["statement"]


def test_measured_and_estimated_energy_are_never_added(joulemap, sysroots, tmp_path: Path):
    """On a machine without sensors, everything is estimated."""
    recording = tmp_path / "estimated.joule"
    sysroot = sysroots / "no-sensors"
    assert joulemap("record", "--sysroot", sysroot, "-o", recording, "--", "sleep", "0.2").code == 0
    disclosure = joulemap("report", recording, "--disclose", "eu-ai-act").json
    assert [energy["provenance"] for energy in disclosure["energy"]] == ["estimated"]
    assert "estimated:" in disclosure["statement"] and "measured" not in disclosure["statement"]
