// SPDX-License-Identifier: Apache-2.0
#include "report/cause_class.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace joulemap::report {
namespace {

struct Rule {
  std::string_view part;  // in lower case
  CauseClass cause;
};

// The first that the name holds decides: cudaMemcpyAsync copies, cudaStreamSynchronize waits.
constexpr std::array<Rule, 30> kRules = {{
    {"synchroniz", CauseClass::synchronisation},
    {"barrier", CauseClass::synchronisation},
    {"_local_scalar_dense", CauseClass::synchronisation},  // what tensor.item() waits in
    {"nccl", CauseClass::synchronisation},
    {"allreduce", CauseClass::synchronisation},
    {"all_reduce", CauseClass::synchronisation},
    {"allgather", CauseClass::synchronisation},
    {"all_gather", CauseClass::synchronisation},
    {"eventquery", CauseClass::synchronisation},
    {"wait", CauseClass::synchronisation},
    {"memcpy", CauseClass::memory},
    {"memset", CauseClass::memory},
    {"cudamalloc", CauseClass::memory},
    {"cudafree", CauseClass::memory},
    {"cudahostalloc", CauseClass::memory},
    {"copy", CauseClass::memory},
    {"contiguous", CauseClass::memory},
    {"clone", CauseClass::memory},
    {"nchwtonhwc", CauseClass::memory},
    {"nhwctonchw", CauseClass::memory},
    {"transpose", CauseClass::memory},
    {"pin_memory", CauseClass::memory},
    {"zero_", CauseClass::memory},
    {"fill", CauseClass::memory},
    {"collate", CauseClass::memory},
    {"dataloader", CauseClass::memory},
    {"launchkernel", CauseClass::launch},
    {"graphlaunch", CauseClass::launch},
    {"launch", CauseClass::launch},
    {"enqueue", CauseClass::launch},
}};

}  // namespace

CauseClass cause_of(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  for (const Rule& rule : kRules) {
    if (lower.find(rule.part) != std::string::npos) return rule.cause;
  }
  return CauseClass::compute;
}

std::string_view to_string(CauseClass cause) {
  switch (cause) {
    case CauseClass::compute:
      return "compute";
    case CauseClass::memory:
      return "memory";
    case CauseClass::launch:
      return "launch";
    case CauseClass::synchronisation:
      return "synchronisation";
  }
  return "";
}

}  // namespace joulemap::report
