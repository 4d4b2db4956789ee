// SPDX-License-Identifier: Apache-2.0
//
// OutputFile: writes every result that goes to a file named by the user. It writes a temporary file beside the target,
// syncs it and renames it. After a full disk, a signal or a crash, the old file is unchanged; readers see the old or
// the new content.
//
//   Result<OutputFile> file = OutputFile::open("report.txt", inputs);   // before the work starts
//   Status written = file->replace_content(text);
//
// - Only the owner can access a new file (base/private_files.h).
// - A symbolic link is kept: the file that it points to is replaced. A link or file that another user may have planted
//   is refused.
// - Permissions and owner of the old file are kept. Hard links are not: other names keep the old content.
// - Targets that are not regular files (pipes, FIFOs, terminals, /dev/full) or are named through procfs (/dev/stdout,
//   /dev/fd/3) are written directly. A regular file behind a procfs name is appended to.
// - A file that is an input is never written, whatever its name.
// Main thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace joulemap {

class OutputFile {
 public:
  // Creates nothing. `inputs`: files that must not be replaced and folders that must not be written into; "-" is stdin.
  static Result<OutputFile> open(const std::string& path, std::span<const std::string> inputs = {});
  Status replace_content(std::string_view content);

 private:
  OutputFile(std::string path, std::string target, FileDescriptor direct_fd)
      : path_(std::move(path)), target_(std::move(target)), direct_fd_(std::move(direct_fd)) {}

  std::string path_;          // as given by the user
  std::string target_;        // after resolving symbolic links
  FileDescriptor direct_fd_;  // not open if the target is replaced
};

// Opens and replaces in one call.
Status replace_file(const std::string& path, std::string_view content);

// Replaces a file of our own in a folder that others can write to: a link of that name is replaced, not followed.
Status replace_file_nofollow(const std::string& path, std::string_view content);

// Fails with ErrorCode::usage if writing to `output` would destroy one of `inputs`. OutputFile::open calls it.
Status check_output_is_not_input(const std::string& output, std::span<const std::string> inputs);

// Fails with ErrorCode::usage if another user may have planted the link or file: /tmp/out -> /etc/passwd.
Status check_trusted_file_owner(const std::string& path);

// Follows the chain of symbolic links that starts at `path`. The final target need not exist. Stops at a planted link.
std::string resolve_links(const std::string& path);

}  // namespace joulemap
