"""joulemap record --probe around programs that report probing, on a machine with a simulated GPU."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from fake_nvml.truth import FakeGpu, FakeNvml
from support import read_joule

# Does what joulemap/_torch_probe.py does, without PyTorch.
PROBING_PROGRAM = """
import os, sys, time
from joulemap import _capture_interface as interface
for _ in range(3):
    interface.step()
    time.sleep(0.2)
folder = os.path.join(os.environ["JOULEMAP_RECORDING"], "probing")
os.mkdir(folder)
interface.probing(1)
depth = interface.enter(interface.child_scope(0, interface.SCOPE_MODE, "probe"))
time.sleep(2)
interface.leave_to(depth)
interface.probing(0)
if sys.argv[1] == "tidy":
    os.rmdir(folder)
"""


@pytest.fixture
def record(binaries: Path, joulemap, tmp_path):
    def run(*command: object, flags: tuple = ("--probe",)) -> dict:
        gpu = FakeGpu(power=[(0.0, 300.0)], statements=["counter_spin_us 3000"])
        nvml = FakeNvml(tmp_path, binaries / "libjoulemap-fake-nvml.so", gpu)
        environment = {**os.environ, **nvml.environment}
        file = tmp_path / "run.joule"
        outcome = joulemap("record", "--sensors", "nvml", *flags, "-o", file, "--", *command, env=environment)
        assert outcome.code == 0, outcome.err
        assert not (tmp_path / "run.joule.d").exists()

        def report(by: str) -> dict:
            result = joulemap("report", "--json", "--by", by, file)
            assert result.code == 0, result.err
            return result.json

        return report

    return run


@pytest.mark.parametrize("end", ["tidy", "untidy"])
def test_the_cost_of_probing_is_reported_separately(record, end):
    report = record(sys.executable, "-c", PROBING_PROGRAM, end)
    for report_level in ("domain", "layer", "step"):
        result = report(report_level)
        assert result["overhead"]["probe_s"] >= 2, report_level
        assert result["overhead"]["probe_j"] == pytest.approx(300 * result["overhead"]["probe_s"], rel=0.1), (
            report_level
        )
        assert "not_probed" not in {entry["code"] for entry in result["diagnostics"]}
    rows = {row["display_name"]: row for row in report("step")["rows"]}
    assert rows["probe"]["time_s"] == pytest.approx(result["overhead"]["probe_s"], rel=0.01)
    assert rows["step 2"]["time_s"] < result["elapsed_s"] - 1.9
    assert result["environment"]["probe"] == "at most 30 s"


def test_the_counter_is_read_at_its_steps_while_probing_goes_on(record, tmp_path):
    record(sys.executable, "-c", PROBING_PROGRAM, "tidy")
    lines = [line.split() for line in read_joule.dump((tmp_path / "run.joule").read_bytes())]
    counter = next(words[1] for words in lines if words[0] == "channel" and "gpu0-energy" in words)
    read_times_ns = [int(words[2]) for words in lines if words[:2] == ["sample", counter]]
    begin_ns, end_ns = (int(words[2]) for words in lines if words[0] == "mark" and words[-1] == "joulemap.probe")
    # Outside probing, at 3 ms of CPU time per read, the recorder reads the counter about once a second.
    # A busy machine may miss some of the 20 updates.
    assert sum(begin_ns <= at_ns <= end_ns for at_ns in read_times_ns) >= 10


def test_a_command_that_was_not_probed_reports_it(record):
    result = record("true", flags=("--probe-seconds", "5"))("domain")
    assert "not_probed" in {entry["code"] for entry in result["diagnostics"]}
    assert result["overhead"]["probe_s"] is None and result["overhead"]["probe_j"] is None
    result = record("true", flags=())("domain")
    assert "not_probed" not in {entry["code"] for entry in result["diagnostics"]}


@pytest.mark.parametrize("trace", ["off", "kernels"])
def test_modules_that_are_never_called_cannot_be_probed(joulemap, trace):
    outcome = joulemap("record", "--probe", "--trace", trace, "--", "true")
    assert outcome.code == 2
    assert "--probe needs modules" in outcome.err
