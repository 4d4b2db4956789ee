// SPDX-License-Identifier: Apache-2.0
//
// Operations: what the processes on the simulated machine report to be doing, and the energy of each operation. A
// process reports in a small file that it maps: a slot of its own with its pid and the number of its operation. Two
// files, both created beforehand by whoever starts the machine:
//
//   kinds   a line for each operation: NAME POWER MEMORY, the power of a CPU second relative to the law, for the
//           package and for the memory, above idle. Operations are numbered from 0.
//   page    64 slots of 8 bytes: pid (0: free), number of the operation; in the machine's byte order
//
// Time that no process reports is the operation "other", with the power of the law. Owner: Machine; its thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "busy_time.h"
#include "power_law.h"

namespace joulemap::simulated {

struct OperationKind {
  std::string name;
  double power = 1;
  double memory = 1;
};

// Parses the text of a kinds file.
Result<std::vector<OperationKind>> parse_operation_kinds(const std::string& text);

// Energy of an operation so far. Idle power is attributed to all running operations in proportion to CPU time.
struct OperationEnergy {
  double cpu_s = 0;
  double energy_j = 0;   // package and memory
  double dynamic_j = 0;  // part above idle
};

class Operations {
 public:
  // Without files, everything is "other".
  explicit Operations(std::vector<OperationKind> kinds = {}, const std::uint32_t* page = nullptr);
  static Result<Operations> open(const std::string& operation_kinds_path, const std::string& operation_page_path);

  // Determines the operation of each process in this tick from the charges by process.
  void update(const std::vector<ProcessCharge>& charges);
  // Power of the tick's CPU seconds relative to the law.
  LoadFactors factors() const;
  // Attributes the energy of the tick.
  void attribute_energy(const MachinePower& power, double duration_s);

  // In the order of the truth's columns: all kinds, "other", "idle".
  std::vector<std::string> names() const;
  const std::vector<OperationEnergy>& energies() const { return energies_; }

 private:
  std::size_t find_operation(pid_t pid) const;
  std::size_t other() const { return operation_kinds_.size() - 1; }

  std::vector<OperationKind> operation_kinds_;  // the last is "other"
  const std::uint32_t* page_;                   // mapped for the lifetime of the program
  std::vector<double> cpu_s_;                   // in this tick, by kind
  std::vector<OperationEnergy> energies_;
};

}  // namespace joulemap::simulated
