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

Status replace_recording_atomically(const std::string& requested_path, const std::string& kind,
                                    const std::function<void(RecordingWriter&)>& add_content) {
  if (Status owner_status = check_trusted_file_owner(requested_path); !owner_status) return owner_status;
  const std::string path = resolve_links(requested_path);  // a symbolic link stays; its target is replaced
  const std::string temporary_path = fmt::format("{}.{}.tmp", path, ::getpid());
  std::error_code error;
  std::filesystem::remove(temporary_path, error);
  Result<RecordingWriter> writer = RecordingWriter::create(temporary_path, describe_this_process(kind, kind));
  if (!writer) return std::move(writer).error();
  add_content(*writer);
  if (Status finish_status = writer->finish({}); !finish_status) {
    std::filesystem::remove(temporary_path, error);
    return finish_status;
  }
  std::filesystem::rename(temporary_path, path, error);
  if (error) return Error{ErrorCode::io, fmt::format("rename {}: {}", temporary_path, error.message()), {}};
  return Done{};
}

}  // namespace joulemap::recording
