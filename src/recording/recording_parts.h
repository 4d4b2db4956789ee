// SPDX-License-Identifier: Apache-2.0
//
// The files of one recording. `record -o F` makes the folder F.d, where every process writes a part of its own; at the
// end the parts are joined into F. After a crash there may be F.d alone, or both: open_recording() finds what is there.
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

// Where the parts of the recording `path` are written. Of a symbolic link, beside what it points to.
std::string recording_folder(const std::string& path);

// <folder>/<boot>-<pid>-<start>.joule: no two processes have the same.
std::string recording_part_path(const std::string& folder, const RecordingSource& source);

// A text as a part of a file name: letters, digits, '-' and '_'; everything else becomes '_'.
std::string as_file_name(std::string_view text);

struct JoinSummary {
  std::uint64_t parts = 0;       // joined
  std::uint64_t parts_left = 0;  // still being written, or unreadable; they stay where they are
  std::uint64_t bytes = 0;       // of the joined file
  Diagnostics diagnostics;       // also recorded in the joined file
};

// Copies the chunks of all parts into `path` and removes the folder. The file appears whole or not at all (it is written
// in the folder and renamed); nothing is removed before that. Parts that cannot be read stay where they are. If `path`
// already is of the same recording, because an earlier join was cut off, it is kept and completed; another recording of
// that name is replaced. Unknown chunks are copied; those that must be understood are an error. Samples are packed again,
// several seconds to a chunk: half the size.
// `make_room` is called when the joined file is complete, before it takes its name; where that fails, nothing changes.
Result<JoinSummary> join_parts(const std::string& folder, const std::string& path,
                               const std::function<Status()>& make_room = {});

// The files behind what a user names: recordings, their names before they were joined, or folders of parts. An error
// that says what to do when they belong to different recordings.
Result<std::vector<RecordingFile>> open_recording(std::span<const std::string> paths);

// Whether a file begins as recordings do. Not so where it cannot be read.
bool has_recording_magic(const std::string& path);

// The id of the recording a file belongs to.
Result<std::string> recording_id_of(const std::string& path);

}  // namespace joulemap::recording
