// SPDX-License-Identifier: Apache-2.0
#include "recording/recording_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "recording/activity_codec.h"
#include "recording/chunk.h"
#include "recording/engine_codec.h"
#include "recording/power_codec.h"

namespace joulemap::recording {
namespace {

// Samples are useless without the definition of their channels. So the source definition is written at least twice,
// with data in between, and then repeated: damage at any one place loses only what was there.
constexpr unsigned kFlushesBetweenDefinitions = 256;
constexpr unsigned kMinSourceDefinitions = 2;

constexpr std::size_t kBatchPayloadBytes = std::size_t{1} << 20;

std::size_t count_batch_items(const EventBatch& batch) { return batch.marks.size() + batch.metrics.size(); }
std::size_t count_batch_items(const FactBatch& batch) {
  return batch.environment_facts.size() + batch.calibrations.size();
}

// Returns the last batch, or a new one if an item of about item_bytes does not fit.
template <class Batch>
Batch& find_batch_with_room(std::vector<Batch>& batches, std::size_t& last_bytes, std::size_t item_bytes) {
  if (batches.empty() || last_bytes + item_bytes > kBatchPayloadBytes) {
    batches.emplace_back();
    last_bytes = 0;
  }
  last_bytes += item_bytes;
  return batches.back();
}

// Upper bound in bytes of the fields of a record except its strings.
constexpr std::size_t kRecordOverheadBytes = 96;
std::size_t stored_text_bytes(const std::string& text) { return std::min(text.size(), kMaxTextBytes); }

void keep_first_error(Status& status, Status next_status) {
  if (status && !next_status) status = std::move(next_status);
}

}  // namespace

RecordingWriter::RecordingWriter(ChunkFile file, RecordingSource source, unsigned time_unit_log2)
    : chunk_file_(std::move(file)),
      activity_encoder_(activity_time_unit_log2(time_unit_log2)),
      source_definition_{std::move(source), {}} {
  JOULEMAP_CHECK(time_unit_log2 <= kMaxTimeUnitLog2, "times coarser than the format allows");
  pending_samples_.time_unit_log2 = time_unit_log2;
}

Result<RecordingWriter> RecordingWriter::create(const std::string& path, RecordingSource source,
                                                unsigned time_unit_log2) {
  Result<ChunkFile> file = ChunkFile::create(path);
  if (!file) return std::move(file).error();
  return RecordingWriter(std::move(*file), std::move(source), time_unit_log2);
}

void RecordingWriter::set_channels(std::span<const Channel> channels) {
  JOULEMAP_CHECK(source_definition_.channels.empty() && definitions_written_ == 0,
                 "channels are set once, before the first flush");
  source_definition_.channels.assign(channels.begin(), channels.end());
}

void RecordingWriter::add(const Sample& sample) {
  JOULEMAP_CHECK(sample.channel < source_definition_.channels.size(), "a sample of a channel that was not set");
  if (sample.reading.code != ReadCode::skipped) pending_samples_.samples.push_back(sample);
}

void RecordingWriter::add(Mark mark) {
  const std::size_t bytes = kRecordOverheadBytes + stored_text_bytes(mark.name);
  find_batch_with_room(pending_event_batches_, last_events_bytes_, bytes).marks.push_back(std::move(mark));
}

void RecordingWriter::add(Metric metric) {
  const std::size_t bytes = kRecordOverheadBytes + stored_text_bytes(metric.name);
  find_batch_with_room(pending_event_batches_, last_events_bytes_, bytes).metrics.push_back(std::move(metric));
}

void RecordingWriter::add(EnvironmentFact fact) {
  const std::size_t bytes = kRecordOverheadBytes + stored_text_bytes(fact.name) + stored_text_bytes(fact.value);
  find_batch_with_room(pending_fact_batches_, last_facts_bytes_, bytes).environment_facts.push_back(std::move(fact));
}

void RecordingWriter::add(ChannelCalibration calibration) {
  const std::size_t bytes = 2 * kRecordOverheadBytes + stored_text_bytes(calibration.channel) +
                            stored_text_bytes(calibration.device) + stored_text_bytes(calibration.driver) +
                            stored_text_bytes(calibration.phase_reference_channel) +
                            stored_text_bytes(calibration.gain_reference_channel);
  find_batch_with_room(pending_fact_batches_, last_facts_bytes_, bytes).calibrations.push_back(std::move(calibration));
}

void RecordingWriter::add(KernelPower kernel_power) { pending_kernel_powers_.push_back(std::move(kernel_power)); }

void RecordingWriter::add(const EngineSteps& steps) {
  for (std::string& payload : encode_engine_steps(steps)) pending_engine_payloads_.push_back(std::move(payload));
}

void RecordingWriter::add(EncodedActivity activity) {
  for (std::string& chunk : activity.chunks) pending_activity_chunks_.push_back(std::move(chunk));
}

unsigned RecordingWriter::activity_time_unit_log2(unsigned time_unit_log2) {
  return std::min(time_unit_log2, kKernelTimeUnitLog2);
}

std::size_t RecordingWriter::pending_item_count() const {
  std::size_t count = pending_samples_.samples.size() + pending_samples_.clock_pairs.size();
  for (const EventBatch& batch : pending_event_batches_) count += count_batch_items(batch);
  for (const FactBatch& batch : pending_fact_batches_) count += count_batch_items(batch);
  return count + pending_kernel_powers_.size() + pending_engine_payloads_.size() + pending_activity_chunks_.size();
}

bool RecordingWriter::is_definition_due() const {
  if (definitions_written_ == 0) return true;
  if (definitions_written_ < kMinSourceDefinitions) return flushes_since_definition_ > 0;
  return flushes_since_definition_ >= kFlushesBetweenDefinitions;
}

Status RecordingWriter::append(ChunkType type, const std::string& payload) {
  return append(make_chunk(type, kPartSourceNumber, payload, compressor_));
}

Status RecordingWriter::append(const std::string& chunk) {
  Status append_status = chunk_file_.append(chunk);
  if (!append_status) count_failed_write(append_status.error());
  return append_status;
}

void RecordingWriter::count_failed_write(const Error& error) {
  ++failed_writes_;
  last_write_error_ = error.message;
}

Status RecordingWriter::write_definition() {
  Status append_status = append(ChunkType::source, encode_source(source_definition_));
  if (append_status) {
    ++definitions_written_;
    flushes_since_definition_ = 0;
  }
  return append_status;
}

Status RecordingWriter::write_samples() {
  Status status = Done{};
  SampleBatch part;
  part.time_unit_log2 = pending_samples_.time_unit_log2;
  std::span<const Sample> samples = pending_samples_.samples;
  std::span<const ClockPair> clocks = pending_samples_.clock_pairs;
  while (!samples.empty() || !clocks.empty()) {
    const auto chunk_samples = samples.first(std::min(samples.size(), kMaxSamplesPerChunk));
    const auto chunk_clock_pairs = clocks.first(std::min(clocks.size(), kMaxClockPairsPerChunk));
    part.samples.assign(chunk_samples.begin(), chunk_samples.end());
    part.clock_pairs.assign(chunk_clock_pairs.begin(), chunk_clock_pairs.end());
    Status append_status = append(ChunkType::samples, encode_samples(part));
    if (!append_status) {
      lost_samples_ += chunk_samples.size();
      lost_event_count_ += chunk_clock_pairs.size();
    }
    keep_first_error(status, std::move(append_status));
    samples = samples.subspan(chunk_samples.size());
    clocks = clocks.subspan(chunk_clock_pairs.size());
  }
  pending_samples_.samples.clear();
  pending_samples_.clock_pairs.clear();
  return status;
}

Status RecordingWriter::write_events() {
  Status status = Done{};
  for (const EventBatch& batch : pending_event_batches_) {
    Status append_status = append(ChunkType::events, encode_events(batch));
    if (!append_status) lost_event_count_ += count_batch_items(batch);
    keep_first_error(status, std::move(append_status));
  }
  pending_event_batches_.clear();
  return status;
}

Status RecordingWriter::write_facts() {
  Status status = Done{};
  for (const FactBatch& batch : pending_fact_batches_) {
    Status append_status = append(ChunkType::facts, encode_facts(batch));
    if (!append_status) lost_event_count_ += count_batch_items(batch);
    keep_first_error(status, std::move(append_status));
  }
  pending_fact_batches_.clear();
  return status;
}

Status RecordingWriter::write_powers() {
  Status status = Done{};
  for (const std::string& payload : encode_power_payloads(pending_kernel_powers_)) {
    Status append_status = append(ChunkType::kernel_powers, payload);
    if (!append_status) ++lost_event_count_;
    keep_first_error(status, std::move(append_status));
  }
  pending_kernel_powers_.clear();
  return status;
}

Status RecordingWriter::write_engine_steps() {
  Status status = Done{};
  for (const std::string& payload : pending_engine_payloads_) {
    Status append_status = append(ChunkType::engine_steps, payload);
    if (!append_status) ++lost_event_count_;
    keep_first_error(status, std::move(append_status));
  }
  pending_engine_payloads_.clear();
  return status;
}

Status RecordingWriter::write_activity() {
  const std::vector<std::string> chunks = std::exchange(pending_activity_chunks_, {});
  if (chunks.size() > 1) {
    std::string joined_chunks;
    for (const std::string& chunk : chunks) joined_chunks += chunk;
    const std::uint64_t size_before = chunk_file_.size();
    Status append_status = chunk_file_.append(joined_chunks);
    if (append_status) return append_status;
    // If the file could not be truncated, some chunks are in it and must not be written twice.
    if (chunk_file_.size() != size_before) {
      count_failed_write(append_status.error());
      lost_event_count_ += chunks.size();
      return append_status;
    }
  }
  // A single chunk, or not enough space for all: write them one by one, as many as possible.
  Status status = Done{};
  for (const std::string& chunk : chunks) {
    Status append_status = append(chunk);
    if (!append_status) ++lost_event_count_;
    keep_first_error(status, std::move(append_status));
  }
  return status;
}

Status RecordingWriter::flush() {
  Status status = Done{};
  if (is_definition_due()) keep_first_error(status, write_definition());
  if (pending_item_count() == 0) return status;
  ++flushes_since_definition_;
  keep_first_error(status, write_facts());
  keep_first_error(status, write_samples());
  keep_first_error(status, write_events());
  keep_first_error(status, write_powers());
  keep_first_error(status, write_engine_steps());
  keep_first_error(status, write_activity());
  return status;
}

Status RecordingWriter::finish(RecordingEnd end, Durability durability) {
  Status status = flush();
  if (definitions_written_ < kMinSourceDefinitions) keep_first_error(status, write_definition());
  if (failed_writes_ > 0) {
    end.lost_samples += lost_samples_;
    end.diagnostics.add({"recording_write_failed", failed_writes_,
                         fmt::format("{} samples and {} events could not be written ({}); their time is not covered",
                                     lost_samples_, lost_event_count_, last_write_error_),
                         "free space on that file system and record again"});
  }
  keep_first_error(status, append(ChunkType::end, encode_end(end)));
  if (durability == Durability::on_disk) keep_first_error(status, chunk_file_.sync());
  chunk_file_.unlock();
  return status;
}

}  // namespace joulemap::recording
