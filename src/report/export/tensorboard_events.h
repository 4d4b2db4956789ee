// SPDX-License-Identifier: Apache-2.0
//
// TensorboardEvents: builds the bytes of a TensorBoard event file in memory, without TensorFlow. Times are Unix times
// in seconds; a step is any increasing number. Texts may contain any bytes. Not thread-safe.
//
//   TensorboardEvents events(begin_s);
//   events.add_scalars(12, begin_s + 3.5, {{{"energy/step_j", 4.2}}});
//   write(path, events.bytes());
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/protobuf.h"

namespace joulemap::report {

struct TaggedScalar {
  std::string_view tag;
  double value = 0;
};

struct HistogramBucket {
  double low = 0;
  double high = 0;
  double count = 0;
};

// `max_buckets` buckets of equal width from minimum to maximum; one if all values are equal, none without values.
std::vector<HistogramBucket> make_histogram_buckets(std::span<const double> values, std::size_t max_buckets = 30);

struct HyperParameter {
  std::string name;
  std::variant<double, bool, std::string> value;
};

// A run in TensorBoard's HParams table.
struct HparamsSession {
  std::vector<HyperParameter> parameters;
  double begin_s = 0;
  double end_s = 0;
  std::optional<bool> succeeded;
};

class TensorboardEvents {
 public:
  explicit TensorboardEvents(double begin_s);

  // Writes all values in one event. Values are 32-bit floats, like all TensorBoard scalars.
  void add_scalars(std::int64_t step, double time_s, std::span<const TaggedScalar> numbers);
  void add_scalar(std::string_view tag, std::int64_t step, double time_s, double value);
  void add_histogram(std::string_view tag, std::int64_t step, double time_s, std::span<const HistogramBucket> buckets);
  void add_text(std::string_view tag, std::int64_t step, double time_s, std::string_view markdown);

  // Charts of the Custom Scalars tab: several curves in one chart. A layout applies to the whole log folder.
  struct Chart {
    std::string title;
    std::string tag_pattern;  // regular expression of the tags of its curves
  };
  void add_chart_layout(double time_s, std::string_view category, std::span<const Chart> charts);

  // Defines the columns of the HParams table. They apply to all runs in TensorBoard's log folder.
  void add_hparams_columns(double time_s, std::span<const HyperParameter> parameters,
                           std::span<const std::string> metric_tags);
  void add_hparams_session(const HparamsSession& session);

  const std::string& bytes() const { return file_bytes_; }

 private:
  void add_event(std::int64_t step, double time_s, const formats::ProtobufWriter& summary);
  void add_plugin_value(std::string_view tag, std::int64_t step, double time_s, std::string_view plugin,
                        const formats::ProtobufWriter& content, const formats::ProtobufWriter& tensor);

  std::string file_bytes_;
  // Buffers that are reused to avoid allocations.
  formats::ProtobufWriter event_message_;
  formats::ProtobufWriter summary_message_;
  formats::ProtobufWriter value_message_;
};

}  // namespace joulemap::report
