// SPDX-License-Identifier: Apache-2.0
//
// OutputFile: the one way in which a result reaches a file that a user named. The content is written beside the target,
// synced and renamed: a full disk, a signal or a crash leaves the older file as it was, and readers see one or the other.
//
//   Result<OutputFile> file = OutputFile::open("report.txt", inputs);   // before the work starts
//   Status written = file->replace_content(text);
//
// - A new file is only for its owner (base/private_files.h).
// - A symbolic link stays: the file it points to is replaced. A link or file that another user may have
//   planted is refused.
// - Permissions and owner of the older file stay; hard links do not: other names keep the older content.
// - What is no regular file (pipes, FIFOs, terminals, /dev/full) and what procfs names (/dev/stdout, /dev/fd/3) is
//   written directly; a regular file behind such a name gets the content at its end.
// - An input is never an output, by whatever name.
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
  // Creates nothing. `inputs`: files that must not be replaced, folders in which nothing may be written; "-" is stdin.
  static Result<OutputFile> open(const std::string& path, std::span<const std::string> inputs = {});
  Status replace_content(std::string_view content);

 private:
  OutputFile(std::string path, std::string target, FileDescriptor direct)
      : path_(std::move(path)), target_(std::move(target)), direct_(std::move(direct)) {}

  std::string path_;       // as the user named it
  std::string target_;     // where its links lead
  FileDescriptor direct_;  // closed where the target is replaced
};

// Both at once.
Status replace_file(const std::string& path, std::string_view content);

// A file of our own in a folder that others may write to: a link in its place is replaced, not followed.
Status replace_own_file(const std::string& path, std::string_view content);

// An error of usage where writing to `output` would destroy one of `inputs`, as OutputFile::open refuses it.
Status check_not_input(const std::string& output, std::span<const std::string> inputs);

// An error of usage where another user may have planted a link or a file: /tmp/out -> /etc/passwd.
Status refuse_planted(const std::string& path);

// Where the symbolic links lead that `path` itself is, if it is one. What they point to need not exist.
// Stops at a planted one.
std::string resolve_links(const std::string& path);

}  // namespace joulemap
