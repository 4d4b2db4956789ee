// SPDX-License-Identifier: Apache-2.0
#include "recording/atomic_recording_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/output_file.h"
#include "base/private_files.h"
#include "recording/part_folder.h"

namespace joulemap::recording {

Status create_parent_folder(const std::string& path) {
  return make_private_folders(std::filesystem::path(path).parent_path().string());
}

Status replace_recording_atomically(const std::string& named, const std::string& kind,
                                    const std::function<void(RecordingWriter&)>& fill) {
  if (Status own = check_trusted_file_owner(named); !own) return own;
  const std::string path = resolve_links(named);  // a symbolic link stays; its target is replaced
  const std::string fresh = fmt::format("{}.{}.tmp", path, ::getpid());
  std::error_code error;
  std::filesystem::remove(fresh, error);
  Result<RecordingWriter> writer = RecordingWriter::create(fresh, describe_this_process(kind, kind));
  if (!writer) return std::move(writer).error();
  fill(*writer);
  if (Status written = writer->finish({}); !written) {
    std::filesystem::remove(fresh, error);
    return written;
  }
  std::filesystem::rename(fresh, path, error);
  if (error) return Error{ErrorCode::io, fmt::format("rename {}: {}", fresh, error.message()), {}};
  return Done{};
}

}  // namespace joulemap::recording
