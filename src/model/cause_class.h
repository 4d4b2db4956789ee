// SPDX-License-Identifier: Apache-2.0
//
// Why a function, operation or kernel uses energy: it computes, moves memory, launches work, or waits. The ledger
// infers the cause from what ran there (attribution/ledger/cause_evidence.h), or else from names used by CUDA, cuDNN,
// PyTorch, TensorFlow and JAX. Plain data, pure functions; seconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace joulemap {

enum class CauseClass : std::uint8_t { compute, memory, launch, synchronisation };
inline constexpr std::array<CauseClass, 4> kCauseClasses = {CauseClass::compute, CauseClass::memory, CauseClass::launch,
                                                            CauseClass::synchronisation};
enum class CauseBasis : std::uint8_t { ledger, name };

// An amount for each class, in seconds or joules.
class AmountByCause {
 public:
  double& operator[](CauseClass cause) { return amounts_[static_cast<std::size_t>(cause)]; }
  double operator[](CauseClass cause) const { return amounts_[static_cast<std::size_t>(cause)]; }
  void add(const AmountByCause& other, double share = 1);
  double sum() const;
  // The class with the largest amount; the first of equals.
  CauseClass largest_class() const;

 private:
  std::array<double, kCauseClasses.size()> amounts_{};
};

// The class with the largest part of a row's time.
struct Cause {
  CauseClass largest_class = CauseClass::compute;
  CauseBasis basis = CauseBasis::ledger;  // evidence for `largest`
  AmountByCause times_s = {};             // sums to the time of the row
};

// Returns nothing when the name matches no rule.
std::optional<CauseClass> cause_class_from_name(std::string_view name);
// Assigns all of the time to the class of the name, or to compute when the name matches no rule.
Cause cause_from_name(std::string_view name, double time_s);

std::string_view to_string(CauseClass cause);
std::string_view to_string(CauseBasis basis);
std::optional<CauseClass> parse_cause_class(std::string_view text);

}  // namespace joulemap
