#!/bin/sh
# The tests of `make test`, of what is built: unit tests, structure, programs. All of them run, also after a failure, and each
# runs once: there are no second tries. With a folder as argument the results are written there, too, as JUnit's XML.
cd "$(dirname "$0")/.." || exit 2
python=${PYTHON:-build/venv/bin/python}
if [ -n "$1" ]; then
    mkdir -p "$1" || exit 2
    unit="--output-junit $(realpath "$1")/unit.xml"
    programs="--junitxml $1/programs.xml"
    real_time="--junitxml $1/real_time.xml"
fi
failed=0
# Programs under test wait for one another and for sensors: with two workers for each processor it is kept busy.
workers=$(($(nproc) * 2))

ctest --preset dev --output-on-failure -j"$workers" --no-tests=error $unit || failed=1
"$python" tools/check_layers.py || failed=1
"$python" tools/check_sizes.py || failed=1
"$python" tools/check_words.py || failed=1
"$python" tools/check_comment_names.py || failed=1
"$python" -m pytest -q -n "$workers" --dist loadfile -m "not real_time" $programs tests || failed=1
# Alone: beside other tests they would see the machine's other load. The group may be empty (5).
"$python" -m pytest -q -m real_time $real_time tests || [ $? = 5 ] || failed=1
exit $failed
