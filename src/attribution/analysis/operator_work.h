// SPDX-License-Identifier: Apache-2.0
//
// OperatorWork: what a recording ran, by operation, shape and kernel, whatever its modules are called.
//
// Operations and their shapes are recorded in sampled steps only, kernels in all traced steps. In a sampled step each
// kernel of a module belongs to one operation: its energy in all steps is divided among these operations in the same
// proportions. The compared part of a run may contain no sampled step, so the proportions come from the whole run. A
// kernel of a recomputed module has those of the forward pass. Work without a known operation is classified by its
// kernel. Pure; joules and seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/report_result.h"
#include "scopes/operation_kinds.h"
#include "scopes/operation_shapes.h"

namespace joulemap::attribution {

struct OperatorWork {
  std::string device;
  std::string phase;  // "forward", "backward", "recompute", "optimizer" ...; empty: none
  scopes::OperationKind kind = scopes::OperationKind::unknown;
  scopes::OperationShape shape;
  std::string operation;  // name as recorded; empty: unknown
  std::string kernel;     // demangled; empty on a CPU
  std::string precision;  // empty: unknown
  double energy_j = 0;
  std::optional<double> half_width_j;  // of the interval; none when unknown
  double time_s = 0;
  std::optional<double> count;  // calls, or launches of the kernel
};

// `rows`: the compared part of the run, `whole_run_report`: the whole run, both at level work.
std::vector<OperatorWork> collect_operator_work(const ReportResult& rows, const ReportResult& whole_run_report);

}  // namespace joulemap::attribution
