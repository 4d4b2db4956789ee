// SPDX-License-Identifier: Apache-2.0
//
// Why a function, operation or kernel draws energy: it computes, moves memory, launches work, or waits for others. The
// ledger infers it from what ran there (attribution/ledger/cause_evidence.h), or else from names: those of CUDA, cuDNN,
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

// An amount of each class: seconds, joules.
class ByCause {
 public:
  double& operator[](CauseClass cause) { return amounts_[static_cast<std::size_t>(cause)]; }
  double operator[](CauseClass cause) const { return amounts_[static_cast<std::size_t>(cause)]; }
  void add(const ByCause& other, double share = 1);
  double sum() const;
  // The first of those with the most.
  CauseClass largest() const;

 private:
  std::array<double, kCauseClasses.size()> amounts_{};
};

// The class with the most of a row's time.
struct Cause {
  CauseClass largest = CauseClass::compute;
  CauseBasis basis = CauseBasis::ledger;  // of that class
  ByCause times_s = {};                   // together the time of the row
};

// Nothing where the name does not tell.
std::optional<CauseClass> cause_in_name(std::string_view name);
// All of the time is what the name says; a name that tells nothing is taken for computing.
Cause cause_by_name(std::string_view name, double time_s);

std::string_view to_string(CauseClass cause);
std::string_view to_string(CauseBasis basis);
std::optional<CauseClass> cause_class_of(std::string_view text);

}  // namespace joulemap
