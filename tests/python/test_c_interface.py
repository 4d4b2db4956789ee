"""The C interface: programs in C99 and C++ compiled against the header, the documentation's examples, the wheel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
STRICT_WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

HOSTILE_PROGRAM = r"""
#include <joulemap/joulemap.h>
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  jm_energy energy = {sizeof energy};
  jm_energy unsized = {0};
  jm_options unknown = {sizeof unknown, "none-such", NULL, 0};
  jm_options hasty = {sizeof hasty, NULL, NULL, 1e-9};
  struct { size_t size; double elapsed_s; double after; } old = {2 * sizeof(size_t), 0, 42.0};
  jm_domain domain = {sizeof domain};
  jm_window window;

  assert(jm_window_wait(7, &energy) == JM_NOT_FOUND);
  assert(jm_end(0) == JM_NOT_FOUND);
  jm_window_free(12345);
  assert(jm_start(&unknown) == JM_USAGE && strstr(jm_last_error(), "none-such") != NULL);
  assert(jm_start(&hasty) == JM_USAGE);
  window = jm_begin("window");
  assert(window != 0);
  assert(jm_start(NULL) == JM_USAGE);
  assert(jm_window_wait(window, &energy) == JM_USAGE);
  assert(jm_window_peek(window, NULL) == JM_USAGE);
  assert(jm_window_peek(window, &unsized) == JM_USAGE);
  assert(jm_end(window) == JM_OK && jm_end(window) == JM_NOT_FOUND);
  assert(jm_window_wait(window, &energy) == JM_OK && energy.elapsed_s >= 0);
  assert(energy.provenance != JM_UNKNOWN || (isnan(energy.joules) && energy.reason[0] != '\0'));
  assert(jm_window_domain(energy.domains, &domain) == JM_USAGE);
  /* A program that was compiled when the structure was shorter. */
  assert(jm_window_wait(window, (jm_energy *)(void *)&old) == JM_OK && old.elapsed_s == energy.elapsed_s);
  assert(old.after == 42.0);
  jm_window_free(window);
  jm_window_free(window);
  assert(jm_window_wait(window, &energy) == JM_NOT_FOUND);
  assert(jm_region_pop() == JM_OK && jm_step(NULL) == JM_OK && jm_log("loss", 1.0) == JM_OK && jm_log(NULL, 1.0) == JM_OK);
  assert(jm_stop() == JM_OK && jm_stop() == JM_OK);
  puts("done");
  return 0;
}
"""


@pytest.fixture
def compile_and_run(binaries: Path, tmp_path: Path):
    library = binaries.parent / "lib"

    def run(source: Path, *flags: str, **environment: str) -> str:
        compiler = "g++" if source.suffix == ".cc" else "cc"
        program = tmp_path / source.stem
        command = [
            compiler,
            *STRICT_WARNINGS,
            *flags,
            f"-I{ROOT / 'include'}",
            str(source),
            f"-L{library}",
            "-ljoulemap",
            "-lm",
        ]
        subprocess.run([*command, f"-Wl,-rpath,{library}", "-o", str(program)], check=True)
        env = {**os.environ, **environment}
        process = subprocess.run([program], capture_output=True, text=True, timeout=60, env=env)
        assert process.returncode == 0, process.stderr
        return process.stdout

    return run


def extract_examples(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / "reference" / document).read_text(), re.DOTALL)


def test_misuse_of_the_c_interface_never_crashes(compile_and_run, tmp_path):
    source = tmp_path / "hostile.c"
    source.write_text(HOSTILE_PROGRAM)
    assert compile_and_run(source, "-std=c99", "-Wno-missing-field-initializers") == "done\n"


def test_the_c_example_measures(compile_and_run, sysroots):
    out = compile_and_run(ROOT / "examples" / "measure_windows.c", "-std=c99", "-Wno-missing-field-initializers", "-O2")
    assert re.search(r"^work: (\d|energy unknown)", out, re.MULTILINE)


def test_the_examples_of_the_c_document_run(compile_and_run, tmp_path):
    for language, suffix, standard in (("c", ".c", "-std=c99"), ("cpp", ".cc", "-std=c++17")):
        for number, text in enumerate(extract_examples("c-api.md", language)):
            source = tmp_path / f"{language}{number}{suffix}"
            source.write_text(text)
            compile_and_run(source, standard, "-Wno-missing-field-initializers")


def test_the_examples_of_the_python_document_run(environment):
    examples = extract_examples("python.md", "python")
    assert len(examples) >= 3
    for text in examples:
        process = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment)
        assert process.returncode == 0, process.stderr


def test_the_python_example_runs(environment):
    command = [sys.executable, str(ROOT / "examples" / "measure_windows.py")]
    process = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert process.returncode == 0, process.stderr
    assert len(re.findall(r"^epoch \d: ", process.stdout, re.MULTILINE)) == 3


def test_the_library_shows_no_name_but_its_own(binaries):
    library = binaries.parent / "lib" / "libjoulemap.so"
    symbol_listing = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    names = [line.split()[-1] for line in symbol_listing.splitlines()]
    assert names and all(name.startswith("jm_") for name in names)
    declared = re.findall(r"^JM_API .*?(jm_\w+)\(", (ROOT / "include/joulemap/joulemap.h").read_text(), re.MULTILINE)
    assert sorted(declared) == sorted(names)


SIZES = r"""
#include <joulemap/joulemap.h>
#include <stdio.h>
int main(void) {
  printf("%zu %zu %zu %zu\n", sizeof(jm_options), sizeof(jm_energy), sizeof(jm_domain), sizeof(jm_diagnostic));
  return 0;
}
"""


def test_the_structures_of_the_package_are_those_of_the_header(compile_and_run, tmp_path, environment):
    source = tmp_path / "sizes.c"
    source.write_text(SIZES)
    names = "_OptionsStructure, _EnergyStructure, _DomainStructure, _DiagnosticStructure"
    program = f"import ctypes\nfrom joulemap._library import {names}\nprint(*map(ctypes.sizeof, ({names})))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert result.stdout == compile_and_run(source, "-std=c99"), result.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """A wheel of the build under test. Its binaries need this machine's libraries; `make dist` makes a portable one."""
    build = ROOT / os.environ.get("JOULEMAP_BUILD", "build")
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, ROOT / "tools/make_wheel.py", "--build", build, "--out", out], check=True)
    return next(out.glob("joulemap-*-cp39-abi3-*.whl"))


def test_the_wheel_installs_into_a_fresh_environment_and_works(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel], check=True)
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    program = "import joulemap as jm\nwith jm.measure('x') as m: pass\nprint(m.seconds >= 0, jm.__file__)"
    result = subprocess.run(
        [python, "-c", program], capture_output=True, text=True, check=True, env=clean, cwd=tmp_path
    )
    assert result.stdout.startswith("True") and "site-packages" in result.stdout
    for command in ([tmp_path / "venv/bin/joulemap"], [python, "-m", "joulemap"]):
        version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True, env=clean)
        assert re.search(r"\d+\.\d+\.\d+", version.stdout)
    checked = subprocess.run([python, "-m", "pip", "check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_the_same_build_makes_the_same_wheel(wheel, tmp_path):
    build = ROOT / os.environ.get("JOULEMAP_BUILD", "build")
    subprocess.run([sys.executable, ROOT / "tools/make_wheel.py", "--build", build, "--out", tmp_path], check=True)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()
