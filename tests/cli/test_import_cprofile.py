# SPDX-License-Identifier: Apache-2.0
"""`import cprofile`: profiles of Python's cProfile, as a recording and as an experiment. pstats is the reference."""

from __future__ import annotations

import cProfile
import csv
import io
import json
import marshal
import pstats
from pathlib import Path

import pytest

PATTERN = "{model}_{framework:pytorch|tensorflow}_{pass}.prof"


def fibonacci(number: int) -> int:
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def work() -> list[int]:
    return sorted(fibonacci(number) for number in range(16))


@pytest.fixture(scope="module")
def profile(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("profile") / "train.prof"
    profiler = cProfile.Profile()
    profiler.runcall(work)
    profiler.dump_stats(path)
    return path


def reference_times(profile: Path) -> dict[str, tuple]:
    """By name of the function: calls, own time, cumulative time."""
    function_stats = pstats.Stats(str(profile)).stats
    return {
        key[2]: (calls, own_time_s, cumulative)
        for key, (_, calls, own_time_s, cumulative, _) in function_stats.items()
        if key[0] != "~"  # joulemap shortens names of built-ins
    }


def test_a_profile_becomes_a_recording_with_calls_and_own_times(joulemap, profile, tmp_path):
    recording_path = tmp_path / "run.joule"
    import_outcome = joulemap("import", profile, "-o", recording_path, "--json")
    assert import_outcome.code == 0, import_outcome.err
    assert json.loads(import_outcome.out)["format"] == "cprofile", "recognized by its content"
    report = joulemap("report", recording_path, "--by", "function", "--json").json
    rows = {row["path"][-1].split(" (")[0]: row for row in report["rows"]}
    for name, (calls, own_time_s, _) in reference_times(profile).items():
        if own_time_s < 1e-6:
            continue
        assert rows[name]["count"] == calls
        assert rows[name]["time_s"] == pytest.approx(own_time_s, abs=2e-9)
        assert rows[name]["energy_j"] is None, "without a power log, the energy is unknown, not 0"


def test_a_power_log_gives_the_energy_of_functions(joulemap, profile, tmp_path):
    seconds = pstats.Stats(str(profile)).total_tt
    begin = 1_700_000_000_000_000_000
    lines = ["time_unix_ns,domain,kind,value"]
    lines += [f"{begin + round(i * seconds * 1e9 / 50)},package-0,power_w,80" for i in range(51)]
    (tmp_path / "power.csv").write_text("\n".join(lines) + "\n")
    recording_path = tmp_path / "run.joule"
    import_outcome = joulemap(
        "import", "cprofile", profile, "--power", tmp_path / "power.csv", "-o", recording_path, "--json"
    )
    assert import_outcome.code == 0, import_outcome.err
    codes = {note["code"] for note in json.loads(import_outcome.out)["diagnostics"]}
    assert {"clock_not_known", "profile_without_times"} <= codes
    report = joulemap("report", recording_path, "--by", "function", "--json").json
    rows = {row["path"][-1].split(" (")[0]: row for row in report["rows"]}
    own_time_s = reference_times(profile)["fibonacci"][1]
    assert rows["fibonacci"]["energy_j"] == pytest.approx(80 * own_time_s, rel=0.1)


@pytest.fixture
def experiment(joulemap, profile, tmp_path) -> Path:
    folder = tmp_path / "profiles"
    folder.mkdir()
    function_stats = marshal.loads(profile.read_bytes())
    for number, name in enumerate(
        ["transformer_xl_pytorch_train", "transformer_xl_tensorflow_train", "ssd_pytorch_train"]
    ):
        # Versions 0 to 2 are those of older Pythons.
        (folder / f"{name}.prof").write_bytes(marshal.dumps(function_stats, [4, 2, 0][number]))
    (folder / "ssd_tensorflow_train.prof").write_bytes(b"no profile")
    import_outcome = joulemap("import", "cprofile", folder, "--pattern", PATTERN, "-o", tmp_path / "exp", "--json")
    assert import_outcome.code == 0, import_outcome.err
    result = json.loads(import_outcome.out)
    assert (result["rows"], result["cells"], result["rows_failed"]) == (4, 4, 1)
    assert {"profile_without_power", "damaged_file"} <= {note["code"] for note in result["diagnostics"]}
    return tmp_path / "exp"


def test_profiles_become_an_experiment_with_function_tables(joulemap, experiment, profile):
    result = joulemap("experiment", "analyze", experiment, "--json").json
    expected_times = reference_times(profile)
    cells = {tuple(cell["factors"].values()): cell for cell in result["cells"]}
    assert {("transformer_xl", "pytorch"), ("transformer_xl", "tensorflow")} <= {key[:2] for key in cells}
    for key, cell in cells.items():
        if key[:2] == ("ssd", "tensorflow"):
            assert cell["functions"] == [] and cell["n"] == 0
            continue
        assert cell["energy_j"] is None
        functions = {function_entry["name"].split(" (")[0]: function_entry for function_entry in cell["functions"]}
        calls, own_time_s, cumulative = expected_times["fibonacci"]
        assert functions["fibonacci"]["count"] == calls
        assert functions["fibonacci"]["time_s"] == pytest.approx(own_time_s)
        assert functions["fibonacci"]["cumulative_s"] == pytest.approx(cumulative)
        assert functions["fibonacci"]["energy_j"] is None
    assert "profile_without_power" in {note["code"] for note in result["diagnostics"]}


def test_functions_are_printed_and_written_as_csv(joulemap, experiment, profile):
    text = joulemap("experiment", "analyze", experiment, "--functions").out
    assert "Functions with the longest own time" in text
    assert "own time" in text and "cumulative" in text and "fibonacci" in text
    rows = list(csv.DictReader(io.StringIO(joulemap("experiment", "analyze", experiment, "--csv-functions").out)))
    row = next(row for row in rows if row["function"].startswith("fibonacci"))
    assert float(row["cumulative_s"]) == pytest.approx(reference_times(profile)["fibonacci"][2])
    assert row["energy_j"] == ""


def test_damaged_profiles_and_conflicting_options_are_refused(joulemap, profile, tmp_path):
    (tmp_path / "bad.prof").write_bytes(profile.read_bytes()[:-20])
    import_outcome = joulemap("import", "cprofile", tmp_path / "bad.prof", "-o", tmp_path / "run.joule")
    assert (
        import_outcome.code == 1
        and "not a marshal file of cProfile" in import_outcome.err
        and "cProfile -o" in import_outcome.err
    )
    assert not (tmp_path / "run.joule").exists()
    import_outcome = joulemap(
        "import", "cprofile", profile, "--pattern", "{name}.prof", "--power", tmp_path / "p.csv", "-o", "x"
    )
    assert import_outcome.code == 2 and "--power" in import_outcome.err
