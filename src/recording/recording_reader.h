// SPDX-License-Identifier: Apache-2.0
//
// Reads recordings front to back and hands what they hold to a visitor, in bounded memory however long they are. Damage
// costs the chunks it hit and is told in the summary; only what cannot be a recording at all, or needs a newer
// joulemap, is an error. Nothing a file says makes it crash, allocate or loop without bound. One thread; the visitor is
// borrowed.
//
// Several sources (processes) make up a recording. Each gets a number, and its channels get numbers of their own
// after those of the sources before it, so one table of channels serves all of them.
//
// - Samples of one channel come in order of time; one that goes back is dropped and counted.
// - A source that an earlier file held already is not read again (a join that crashed before it removed the parts).
// - Where two sources of one boot sampled the same channel of the same device, the later one's samples that fall into the
//   span the earlier one covers are dropped and counted: they would be joules added twice.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/activity.h"
#include "model/kernel_power.h"
#include "model/recorded.h"
#include "model/sample.h"
#include "recording/byte_source.h"

namespace joulemap::recording {

class RecordingVisitor {
 public:
  virtual ~RecordingVisitor() = default;
  // `source` counts from 0. Each is announced once, with its channels, before anything else of it.
  virtual void on_source(std::uint32_t /*source*/, const RecordingSource&) {}
  // They have the numbers first_channel, first_channel + 1, ...: what Sample::channel counts in.
  virtual void on_channels(std::uint32_t /*source*/, std::uint32_t /*first_channel*/, std::span<const Channel>) {}
  virtual void on_samples(std::uint32_t /*source*/, std::span<const Sample>) {}
  virtual void on_clock(std::uint32_t /*source*/, const ClockPair&) {}
  virtual void on_mark(std::uint32_t /*source*/, const Mark&) {}
  virtual void on_metric(std::uint32_t /*source*/, const Metric&) {}
  virtual void on_fact(std::uint32_t /*source*/, const EnvironmentFact&) {}
  virtual void on_calibration(std::uint32_t /*source*/, const ChannelCalibration&) {}
  // What the kernel library knew when it was made.
  virtual void on_power(std::uint32_t /*source*/, const KernelPower&) {}
  // A stretch of it. Places and classes may be named after they were used, and again at the end.
  virtual void on_activity(std::uint32_t /*source*/, const Activity&) {}
  virtual void on_end(std::uint32_t /*source*/, const RecordingEnd&) {}  // its diagnostics are not in the summary
};

struct RecordingSummary {
  std::string recording_id;
  int major = 0;  // the newest version that wrote any of it
  int minor = 0;
  std::uint64_t sources = 0;
  std::uint64_t samples = 0;  // handed out
  std::uint64_t bytes = 0;    // of all files
  std::uint64_t chunks_read = 0;
  std::uint64_t chunks_skipped = 0;   // of a type that we do not know
  std::uint64_t chunks_repeated = 0;  // held by an earlier file, or a definition again
  std::uint64_t damaged_places = 0;
  std::uint64_t damaged_bytes = 0;
  bool ended = false;  // every source says how it ended
  Diagnostics diagnostics;
};

// One file.
Result<RecordingSummary> read_recording(const std::string& path, RecordingVisitor& visitor);
// Anything with bytes; `name` is what messages call it.
Result<RecordingSummary> read_recording(ByteSource& bytes, std::string_view name, RecordingVisitor& visitor);

struct RecordingFile {
  std::string path;
  // Written by one process of a recording that was not joined. Such a file may be empty or ruined: its process was
  // killed. That is told, and the others are read.
  bool is_part = false;
};
// All files of one recording, in that order (recording_parts.h finds them).
Result<RecordingSummary> read_recording(std::span<const RecordingFile> files, RecordingVisitor& visitor);

}  // namespace joulemap::recording
