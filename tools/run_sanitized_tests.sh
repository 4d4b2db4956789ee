#!/bin/sh
# The tests of `make test-asan` and `make test-tsan`, of what is built in build/SANITIZER: run_sanitized_tests.sh asan
#
# Each unit test program runs once as a whole, not once for each test: on aarch64 LeakSanitizer takes 4 s at the end of
# every process (it walks the allocator's whole address space). For the same reason programs run without it.
cd "$(dirname "$0")/.." || exit 2
folder=build/$1
failed=0
export ASAN_OPTIONS="$ASAN_OPTIONS:detect_stack_use_after_return=1"
find "$folder/bin" -name 'joulemap_*_test' | sort | xargs -P "$(nproc)" -n 1 sh -c '
    "$0" --gtest_brief=1 >"$0.log" 2>&1 && exit 0
    cat "$0.log"; echo "$0 failed"; exit 1' || failed=1
export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
ctest --preset "$1" --output-on-failure -j"$(nproc)" --no-tests=error -LE unit || failed=1
JOULEMAP_BUILD=$folder build/venv/bin/python -m pytest -q -n "$(nproc)" --dist loadfile tests || failed=1
exit $failed
