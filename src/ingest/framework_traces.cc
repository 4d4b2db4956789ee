// SPDX-License-Identifier: Apache-2.0
#include "ingest/framework_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "base/clock.h"
#include "base/small_file.h"
#include "base/text.h"
#include "ingest/onnxruntime/onnxruntime_op_times.h"
#include "ingest/trace_sidecar.h"
#include "ingest/xplane/xplane_op_times.h"

namespace joulemap::ingest {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSidecarSuffix = ".meta";
constexpr std::string_view kXPlaneSuffix = ".xplane.pb";
constexpr std::string_view kOnnxRuntimeSuffix = ".onnxruntime.json";
// Largest trace of one step, in bytes; a larger file is from a profiler that was not stopped.
constexpr std::size_t kMaxTrace_bytes = std::size_t{1} << 29;
constexpr std::size_t kMaxSidecar_bytes = std::size_t{1} << 26;

// Returns the mode ("train" or "inference") to add to the coarse scope of a trace; empty if the scope has one. A
// function that was compiled as a whole has none: operations of a backward pass show that it trains.
std::string find_missing_mode_scope(const TraceSidecar& note, const OpTimes& trace_op_times) {
  for (const auto& [kind, name] : note.coarse_scope) {
    if (kind == ScopeKind::mode) return {};
  }
  const bool is_training_program = std::any_of(trace_op_times.op_times.begin(), trace_op_times.op_times.end(),
                                               [](const OpTime& share) { return share.scope.phase == "backward"; });
  return is_training_program ? "train" : "inference";
}

// Sums the operation times of several traces by coarse scope and scope.
class FrameworkOpTimeSums {
 public:
  void add(const TraceSidecar& note, const OpTimes& trace_op_times) {
    std::uint32_t coarse_scope = 0;
    for (const auto& [kind, name] : note.coarse_scope) coarse_scope = find_or_add_scope(coarse_scope, kind, name);
    const std::uint32_t mode_scope =
        find_or_add_scope(coarse_scope, ScopeKind::mode, find_missing_mode_scope(note, trace_op_times));
    for (const OpTime& share : trace_op_times.op_times) {
      std::uint32_t scope = find_or_add_scope(mode_scope, ScopeKind::phase, share.scope.phase);
      scope = find_or_add_scope(scope, ScopeKind::module, share.scope.module);
      scope = find_or_add_scope(scope, ScopeKind::op, share.scope.op);
      scope = find_or_add_scope(scope, ScopeKind::tensors, share.scope.tensors);
      ScopeShare& sum = time_by_scope_[{coarse_scope, scope}];
      sum.coarse_scope = coarse_scope;
      sum.scope = scope;
      sum.count += share.count;
      sum.time_ns += share.time_ns;
    }
  }

  void finish(Activity& activity) {
    activity.scopes = std::move(scopes_);
    for (const auto& [scopes, sum] : time_by_scope_) activity.shares.push_back(sum);
  }

 private:
  // Returns the id of the child scope, created at the first call; the parent for an empty name.
  std::uint32_t find_or_add_scope(std::uint32_t parent, ScopeKind kind, const std::string& name) {
    if (name.empty()) return parent;
    const auto new_scope_id = static_cast<std::uint32_t>(scopes_.size() + 1);
    const auto [slot, is_new] = scope_ids_.try_emplace({parent, kind, name}, new_scope_id);
    if (is_new) scopes_.push_back({new_scope_id, parent, kind, to_valid_utf8(name)});
    return slot->second;
  }

  std::map<std::tuple<std::uint32_t, ScopeKind, std::string>, std::uint32_t> scope_ids_;
  std::vector<Scope> scopes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, ScopeShare> time_by_scope_;
};

Result<std::string> read_whole_file(const std::string& path) {
  Result<std::string> bytes = read_file_start(path, kMaxTrace_bytes + 1);
  if (bytes && bytes->size() > kMaxTrace_bytes)
    return Error{ErrorCode::malformed, path + " is larger than 512 MiB", {}};
  return bytes;
}

Result<OpTimes> read_framework_trace(const std::string& stem, const TraceSidecar& note) {
  const std::string json = stem + std::string(kOnnxRuntimeSuffix);
  const bool is_json = file_exists(json);
  Result<std::string> bytes = read_whole_file(is_json ? json : stem + std::string(kXPlaneSuffix));
  if (!bytes) return std::move(bytes).error();
  return is_json ? read_onnxruntime_op_times(*bytes) : read_xplane_op_times(*bytes, note.graph_names);
}

}  // namespace

FrameworkActivity read_framework_traces(const std::string& folder) {
  FrameworkActivity result;
  const Result<std::vector<std::string>> names = list_directory(folder);
  if (!names) return result;  // no framework was profiled
  FrameworkOpTimeSums shares;
  std::int64_t traced_ns = 0;
  std::int64_t time_with_scope_ns = 0;
  const auto note_failure = [&](const Error& error) {
    result.diagnostics.add({"trace_not_read", 1, error.message, "the layers of those steps are unknown"});
  };
  for (const std::string& name : *names) {
    if (!name.ends_with(kSidecarSuffix)) continue;
    const std::string stem = folder + "/" + name.substr(0, name.size() - kSidecarSuffix.size());
    const Result<std::string> text = read_file_start(folder + "/" + name, kMaxSidecar_bytes);
    if (!text) {
      note_failure(text.error());
      continue;
    }
    const TraceSidecar note = parse_trace_sidecar(*text);
    const Result<OpTimes> trace_op_times = read_framework_trace(stem, note);
    if (!trace_op_times) {
      note_failure(trace_op_times.error());
      continue;
    }
    shares.add(note, *trace_op_times);
    result.diagnostics.add_all(trace_op_times->diagnostics);
    traced_ns += trace_op_times->time_ns();
    time_with_scope_ns += trace_op_times->time_with_scope_ns();
  }
  shares.finish(result.activity);
  result.activity.begin_ns = result.activity.end_ns = monotonic_ns();
  if (traced_ns > 0) {
    result.diagnostics.add(
        {"layers_from_profiler", 1,
         fmt::format("layers of compiled graphs come from the framework's profiler in sampled "
                     "steps; {:.1f} % of its operation time has a layer",
                     100.0 * static_cast<double>(time_with_scope_ns) / static_cast<double>(traced_ns)),
         ""});
  }
  std::error_code removal_error;  // files that cannot be removed stay beside the recording
  fs::remove_all(folder, removal_error);
  return result;
}

}  // namespace joulemap::ingest
