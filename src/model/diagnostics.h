// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics: what was wrong with the data behind a result, counted, carried along with the result and
// printed by every report. A number whose diagnostics were dropped is a claim; with them it is a measurement.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap {

struct Diagnostic {
  std::string code;  // for programs: "counter_reset"
  std::uint64_t count = 1;
  std::string message;  // for people: what, where, what it means for the numbers
  std::string remedy;   // what to do about it; empty where nothing is known
};

class Diagnostics {
 public:
  // The same code and message again only counts.
  void add(Diagnostic diagnostic) {
    for (Diagnostic& known : list_) {
      if (known.code == diagnostic.code && known.message == diagnostic.message) {
        known.count += diagnostic.count;
        return;
      }
    }
    list_.push_back(std::move(diagnostic));
  }
  void add_all(const Diagnostics& other) {
    for (const Diagnostic& diagnostic : other.list_) add(diagnostic);
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
