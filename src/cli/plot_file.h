// SPDX-License-Identifier: Apache-2.0
//
// PlotFile: the destination of a plot: a file whose extension is its format (.svg, .png, .pdf), or stdout. Joulemap
// writes SVG; rsvg-convert, a program of librsvg, converts it to PNG and PDF if installed. Main thread; waits for that
// program.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/output.h"

namespace joulemap::cli {

class PlotFile {
 public:
  // Called before the work. Fails for a terminal, a format that is not available here, or an input as destination. An
  // empty path is stdout.
  static Result<PlotFile> open(const std::string& path, std::span<const std::string> inputs);
  Status write(std::string_view svg);

 private:
  PlotFile(std::string kind, Output output) : format_(std::move(kind)), output_(std::move(output)) {}
  std::string format_;
  Output output_;
};

}  // namespace joulemap::cli
