// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics: problems in the data behind a result, with their counts. Every result contains its diagnostics, and
// every report prints them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap {

struct Diagnostic {
  std::string code;  // machine-readable: "counter_reset"
  std::uint64_t count = 1;
  std::string message;  // human-readable: what, where, effect on the numbers
  std::string remedy;   // what to do about it; empty when there is none
};

class Diagnostics {
 public:
  // Increments the count when the same code and message are already listed.
  void add(Diagnostic diagnostic) {
    for (Diagnostic& existing_diagnostic : list_) {
      if (existing_diagnostic.code == diagnostic.code && existing_diagnostic.message == diagnostic.message) {
        existing_diagnostic.count += diagnostic.count;
        return;
      }
    }
    list_.push_back(std::move(diagnostic));
  }
  void add_all(const Diagnostics& other_diagnostics) {
    for (const Diagnostic& diagnostic : other_diagnostics.list_) add(diagnostic);
  }

  const std::vector<Diagnostic>& list() const { return list_; }
  bool empty() const { return list_.empty(); }
  bool contains(std::string_view code) const {
    for (const Diagnostic& diagnostic : list_) {
      if (diagnostic.code == code) return true;
    }
    return false;
  }

 private:
  std::vector<Diagnostic> list_;
};

}  // namespace joulemap
