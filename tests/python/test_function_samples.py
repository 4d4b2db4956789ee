"""Periodic samples of the Python function that a recorded program executes."""

from __future__ import annotations

BUSY_PROGRAM = """
import random, threading, time
import torch

def augment():
    end = time.thread_time() + 1.0
    while time.thread_time() < end:
        sum(range(1000))

random.seed(3)
augment()
print(random.random(), [thread.name for thread in threading.enumerate()])
"""


def test_samples_of_a_busy_function_are_proportional_to_its_time(record):
    part = record(BUSY_PROGRAM).part
    function_times_ns = {}
    for line in part.of("share"):
        _, coarse_scope_id, place, count, time_ns = map(int, line.split())
        name = part.path(place)[-1]
        function_times_ns[name] = function_times_ns.get(name, 0) + time_ns
    assert function_times_ns["__main__.augment"] > 0.5e9, function_times_ns


def test_the_sampling_thread_is_invisible_to_the_program(record):
    import random

    random.seed(3)
    assert record(BUSY_PROGRAM).out.strip() == f"{random.random()} ['MainThread']"
