// SPDX-License-Identifier: Apache-2.0
//
// ProgressLine: shows on stderr how much of a long piece of work is done and how long the rest takes. Work that ends
// within a second shows nothing; neither does a pipe, nor -q. The destructor clears the line. One owner; the callback
// may be called from any thread, one call at a time.
#pragma once

#include <cstdint>
#include <string>

#include "base/progress.h"
#include "cli/command.h"

namespace joulemap::cli {

class ProgressLine {
 public:
  // `what` is done: "reading trace.json".
  ProgressLine(std::string what, const CommandLine& line);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // For the work; `this` must outlive it. Empty if nothing is to be shown.
  ProgressCallback callback();

 private:
  void show(double share);

  std::string what_;
  bool is_shown_;  // stderr is a terminal, and not -q
  std::int64_t began_ns_;
  std::int64_t drawn_ns_ = 0;  // 0: not yet
};

}  // namespace joulemap::cli
