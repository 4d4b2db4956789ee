// SPDX-License-Identifier: Apache-2.0
//
// The ground truth of the simulated machine, as CSV files that truth.py reads:
//
//   truth.csv             monotonic_ns,cpu_s,package-0,core-0,dram-0,...: one row per tick; energies in joules since
//                         the start, before quantisation, wrap and faults
//   truth_operations.csv  monotonic_ns,cpu_s,NAME.cpu_s,NAME.energy_j,NAME.dynamic_j,...: every 50 ms, with operations
//   truth_processes.csv   pid,comm,cpu_s,joules_package: one row per process, written at the end
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "busy_time.h"

namespace joulemap::simulated {

class TruthLog {
 public:
  static Result<TruthLog> create(std::string path, const std::vector<std::string>& domains);

  // Rows reach the file within 100 ms, always whole.
  Status append(std::int64_t tick_ns, double cpu_s, const std::vector<double>& energies_j);
  Status flush();

 private:
  TruthLog(std::string path, FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  FileDescriptor file_;
  std::string pending_text_;
  std::int64_t flushed_ns_ = 0;
};

Status write_process_truth(const std::string& path, const std::vector<ProcessShare>& shares);

}  // namespace joulemap::simulated
