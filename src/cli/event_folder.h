// SPDX-License-Identifier: Apache-2.0
//
// A folder of event files, as TensorBoard shows it: a new one, or the user's own, where a file is added and none is touched.
// Main thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace joulemap::cli {

class EventFolder {
 public:
  // Made where it is not there yet, so that a wrong path is told before the work starts.
  static Result<EventFolder> open(const std::string& path);

  // Event files of others lie in it.
  bool is_shared() const { return is_shared_; }

  // Under a name that is not taken; returns its path.
  Result<std::string> add_file(std::string_view host, std::string_view content) const;

 private:
  EventFolder(std::string path, bool is_shared) : path_(std::move(path)), is_shared_(is_shared) {}
  std::string path_;
  bool is_shared_;
};

}  // namespace joulemap::cli
