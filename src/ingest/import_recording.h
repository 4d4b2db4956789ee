// SPDX-License-Identifier: Apache-2.0
//
// ImportSession converts traces and power logs of other tools into a recording with the structure that `record` writes:
// one process per trace, a recorder with the samples, and marks of the interval that both cover. Times are Unix
// nanoseconds: the monotonic clock and the wall clock of the recording are the same. Main thread.
//
//   Result<ImportSession> session = ImportSession::begin(options, std::move(power));
//   Status added = session->add(std::move(trace), "trace.json");
//   Result<ImportResult> result = session->finish();
//
// - A GPU's number in a trace is its NVML index (gpu0, gpu1), unless `gpu_mappings` has another or the trace contains a
//   UUID that is also in the power log.
// - A trace without absolute times begins at `trace_start_ns`, else where the power log begins, with a diagnostic.
// - A trace has no CPU time: the wall time of a thread in a scope replaces it, with a diagnostic if the power log has
//   domains other than GPUs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ingest/cprofile/cprofile.h"
#include "ingest/power_csv/power_log.h"
#include "ingest/trace.h"
#include "model/import_result.h"
#include "recording/part_folder.h"
#include "scopes/module_names.h"

namespace joulemap::ingest {

struct ImportOptions {
  std::string output_path;           // an existing recording of that name becomes output_path.old
  std::vector<std::string> command;  // command line of the import
  scopes::ModuleNames module_names;
  // Domain of a GPU, "gpu1", by index of the trace (nullopt: every trace) and ordinal of the GPU in it.
  std::map<std::pair<std::optional<std::size_t>, std::uint32_t>, std::string> gpu_mappings;
  std::int64_t trace_offset_ns = 0;            // added to the times of traces
  std::optional<std::int64_t> trace_start_ns;  // start of traces without a clock, Unix ns
  std::size_t thread_count = 0;                // 0: number of cores; the result does not depend on it
  std::size_t trace_count = 1;                 // of several traces, those that overlap in time are ranks of one run
};

class ImportSession {
 public:
  static Result<ImportSession> begin(ImportOptions options, PowerLog power);

  // `name` identifies the trace in messages.
  Status add(Trace trace, const std::string& name);
  // A profile has sums of one thread: it becomes one interval with the calls and own times of its functions.
  Status add(const FunctionProfile& profile, const std::string& name);
  Result<ImportResult> finish();
  // Removes the parts written so far, instead of finish().
  void remove_written_parts() { recording_folder_.remove(); }

 private:
  struct TimeSpan_ns {
    std::int64_t begin_ns;
    std::int64_t end_ns;
  };
  ImportSession(ImportOptions options, PowerLog power, recording::PartFolder folder);

  RecordingSource make_trace_source(const Trace* trace) const;
  std::int64_t assumed_start_ns(const std::string& name);
  void shift_to_unix_time(Trace& trace, const std::string& name);
  void map_gpus_to_devices(Trace& trace);
  void report_unused_mappings();
  void extend_traced_span(TimeSpan_ns span);
  bool is_unnumbered_rank(const Trace& trace, TimeSpan_ns span) const;
  TimeSpan_ns intersect_traces_and_power();
  void report_uncovered_time(const std::string& domain, TimeSpan_ns limits, TimeSpan_ns covered);
  std::optional<TimeSpan_ns> find_domain_span(const std::string& domain) const;
  void exclude_domains(const std::vector<std::string>& domains);
  Status write_recorder_part();

  ImportOptions options_;
  PowerLog power_log_;
  recording::PartFolder recording_folder_;
  std::set<std::pair<std::optional<std::size_t>, std::uint32_t>> used_mappings_;  // keys of options_.gpu_mappings
  std::size_t trace_count_ = 0;
  std::optional<TimeSpan_ns> traced_span_;             // from the first to the last event of all traces
  std::optional<std::int64_t> first_power_sample_ns_;  // first power sample, Unix ns
  Diagnostics import_diagnostics_;                     // without the diagnostics of the traces
  ImportResult import_result_;
};

}  // namespace joulemap::ingest
