// SPDX-License-Identifier: Apache-2.0
#include "model/cause_class.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <string>

namespace joulemap {
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

void AmountByCause::add(const AmountByCause& other, double share) {
  for (std::size_t i = 0; i < amounts_.size(); ++i) amounts_[i] += share * other.amounts_[i];
}

double AmountByCause::sum() const { return std::accumulate(amounts_.begin(), amounts_.end(), 0.0); }

CauseClass AmountByCause::largest_class() const {
  return kCauseClasses[static_cast<std::size_t>(std::max_element(amounts_.begin(), amounts_.end()) - amounts_.begin())];
}

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

std::string_view to_string(CauseBasis basis) { return basis == CauseBasis::ledger ? "ledger" : "name"; }

std::optional<CauseClass> parse_cause_class(std::string_view text) {
  for (const CauseClass cause : kCauseClasses) {
    if (to_string(cause) == text) return cause;
  }
  return std::nullopt;
}

}  // namespace joulemap
