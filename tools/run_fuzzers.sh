#!/usr/bin/env bash
# Runs every libFuzzer target for the given number of seconds, starting from its corpus. New inputs stay under build/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
for target in build/fuzz/bin/fuzz_*; do
  name=${target##*/fuzz_}
  found=build/fuzz/found/$name
  mkdir -p "$found"
  echo "fuzz: $name for $seconds s"
  "$target" -max_total_time="$seconds" -max_len=4096 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="$found/" "$found" "fuzz/corpus/$name" 2>&1 |
    grep -E 'SUMMARY|ERROR|stat::number_of_executed_units|stat::average_exec|bug at' || true
  [[ ${PIPESTATUS[0]} -eq 0 ]] || { echo "fuzz: $name found something in $found" >&2; exit 1; }
done
