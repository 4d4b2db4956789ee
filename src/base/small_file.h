// SPDX-License-Identifier: Apache-2.0
//
// Reading files of sysfs and procfs: small, made by the kernel at each read, gone at any moment. Every error names
// the path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap {

// The error for an errno of a system call on a path: "open /sys/...: Permission denied".
Error system_error(std::string_view action, std::string_view path, int error_number);

Result<FileDescriptor> open_for_reading(const std::string& path);

// The whole content. A file larger than 1 MiB is malformed: nothing we read this way is.
Result<std::string> read_small_file(const std::string& path);

// At most the first `most_bytes`: for /proc/cpuinfo, which takes the kernel long to write on a large machine.
Result<std::string> read_file_start(const std::string& path, std::size_t most_bytes);

// A path that names something in a folder: relative, and without "..".
bool is_path_beneath(std::string_view path);

// The same of a regular file in `folder`, for which is_path_beneath holds. No symbolic link below `folder` is followed.
Result<std::string> read_file_beneath(const std::string& folder, std::string_view path, std::size_t most_bytes);

// Names in a directory, without "." and "..", sorted so that numbers inside names count as numbers: zone:2 before
// zone:10.
Result<std::vector<std::string>> list_directory(const std::string& path);

// The order of list_directory.
bool natural_less(std::string_view a, std::string_view b);

bool file_exists(const std::string& path);

// The last part of what a symbolic link points to ("0000:03:00.0" for a hwmon's device); empty when it is none.
std::string link_target_name(const std::string& path);

}  // namespace joulemap
