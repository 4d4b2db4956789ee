// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/small_file.h"
#include "ingest/trace_file.h"
#include "ingest/xplane/xplane_trace.h"

namespace joulemap::ingest {
namespace {

std::vector<std::string> list_profiles(const std::string& folder) {
  const Result<std::vector<std::string>> names = list_directory(folder);
  std::vector<std::string> profiles;
  if (!names) return profiles;
  for (const std::string& name : *names) {
    if (name.ends_with(".xplane.pb")) profiles.push_back(folder + "/" + name);
  }
  return profiles;
}

// A run's folder is named after its creation time, so the last one is the newest.
std::vector<std::string> find_newest_profiles(const std::string& folder) {
  std::vector<std::string> folder_profiles = list_profiles(folder);
  if (!folder_profiles.empty()) return folder_profiles;
  const std::string runs = folder + "/plugins/profile";
  const Result<std::vector<std::string>> names = list_directory(runs);
  if (!names) return {};
  for (auto name = names->rbegin(); name != names->rend(); ++name) {
    if (std::vector<std::string> profiles = list_profiles(runs + "/" + *name); !profiles.empty()) return profiles;
  }
  return {};
}

}  // namespace

Result<Trace> read_xplane_trace(const std::string& path) {
  std::string file = path;
  std::vector<std::string> profiles;
  if (std::error_code unknown; std::filesystem::is_directory(path, unknown)) {
    profiles = find_newest_profiles(path);
    if (profiles.empty()) {
      return Error{ErrorCode::not_found, fmt::format("{}: contains no plugins/profile/<run>/*.xplane.pb", path),
                   "pass the log folder of the profiler"};
    }
    file = profiles.front();
  }
  Result<TraceBytes> bytes = read_trace_file(file);
  if (!bytes) return std::move(bytes).error();
  Result<Trace> trace = read_xplane_trace_bytes(bytes->view());
  if (!trace) return std::move(trace).error().with_context(file);
  bytes->report_damage(trace->diagnostics);
  if (profiles.size() > 1) {
    trace->diagnostics.add(
        {"profiles_left_out", profiles.size() - 1,
         fmt::format("xplane: the run has profiles of {} hosts; only {} was read", profiles.size(), file),
         "pass the files to import all of them"});
  }
  return trace;
}

}  // namespace joulemap::ingest
