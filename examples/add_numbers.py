"""Adds up numbers in one of two ways: the small workload of experiment.toml."""

import sys

NUMBERS = 5_000_000

if sys.argv[1] == "builtin":
    total = sum(range(NUMBERS))
else:
    total = 0
    for number in range(NUMBERS):
        total += number
print(f"total={total}")
