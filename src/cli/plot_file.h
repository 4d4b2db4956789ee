// SPDX-License-Identifier: Apache-2.0
//
// PlotFile: the destination of a plot: a file whose extension is its format (.svg, .png, .pdf), or stdout. joulemap
// writes SVG; rsvg-convert of librsvg converts it to PNG and PDF, if installed. Main thread; waits for rsvg-convert.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/output.h"

namespace joulemap::cli {

class PlotFile {
 public:
  // Call it before the analysis, so that a wrong path fails at once. An empty path is stdout, as SVG. Fails if stdout
  // is a terminal, the format is not available, or the path is one of `inputs`.
  static Result<PlotFile> open(const std::string& path, std::span<const std::string> inputs);
  Status write(std::string_view svg);

 private:
  PlotFile(std::string kind, CommandOutput output) : file_format_(std::move(kind)), output_file_(std::move(output)) {}
  std::string file_format_;
  CommandOutput output_file_;
};

}  // namespace joulemap::cli
