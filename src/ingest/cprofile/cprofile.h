// SPDX-License-Identifier: Apache-2.0
//
// Reads profiles of Python's cProfile (`python -m cProfile -o FILE`, pstats' dump_stats): a table of functions with
// calls, own and cumulative time. A profile has sums only: neither the start of the run nor the time of a call is known,
// and only the thread that started the profiler is in it. Time in C libraries and on the GPU belongs to the built-in
// function that the Python code called. Seconds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/diagnostics.h"
#include "model/experiment_data.h"

namespace joulemap::ingest {

inline constexpr std::string_view kCprofileFormat = "cprofile";

struct ProfiledFunction {
  std::string name;                        // "forward (train/model.py:12)", or of a built-in "time.sleep"
  std::uint64_t call_count = 0;            // recursive calls included
  std::uint64_t recursive_call_count = 0;  // part of `call_count`
  double self_s = 0;                       // without the functions that it called
  double cumulative_s = 0;                 // with them; recursive calls count once
};

struct FunctionProfile {
  std::vector<ProfiledFunction> functions;  // in descending order of own time
  double total_s = 0;                       // sum of own times: duration of the profiled code
  Diagnostics diagnostics;                  // damaged functions, which are left out
};

// Fails if the bytes are not a profile. The short path of a function's file is its last two parts.
Result<FunctionProfile> parse_cprofile(std::string_view bytes);
Result<FunctionProfile> read_cprofile(const std::string& path);  // also gzip

// Whether a file with this start may be a profile.
bool is_cprofile(std::string_view start);

struct ProfileExperimentOptions {
  std::vector<std::string> inputs;  // profiles, or folders that are searched for them
  // Pattern of file names: "{model}_{framework:pytorch|tensorflow}_{pass}.prof".
  std::string pattern;
};

// One row per profile, factors from the file names. The time of a row is that of the profile; its energy is unknown,
// with a reason. Fails if no file matches. A file that is no profile becomes a failed row.
Result<ExperimentData> read_profile_experiment(const ProfileExperimentOptions& options);

}  // namespace joulemap::ingest
