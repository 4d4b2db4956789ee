// SPDX-License-Identifier: Apache-2.0
//
// ImportSession: traces and power of other tools become a recording, the same as `record` makes: a process for each trace, a
// recorder that has the samples, and marks that say where both are known. Times are Unix nanoseconds: the two clocks of the
// recording are one. Main thread.
//
//   Result<ImportSession> session = ImportSession::begin(options, std::move(power));
//   Status added = session->add(std::move(trace), "trace.json");
//   Result<ImportResult> result = session->finish();
//
// - A GPU's number in a trace is taken for NVML's (gpu0, gpu1), unless `gpu_of` says otherwise or the UUIDs tell.
// - A trace whose clock is not known begins at `start_ns`, else where the power begins, which is told.
// - A trace tells no CPU time: a thread's time at a place is taken for it, which is told where CPUs have power.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ingest/power_csv/power_log.h"
#include "ingest/trace.h"
#include "model/import_result.h"
#include "recording/part_folder.h"
#include "scopes/module_names.h"

namespace joulemap::ingest {

struct ImportOptions {
  std::string file;                  // an older one of that name is kept as FILE.old
  std::vector<std::string> command;  // how it was made
  ModuleNames modules;
  // By trace (none: all of them) and ordinal: "gpu1".
  std::map<std::pair<std::optional<std::size_t>, std::uint32_t>, std::string> gpu_of;
  std::int64_t offset_ns = 0;            // added to the times of traces
  std::optional<std::int64_t> start_ns;  // when traces without a clock began
  std::size_t threads = 0;               // 0: as the machine has cores. What is written does not depend on it
};

class ImportSession {
 public:
  static Result<ImportSession> begin(ImportOptions options, PowerLog power);

  // `name`: what messages call it.
  Status add(Trace trace, const std::string& name);
  Result<ImportResult> finish();
  // As if nothing had happened.
  void abandon() { folder_.remove(); }

 private:
  struct Span {
    std::int64_t begin_ns;
    std::int64_t end_ns;
  };
  ImportSession(ImportOptions options, PowerLog power, recording::PartFolder folder);

  RecordingSource source_of(const Trace* trace) const;
  void set_clock(Trace& trace, const std::string& name);
  void name_gpus(Trace& trace);
  void tell_unused_mappings();
  void cover(Span span);
  Span overlap();
  std::optional<Span> span_of_domain(const std::string& domain) const;
  void leave_out_domains(const std::vector<std::string>& domains);
  Status write_recorder();

  ImportOptions options_;
  PowerLog power_;
  recording::PartFolder folder_;
  std::set<std::pair<std::optional<std::size_t>, std::uint32_t>> used_mappings_;  // keys of options_.gpu_of
  std::size_t traces_ = 0;
  std::optional<Span> covered_;           // by the traces
  std::optional<std::int64_t> power_ns_;  // when it begins
  Diagnostics own_;                       // but for what traces tell of themselves
  ImportResult result_;
};

}  // namespace joulemap::ingest
