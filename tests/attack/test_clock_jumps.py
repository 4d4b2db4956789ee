"""The wall clock is set while a recording runs: energies and times stay correct, and every loss has a diagnostic."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fake_nvml.truth import FakeGpu, FakeNvml

WATTS = 300.0
# CLOCK_REALTIME jumps once, by JUMP_S seconds, 0.7 s after the program starts.
CLOCK_SHIM_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
static int (*real)(clockid_t, struct timespec*);
static double seconds(const struct timespec* t) { return t->tv_sec + 1e-9 * t->tv_nsec; }
int clock_gettime(clockid_t clock, struct timespec* out) {
  static double begin;
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  const int failed = real(clock, out);
  struct timespec now;
  real(CLOCK_MONOTONIC, &now);
  if (begin == 0) begin = seconds(&now);
  const char* jump = getenv("JUMP_S");
  if (clock == CLOCK_REALTIME && jump && seconds(&now) > begin + 0.7) out->tv_sec += atoi(jump);
  return failed;
}
"""


@pytest.fixture(scope="session")
def clock_shim(tmp_path_factory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "clock.c").write_text(CLOCK_SHIM_SOURCE)
    library = folder / "clock.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", library, folder / "clock.c", "-ldl"], check=True, timeout=60
    )
    return library


@pytest.mark.skipif("san" in os.environ.get("JOULEMAP_BUILD", ""), reason="a sanitizer's library has to come first")
@pytest.mark.parametrize("jump_s", [3600, -3600, 86400 * 365, -2, 2])
def test_a_wall_clock_that_is_set_changes_no_energy(binaries, joulemap, clock_shim, tmp_path, jump_s):
    nvml = FakeNvml(tmp_path, binaries / "libjoulemap-fake-nvml.so", FakeGpu(power=[(0.0, WATTS)]))
    environment = {**os.environ, **nvml.environment, "LD_PRELOAD": str(clock_shim), "JUMP_S": str(jump_s)}
    file = tmp_path / "run.joule"
    outcome = joulemap("record", "--sensors", "nvml", "-o", file, "--", "sleep", "2.5", env=environment)
    assert outcome.code == 0, outcome.err
    report = joulemap("report", "--json", file).json
    assert 2.4 < report["elapsed_s"] < 60
    domain = next(report_domain for report_domain in report["domains"] if report_domain["name"] == "gpu0")
    assert domain["measured_j"] == pytest.approx(WATTS * report["elapsed_s"], rel=0.03)
    time_range_report = joulemap("report", "--json", file, "--time", f"0.5,{report['elapsed_s'] - 0.2}").json
    assert time_range_report["measured_j"] == pytest.approx(WATTS * time_range_report["elapsed_s"], rel=0.05)
