// SPDX-License-Identifier: Apache-2.0
//
// The files of one recording. `record -o F` creates the folder F.d, in which every process writes its own part; at the
// end the parts are joined into F. After a crash only F.d may exist, or both: open_recording() finds them.
//
//   std::string folder = recording_folder("run.joule");       // run.joule.d
//   ... each process: RecordingWriter::create(recording_part_path(folder, source), source)
//   Result<JoinSummary> joined = join_parts(folder, "run.joule");
//   Result<std::vector<RecordingFile>> files = open_recording(paths);
//   Result<RecordingSummary> read = read_recording(*files, visitor);
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/recorded.h"
#include "recording/recording_reader.h"

namespace joulemap::recording {

// Folder of the parts of the recording `path`. For a symbolic link, it lies beside the target.
std::string recording_folder(const std::string& path);

// <folder>/<boot>-<pid>-<start>.joule: unique per process.
std::string recording_part_path(const std::string& folder, const RecordingSource& source);

// Converts a text to a part of a file name: keeps letters, digits, '-' and '_', replaces everything else by '_'.
std::string sanitize_for_file_name(std::string_view text);

struct JoinSummary {
  std::uint64_t parts = 0;       // number of joined parts
  std::uint64_t parts_left = 0;  // still being written, or unreadable; they are not removed
  std::uint64_t bytes = 0;       // size of the joined file
  Diagnostics diagnostics;       // also stored in the joined file
};

// Copies the chunks of all parts into `path` and removes the folder. The file is written in the folder and renamed, so
// it appears whole or not at all; nothing is removed before that. Parts that cannot be opened, or are still being
// written, are kept; a part without a readable chunk is removed and reported. If `path` already belongs to the same
// recording, because an earlier join was interrupted, it is kept and completed; another recording of that
// name is replaced. Unknown chunks are copied; unknown required chunks are an error. Samples are repacked into chunks
// of several seconds, which halves their size.
// `before_rename` runs when the joined file is complete, before the rename; if it fails, nothing changes.
Result<JoinSummary> join_parts(const std::string& folder, const std::string& path,
                               const std::function<Status()>& before_rename = {});

// The files that the user's paths name: recordings, recordings not yet joined (by the name of the future file), or
// folders of parts. Fails with a remedy if they belong to different recordings. The files are open: a recorder may join
// and remove the parts before or while they are read.
Result<std::vector<RecordingFile>> open_recording(std::span<const std::string> paths);

// Whether a file starts with the magic of recordings. False if it is not readable.
bool starts_with_recording_magic(const std::string& path);

// The recording ID of a file. Fails if no source definition in it is readable.
Result<std::string> recording_id_of_file(const std::string& path);

}  // namespace joulemap::recording
