#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Forks children while threads read the GPU's counter: checks that none hangs and that they can measure the GPU.

    PYTHONPATH=build/python bench/h200/fork_windows.py [--forks 300]

Prints a table. Exit code 1 when a child hung or failed, or when more than one in a hundred read no GPU. About a minute.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import statistics
import sys
import threading
import time
import warnings

import joulemap as jm

HANG_TIMEOUT_S = 30
MAX_UNMEASURED_FRACTION = 0.01


def measure_until_stopped(stop_event: threading.Event) -> None:
    while not stop_event.is_set():
        with jm.measure("parent") as window:
            time.sleep(0.002)
        window.peek()


def run_child(write_end: int) -> None:
    faulthandler.dump_traceback_later(HANG_TIMEOUT_S, exit=True)  # prints the traceback of a hang
    with jm.measure("child") as window:
        time.sleep(0.02)
    domains = [domain for domain in window.wait().domains if domain.name.startswith("gpu")]
    gpus = {domain.name: domain.reason if domain.joules is None else domain.joules for domain in domains}
    os.write(write_end, json.dumps(gpus).encode())
    os._exit(0)


def fork_once() -> tuple[float, int, dict]:
    """Returns seconds spent in fork(), the child's exit code, and the child's GPU readings."""
    read_end, write_end = os.pipe()
    begin_s = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        run_child(write_end)
    took_s = time.perf_counter() - begin_s
    os.close(write_end)
    text = os.read(read_end, 65536)
    os.close(read_end)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return took_s, code, json.loads(text) if text else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--forks", type=int, default=300)
    forks = parser.parse_args().forks
    warnings.simplefilter("ignore", DeprecationWarning)
    jm.start()
    stop_event = threading.Event()
    threads = [threading.Thread(target=measure_until_stopped, args=(stop_event,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    fork_results = [fork_once() for _ in range(forks)]
    stop_event.set()
    for thread in threads:
        thread.join()
    failed_exit_codes = [code for _, code, _ in fork_results if code != 0]
    unmeasured_forks = [
        gpus for _, code, gpus in fork_results if code == 0 and not any(isinstance(j, float) for j in gpus.values())
    ]
    fork_times_ms = sorted(1000 * took_s for took_s, _, _ in fork_results)
    print(f"{'forks':>8} {'hung or failed':>15} {'read no GPU':>12} {'fork median':>12} {'fork P99':>10}")
    p99_ms = fork_times_ms[min(len(fork_times_ms) - 1, int(0.99 * len(fork_times_ms)))]
    print(
        f"{forks:8} {len(failed_exit_codes):15} {len(unmeasured_forks):12} "
        f"{statistics.median(fork_times_ms):9.2f} ms {p99_ms:7.2f} ms"
    )
    for gpus in unmeasured_forks[:3]:
        print(f"  read no GPU: {gpus}")
    return 1 if failed_exit_codes or len(unmeasured_forks) > MAX_UNMEASURED_FRACTION * forks else 0


if __name__ == "__main__":
    sys.exit(main())
