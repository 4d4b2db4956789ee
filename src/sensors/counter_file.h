// SPDX-License-Identifier: Apache-2.0
//
// CounterFile: a sysfs file that holds one integer, kept open and read with pread. Allocates nothing after open.
//
// The kernel writes a sysfs text anew for each read, so one read is enough there. Any other file (a fake or
// simulated machine, a file bound into a container) can be seen half-written: there two reads in a row must agree,
// an empty or broken text is tried again for a moment, and a file that was replaced under the same name is opened
// again.
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
  CounterFile(std::string path, FileDescriptor fd, bool made_by_kernel)
      : path_(std::move(path)), fd_(std::move(fd)), made_by_kernel_(made_by_kernel) {}

  ReadCode read_once(std::uint64_t& raw) noexcept;
  ReadCode read_until_stable(std::uint64_t& raw) noexcept;
  // After a value that did not change: is this still the file of that name?
  enum class Identity { same, reopened, gone };
  Identity reopen_if_replaced(ReadCode& error) noexcept;

  std::string path_;
  FileDescriptor fd_;
  bool made_by_kernel_;
  std::uint64_t last_raw_ = 0;
};

// Opens the file and reads it once: an error that names the path when it is no counter.
Result<CounterFile> open_counter_file(const std::string& path);

}  // namespace joulemap::sensors
