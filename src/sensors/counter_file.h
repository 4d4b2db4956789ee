// SPDX-License-Identifier: Apache-2.0
//
// CounterFile: a sysfs file that contains one integer, kept open and read with pread. Allocates nothing after open.
//
// The kernel generates a sysfs text for each read, so one read suffices. Any other file (a fake or simulated machine, a
// file bound into a container) may be seen half-written: there two consecutive reads must agree, an empty or malformed
// text is retried briefly, and a file that was replaced under the same name is reopened.
#pragma once

#include <cstdint>
#include <string>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "model/reading.h"

namespace joulemap::sensors {

class CounterFile {
 public:
  static Result<CounterFile> open(const std::string& path);

  Reading read() noexcept;
  const std::string& path() const { return path_; }

 private:
  CounterFile(std::string path, FileDescriptor fd, bool is_kernel_generated)
      : path_(std::move(path)), fd_(std::move(fd)), is_pseudo_file_(is_kernel_generated) {}

  ReadCode read_value_once(std::uint64_t& raw_value) noexcept;
  ReadCode read_until_stable(std::uint64_t& raw_value) noexcept;
  // Called after a failed read or an unchanged value: if the open file was deleted, opens the file that now has its
  // path.
  enum class ReopenOutcome { unchanged, reopened, gone };
  ReopenOutcome reopen_if_replaced(ReadCode& error) noexcept;

  std::string path_;
  FileDescriptor fd_;
  bool is_pseudo_file_;
  std::uint64_t last_raw_value_ = 0;
};

// Opens the file and reads it once. Fails with an error that names the path if it does not contain an integer.
Result<CounterFile> open_counter_file(const std::string& path);

}  // namespace joulemap::sensors
