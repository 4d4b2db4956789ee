// SPDX-License-Identifier: Apache-2.0
//
// A host: a fresh process whose threads measure, from their first window on, while others of its threads fork.
#pragma once

#include <cstdint>

// Forks that many children and returns the exit code of the process: 0 when none hung or failed.
int run_host(int forks, std::uint64_t seed);
