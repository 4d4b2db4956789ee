#!/usr/bin/env bash
# Runs every libFuzzer target for the given number of seconds, starting from its corpus. New inputs stay under build/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
for target in build/fuzz/bin/fuzz_*; do
  name=${target##*/fuzz_}
  found=build/fuzz/found/$name
  log=build/fuzz/$name.log
  mkdir -p "$found"
  echo "fuzz: $name for $seconds s"
  if ! "$target" -max_total_time="$seconds" -max_len=4096 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="$found/" "$found" "fuzz/corpus/$name" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "fuzz: $name failed; the input is in $found, the log in $log" >&2
    exit 1
  fi
  grep -E 'stat::number_of_executed_units|cov:' "$log" | tail -n 2
done
