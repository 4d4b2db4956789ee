// SPDX-License-Identifier: Apache-2.0
//
// Where a plot goes: a file whose name says its kind (.svg, .png, .pdf), or stdout. SVG is ours; PNG and PDF are made
// of it by rsvg-convert, a program of librsvg, where it is installed. Main thread; it waits for that program.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/output.h"

namespace joulemap::cli {

class PictureFile {
 public:
  // Before the work is done: not to a terminal, not to a kind that cannot be made here, not over an input. An empty path:
  // stdout.
  static Result<PictureFile> open(const std::string& path, std::span<const std::string> inputs);
  Status write(std::string_view svg);

 private:
  PictureFile(std::string kind, Output output) : kind_(std::move(kind)), output_(std::move(output)) {}
  std::string kind_;
  Output output_;
};

}  // namespace joulemap::cli
