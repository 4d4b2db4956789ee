// SPDX-License-Identifier: Apache-2.0
//
// RecordingWriter: writes the data of one process to its .joule file. Owned by the recorder or by the capture of a
// process; one thread. Times are CLOCK_MONOTONIC nanoseconds.
//
//   Result<RecordingWriter> writer = RecordingWriter::create(recording_part_path(folder, source), source);
//   writer->set_channels(sampler.channels());
//   writer->add(sample);                  // buffers only
//   Status written = writer->flush();     // about once a second
//   Status ended = writer->finish(end);
//
// Flushed data survives the death of the process. If a flush fails (a full disk), the file is truncated to its last
// whole chunk, the unwritten data is dropped and counted, and the next flush tries again. A recording with a gap is
// better than none, and memory must not grow until the disk has space. finish() records the losses.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/activity.h"
#include "model/engine_step.h"
#include "model/kernel_power.h"
#include "model/recorded.h"
#include "model/sample.h"
#include "recording/activity_encoder.h"
#include "recording/chunk.h"
#include "recording/chunk_file.h"
#include "recording/record_codec.h"
#include "recording/sample_codec.h"

namespace joulemap::recording {

enum class Durability : std::uint8_t {
  on_disk,
  not_synced,  // not synced: data that a crash of the machine loses can be imported again
};

class RecordingWriter {
 public:
  // `time_unit_log2`: see sample_codec.h; 0 makes times of activity exact, too. Fails if the file exists.
  static Result<RecordingWriter> create(const std::string& path, RecordingSource source,
                                        unsigned time_unit_log2 = kSampleTimeUnitLog2);

  // Call once, before the first sample; Sample::channel is an index into this list.
  void set_channels(std::span<const Channel> channels);

  void add(const Sample& sample);  // skipped samples are not recorded
  void add(const ClockPair& pair) { pending_samples_.clock_pairs.push_back(pair); }
  void add(Mark mark);
  void add(Metric metric);
  void add(EnvironmentFact fact);
  void add(ChannelCalibration calibration);
  void add(KernelPower kernel_power);
  void add(const EngineSteps& steps);
  void add(Activity activity) { add(activity_encoder_.encode(std::move(activity))); }
  // Adds activity that another thread encoded with an encoder from activity_encoder().
  void add(EncodedActivity activity);
  ActivityEncoder activity_encoder() const {
    return ActivityEncoder(activity_time_unit_log2(pending_samples_.time_unit_log2));
  }

  // Number of items waiting for a flush.
  std::size_t pending_item_count() const;

  // Writes all pending items. Tries all of them and returns the first error.
  Status flush();

  // Flushes, writes the end chunk and syncs the file, unless `durability` is not_synced. Add nothing afterwards.
  Status finish(RecordingEnd end, Durability durability = Durability::on_disk);

  const std::string& path() const { return chunk_file_.path(); }
  std::uint64_t bytes_written() const { return chunk_file_.size(); }
  std::uint64_t lost_samples() const { return lost_samples_; }
  std::uint64_t lost_event_count() const {
    return lost_event_count_;
  }  // marks, metrics, clocks, facts; chunks of activity

 private:
  RecordingWriter(ChunkFile file, RecordingSource source, unsigned time_unit_log2);

  static unsigned activity_time_unit_log2(unsigned time_unit_log2);
  bool is_definition_due() const;
  Status write_definition();
  Status write_samples();
  Status write_events();
  Status write_facts();
  Status write_powers();
  Status write_engine_steps();
  Status write_activity();
  Status append(ChunkType type, const std::string& payload);
  Status append(const std::string& chunk);
  void count_failed_write(const Error& error);

  ChunkFile chunk_file_;
  ActivityEncoder activity_encoder_;
  formats::ZstdCompressor compressor_;
  SourceDefinition source_definition_;
  SampleBatch pending_samples_;
  std::vector<EventBatch> pending_event_batches_;  // each fits into a chunk
  std::vector<FactBatch> pending_fact_batches_;
  std::vector<KernelPower> pending_kernel_powers_;
  std::vector<std::string> pending_engine_payloads_;  // payloads
  std::vector<std::string> pending_activity_chunks_;  // encoded chunks
  std::size_t last_events_bytes_ = 0;
  std::size_t last_facts_bytes_ = 0;

  unsigned definitions_written_ = 0;
  unsigned flushes_since_definition_ = 0;
  std::uint64_t lost_samples_ = 0;
  std::uint64_t lost_event_count_ = 0;
  std::uint64_t failed_writes_ = 0;
  std::string last_write_error_;
};

}  // namespace joulemap::recording
