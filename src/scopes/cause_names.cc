// SPDX-License-Identifier: Apache-2.0
#include "scopes/cause_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace joulemap::scopes {
namespace {

struct CauseNameRule {
  std::string_view name_part;  // substring in lower case
  EnergyCauseClass cause_class;
};

// The first rule whose substring occurs in the name applies: cudaMemcpyAsync copies, cudaStreamSynchronize waits.
constexpr std::array<CauseNameRule, 31> kCauseNameRules = {{
    {"synchroniz", EnergyCauseClass::synchronization},
    {"barrier", EnergyCauseClass::synchronization},
    {"_local_scalar_dense", EnergyCauseClass::synchronization},  // tensor.item() waits for the GPU
    {"run_backward", EnergyCauseClass::synchronization},         // the caller waits for autograd's own thread
    {"nccl", EnergyCauseClass::synchronization},
    {"allreduce", EnergyCauseClass::synchronization},
    {"all_reduce", EnergyCauseClass::synchronization},
    {"allgather", EnergyCauseClass::synchronization},
    {"all_gather", EnergyCauseClass::synchronization},
    {"eventquery", EnergyCauseClass::synchronization},
    {"wait", EnergyCauseClass::synchronization},
    {"memcpy", EnergyCauseClass::memory},
    {"memset", EnergyCauseClass::memory},
    {"cudamalloc", EnergyCauseClass::memory},
    {"cudafree", EnergyCauseClass::memory},
    {"cudahostalloc", EnergyCauseClass::memory},
    {"copy", EnergyCauseClass::memory},
    {"contiguous", EnergyCauseClass::memory},
    {"clone", EnergyCauseClass::memory},
    {"nchwtonhwc", EnergyCauseClass::memory},
    {"nhwctonchw", EnergyCauseClass::memory},
    {"transpose", EnergyCauseClass::memory},
    {"pin_memory", EnergyCauseClass::memory},
    {"zero_", EnergyCauseClass::memory},
    {"fill", EnergyCauseClass::memory},
    {"collate", EnergyCauseClass::memory},
    {"dataloader", EnergyCauseClass::memory},
    {"launchkernel", EnergyCauseClass::launch},
    {"graphlaunch", EnergyCauseClass::launch},
    {"launch", EnergyCauseClass::launch},
    {"enqueue", EnergyCauseClass::launch},
}};

}  // namespace

std::optional<EnergyCauseClass> cause_class_from_name(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  for (const CauseNameRule& rule : kCauseNameRules) {
    if (lower.find(rule.name_part) != std::string::npos) return rule.cause_class;
  }
  return std::nullopt;
}

EnergyCause make_cause_from_name(std::string_view name, double time_s) {
  EnergyCause cause{cause_class_from_name(name).value_or(EnergyCauseClass::compute), CauseBasis::name};
  cause.times_s[cause.largest_class] = time_s;
  return cause;
}

std::optional<EnergyCauseClass> parse_cause_class(std::string_view text) {
  for (const EnergyCauseClass cause : kCauseClasses) {
    if (to_string(cause) == text) return cause;
  }
  return std::nullopt;
}

}  // namespace joulemap::scopes
