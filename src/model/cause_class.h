// SPDX-License-Identifier: Apache-2.0
//
// Why a function, operation or kernel uses energy: it computes, moves memory, launches work, or waits. The ledger
// infers the cause from the recorded kernels and calls (attribution/ledger/cause_evidence.h), or else from the name, by
// the naming conventions of CUDA, cuDNN, PyTorch, TensorFlow and JAX (scopes/cause_names.h). Plain data; seconds.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

namespace joulemap {

enum class EnergyCauseClass : std::uint8_t { compute, memory, launch, synchronization };
inline constexpr std::array<EnergyCauseClass, 4> kCauseClasses = {
    EnergyCauseClass::compute, EnergyCauseClass::memory, EnergyCauseClass::launch, EnergyCauseClass::synchronization};
// Evidence for a cause: recorded kernels and calls (ledger), or only the name.
enum class CauseBasis : std::uint8_t { ledger, name };

// An amount for each class, in seconds or joules.
class AmountByCause {
 public:
  double& operator[](EnergyCauseClass cause) { return amounts_[static_cast<std::size_t>(cause)]; }
  double operator[](EnergyCauseClass cause) const { return amounts_[static_cast<std::size_t>(cause)]; }
  void add(const AmountByCause& other_amounts, double share = 1) {
    for (std::size_t i = 0; i < amounts_.size(); ++i) amounts_[i] += share * other_amounts.amounts_[i];
  }
  double sum() const { return std::accumulate(amounts_.begin(), amounts_.end(), 0.0); }
  // The class with the largest amount; the first of equals.
  EnergyCauseClass largest_class() const {
    return kCauseClasses[static_cast<std::size_t>(std::ranges::max_element(amounts_) - amounts_.begin())];
  }

 private:
  std::array<double, kCauseClasses.size()> amounts_{};
};

// The causes of a row's time.
struct EnergyCause {
  EnergyCauseClass largest_class = EnergyCauseClass::compute;
  CauseBasis basis = CauseBasis::ledger;
  AmountByCause times_s = {};  // sums to the time of the row
};

constexpr std::string_view to_string(EnergyCauseClass cause) {
  // The British spelling stays, because published JSON contains it.
  constexpr std::array<std::string_view, kCauseClasses.size()> kNames = {"compute", "memory", "launch",
                                                                         "synchronisation"};
  return kNames.at(static_cast<std::size_t>(cause));
}
constexpr std::string_view to_string(CauseBasis basis) { return basis == CauseBasis::ledger ? "ledger" : "name"; }

}  // namespace joulemap
