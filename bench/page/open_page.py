"""Measures the time to write and to open the page of a large recording, beside the report that it contains.

    make build && build/venv/bin/python bench/page/open_page.py [--markdown bench/page/figures.md]

Uses a synthetic training of 2.7 million kernels (tests/web/made_recording.cc). The time to write is a ratio to
`report --by layer` of the same file, in turns. The time to open lasts from navigation until everything is drawn, in
headless Chromium.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BINARIES = ROOT / "build" / "bin"
RECORDING_SHAPE = ("2700", "125", "4")  # steps, layers, kernels per layer and pass
ROUNDS = 5
OPENING_TIME_SCRIPT = "performance.now()"
BENCHMARK_NOTE = (
    "By `bench/page/open_page.py`: a made-up training of 2.7 million kernels; medians of five rounds in turns, on a machine "
    "that others use at the same time; the page is opened in headless Chromium."
)


def time_command(*command: object) -> tuple[float, float]:
    """Returns wall time and CPU time, s."""
    initial_usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    wall_s = time.monotonic() - begin
    final_usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, final_usage.ru_utime + final_usage.ru_stime - initial_usage.ru_utime - initial_usage.ru_stime


def measure_opening_s(page: Path) -> float | None:
    """Median time to open over fresh pages, s; None without a browser."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    opening_times_s = []
    with sync_playwright() as playwright_session:
        browser = playwright_session.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(ROUNDS):
            browser_page = browser.new_page(viewport={"width": 1440, "height": 900})
            browser_page.goto(page.as_uri())
            browser_page.wait_for_selector("html[data-ready]")
            opening_times_s.append(browser_page.evaluate(OPENING_TIME_SCRIPT) / 1e3)
            browser_page.close()
        browser.close()
    return statistics.median(opening_times_s)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--markdown", type=Path, help="file for a section of build/benchmarks.md (bench/peers/document.py)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recording, page = Path(folder) / "large.joule", Path(folder) / "large.html"
        subprocess.run([BINARIES / "joulemap-made-recording", recording, *RECORDING_SHAPE], check=True)
        layers, pages = [], []
        for _ in range(ROUNDS):
            layers.append(time_command(BINARIES / "joulemap", "report", "--by", "layer", recording))
            pages.append(time_command(BINARIES / "joulemap", "report", "--html", page, recording))
        ratio = statistics.median(page_times[1] / theirs[1] for page_times, theirs in zip(pages, layers))
        print(f"{recording.stat().st_size / 1e6:.1f} MB of recording, 2.7 million kernels")
        lines = ["## The report and its page\n", f"{BENCHMARK_NOTE}\n", "| | time | CPU time |\n|---|---:|---:|"]
        for name, rounds in (("report --by layer", layers), ("report --html", pages)):
            wall_s, cpu_s = (statistics.median(part) for part in zip(*rounds))
            print(f"{name:18} {wall_s:6.2f} s, {cpu_s:.2f} s of CPU")
            lines.append(f"| `{name}` | {wall_s:.2f} s | {cpu_s:.2f} s |")
        print(f"the page takes {ratio:.2f} times the CPU time of the report; {page.stat().st_size / 1e6:.2f} MB")
        opened_s = measure_opening_s(page)
        print("not opened: no Chromium or Playwright" if opened_s is None else f"opened in {opened_s:.2f} s")
        size = f"is {page.stat().st_size / 1e6:.2f} MB large (bar: 6 MB)."
        lines.append(f"\nThe page takes {ratio:.2f} times the CPU time of the report and {size}")
        if opened_s is not None:
            lines.append(f"It is drawn {opened_s:.2f} s after it was asked for (bar: 2 s).")
        if options.markdown:
            options.markdown.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
