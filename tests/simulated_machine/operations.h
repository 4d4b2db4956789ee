// SPDX-License-Identifier: Apache-2.0
//
// Operations: what the processes on the simulated machine say they are doing, and what each such operation drew. A process
// announces itself in a small file that it maps: a slot of its own, with its pid and the number of its operation. Two files,
// both made beforehand by whoever starts the machine:
//
//   kinds   a line for each operation: NAME POWER MEMORY, what a CPU second of it draws against the law's, of the package
//           and of the memory above idle. Their numbers count from 0.
//   page    64 slots of 8 bytes: pid (0: free), number of the operation; in the machine's byte order
//
// What nobody announces is the operation "other", which draws as the law says. Owner: Machine; its thread.
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

// From the text of a file of kinds.
Result<std::vector<OperationKind>> parse_operation_kinds(const std::string& text);

// What an operation drew so far. A moment's idle power is shared by all who run then, by CPU time.
struct OperationEnergy {
  double cpu_s = 0;
  double energy_j = 0;   // package and memory
  double dynamic_j = 0;  // of it, above idle
};

class Operations {
 public:
  // Without files: all is "other".
  explicit Operations(std::vector<OperationKind> kinds = {}, const std::uint32_t* page = nullptr);
  static Result<Operations> open(const std::string& kinds_path, const std::string& page_path);

  // Who runs what in this tick. Charges: by process.
  void look(const std::vector<ProcessCharge>& charges);
  // What the tick's CPU seconds draw on the whole against the law's.
  LoadFactors factors() const;
  // Shares out the energy of the tick.
  void share_out(const MachinePower& power, double duration_s);

  // As the columns of the truth: all kinds, "other", "idle".
  std::vector<std::string> names() const;
  const std::vector<OperationEnergy>& energies() const { return energies_; }

 private:
  std::size_t operation_of(pid_t pid) const;
  std::size_t other() const { return kinds_.size() - 1; }

  std::vector<OperationKind> kinds_;  // the last is "other"
  const std::uint32_t* page_;         // mapped as long as the program runs
  std::vector<double> cpu_s_;         // in this tick, by kind
  std::vector<OperationEnergy> energies_;
};

}  // namespace joulemap::simulated
