#!/bin/sh
# Runs or resumes an experiment in FOLDER, writes results/PLAN* and the tables of README.md:
#
#   ./repeat.sh cpu FOLDER      or h200
set -e
plan=${1:?usage: ./repeat.sh cpu|h200 FOLDER}
folder=$(realpath -m "${2:?usage: ./repeat.sh cpu|h200 FOLDER}")
cd "$(dirname "$0")"
if [ -e "$folder" ]; then joulemap experiment resume "$folder"; else joulemap experiment run "$plan.toml" -o "$folder"; fi
mkdir -p results
joulemap experiment analyze "$folder" --metric training_j --adjust bh --json -o "results/$plan.json"
joulemap experiment analyze "$folder" --metric training_j --adjust bh --csv -o "results/$plan-comparisons.csv"
joulemap experiment analyze "$folder" --metric training_j --adjust bh --csv-effects -o "results/$plan-effects.csv"
joulemap experiment analyze "$folder" --csv-cells -o "results/$plan-cells.csv"
joulemap experiment analyze "$folder" --csv-epochs -o "results/$plan-epochs.csv"
python3 make_tables.py
