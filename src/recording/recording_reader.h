// SPDX-License-Identifier: Apache-2.0
//
// Reads recordings sequentially and passes their content to a visitor, in bounded memory for any length. Damage loses
// only the affected chunks and is reported in the summary. Only a file that is not a recording, or needs a newer
// joulemap, is an error. No content makes the reader crash, allocate or loop without bound. One thread; the visitor is
// borrowed.
//
// A recording consists of several sources (processes). Each source has a number. Its channels are numbered after those
// of the sources before it, so one table of channels covers all sources.
//
// - Samples of one channel arrive in time order; a sample that goes back in time is dropped and counted.
// - A source that an earlier file contained is not read again: a join that crashed leaves parts beside the joined file.
// - If two sources of one boot sampled the same channel of the same device, samples of the later source within the time
//   span of the earlier one are dropped and counted. They would count joules twice.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/result.h"
#include "model/activity.h"
#include "model/engine_step.h"
#include "model/kernel_power.h"
#include "model/recorded.h"
#include "model/sample.h"
#include "recording/byte_source.h"

namespace joulemap::recording {

class RecordingVisitor {
 public:
  virtual ~RecordingVisitor() = default;
  // `source` counts from 0. Each source is announced once, with its channels, before its other content.
  virtual void on_source(std::uint32_t /*source*/, const RecordingSource&) {}
  // The channels have the numbers first_channel, first_channel + 1, ..., which Sample::channel uses.
  virtual void on_channels(std::uint32_t /*source*/, std::uint32_t /*first_channel*/, std::span<const Channel>) {}
  virtual void on_samples(std::uint32_t /*source*/, std::span<const Sample>) {}
  virtual void on_clock(std::uint32_t /*source*/, const ClockPair&) {}
  virtual void on_mark(std::uint32_t /*source*/, const Mark&) {}
  virtual void on_metric(std::uint32_t /*source*/, const Metric&) {}
  virtual void on_fact(std::uint32_t /*source*/, const EnvironmentFact&) {}
  virtual void on_calibration(std::uint32_t /*source*/, const ChannelCalibration&) {}
  // An entry of the kernel library at the time of recording.
  virtual void on_power(std::uint32_t /*source*/, const KernelPower&) {}
  // Activity of one time interval. Definitions of scopes and classes may follow their use, and may repeat at the end.
  virtual void on_activity(std::uint32_t /*source*/, const Activity&) {}
  // Forward steps of a serving engine. Requests are defined before their first use.
  virtual void on_engine_steps(std::uint32_t /*source*/, const EngineSteps&) {}
  virtual void on_end(std::uint32_t /*source*/, const RecordingEnd&) {}  // its diagnostics are not in the summary
};

struct RecordingSummary {
  std::string recording_id;
  int major = 0;  // the newest format version in the files
  int minor = 0;
  std::uint64_t sources = 0;
  std::uint64_t samples = 0;  // passed to the visitor
  std::uint64_t bytes = 0;    // size of all files
  std::uint64_t chunks_read = 0;
  std::uint64_t chunks_skipped = 0;   // of an unknown type
  std::uint64_t chunks_repeated = 0;  // sources of an earlier file, and repeated definitions
  std::uint64_t damaged_ranges = 0;
  std::uint64_t damaged_bytes = 0;
  bool all_sources_ended = false;  // every source has an end chunk
  Diagnostics diagnostics;
};

// Reads one file.
Result<RecordingSummary> read_recording(const std::string& path, RecordingVisitor& visitor);
// Reads any byte source; `name` names it in messages.
Result<RecordingSummary> read_recording(ByteSource& bytes, std::string_view name, RecordingVisitor& visitor);

struct RecordingFile {
  std::string path;
  // Written by one process of a recording that is not joined. Such a file may be empty or damaged if its process was
  // killed. The summary reports that, and the other files are read.
  bool is_part = false;
  // Null: opened when it is read. open_recording() opens the files when it lists them, because a recorder that joins
  // its parts removes them.
  std::shared_ptr<const OpenFile> open_file = nullptr;
};
// Reads all files of one recording, in that order (recording_parts.h finds them).
Result<RecordingSummary> read_recording(std::span<const RecordingFile> files, RecordingVisitor& visitor,
                                        const ProgressCallback& on_progress = {});

}  // namespace joulemap::recording
