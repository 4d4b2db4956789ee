// SPDX-License-Identifier: Apache-2.0
#include "scopes/cause_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace joulemap::scopes {
namespace {

struct Rule {
  std::string_view part;  // substring in lower case
  CauseClass cause;
};

// The first rule whose substring occurs in the name applies: cudaMemcpyAsync copies, cudaStreamSynchronize waits.
constexpr std::array<Rule, 31> kRules = {{
    {"synchroniz", CauseClass::synchronisation},
    {"barrier", CauseClass::synchronisation},
    {"_local_scalar_dense", CauseClass::synchronisation},  // tensor.item() waits in it
    {"run_backward", CauseClass::synchronisation},         // the caller waits for autograd's own thread
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

std::optional<CauseClass> cause_class_from_name(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  for (const Rule& rule : kRules) {
    if (lower.find(rule.part) != std::string::npos) return rule.cause;
  }
  return std::nullopt;
}

Cause cause_from_name(std::string_view name, double time_s) {
  Cause cause{cause_class_from_name(name).value_or(CauseClass::compute), CauseBasis::name};
  cause.times_s[cause.largest_class] = time_s;
  return cause;
}

std::optional<CauseClass> parse_cause_class(std::string_view text) {
  for (const CauseClass cause : kCauseClasses) {
    if (to_string(cause) == text) return cause;
  }
  return std::nullopt;
}

}  // namespace joulemap::scopes
