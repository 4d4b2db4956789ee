// SPDX-License-Identifier: Apache-2.0
//
// TensorboardLogFolder: a folder of TensorBoard event files, new or with files of the user's own run. It adds a file
// and changes no other. Main thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace joulemap::cli {

class TensorboardLogFolder {
 public:
  // Creates the folder if it is missing. Call it before the analysis, so that a wrong path fails at once.
  static Result<TensorboardLogFolder> open(const std::string& path);

  // Whether the folder already contained event files when it was opened.
  bool is_shared() const { return is_shared_; }

  // Writes `content` to a new event file, whose name contains `host`; returns its path.
  Result<std::string> add_file(std::string_view host, std::string_view content) const;

 private:
  TensorboardLogFolder(std::string path, bool is_shared) : path_(std::move(path)), is_shared_(is_shared) {}
  std::string path_;
  bool is_shared_;
};

}  // namespace joulemap::cli
