// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <unordered_map>

#include "formats/json_objects.h"
#include "ingest/tensorflow/step_rows.h"

namespace joulemap::ingest {
namespace {

using formats::JsonFields;

constexpr double kMost_us = 4e15;  // the year 2096; larger values would overflow
constexpr std::string_view kCompute = " Compute";

std::optional<std::int64_t> nanoseconds(const JsonFields& event, std::string_view member) {
  const std::optional<double> number = event.number(member);
  if (!number || !(std::abs(*number) < kMost_us)) return std::nullopt;
  if (const auto whole = event.integer(member)) return *whole * 1000;
  return std::llround(*number * 1000);
}

// In a timeline, a process is a device. Its id is a number, or a text in files of other writers.
std::string process_id_of(const JsonFields& event) {
  const std::optional<std::int64_t> number = event.integer("pid");
  return number ? std::to_string(*number) : std::string(event.text("pid"));
}

}  // namespace

// A device's name may follow its rows, so `device` of a row is the process id until all events are read.
StepRows read_timeline(std::string_view json) {
  StepRows result;
  std::unordered_map<std::string, std::string> devices;
  const auto add_row = [&](const JsonFields& event) {
    const std::optional<std::int64_t> start_ns = nanoseconds(event, "ts");
    const std::optional<std::int64_t> duration_ns = nanoseconds(event, "dur");
    if (!start_ns || !duration_ns) {
      ++result.rows_without_time;
      return;
    }
    const std::string_view op = event.text("args.op").empty() ? event.text("name") : event.text("args.op");
    const std::string_view node = event.text("args.name").empty() ? event.text("name") : event.text("args.name");
    result.rows.push_back({*start_ns, *duration_ns, result.texts.intern(process_id_of(event)),
                           result.texts.intern(node), result.texts.intern(op),
                           result.texts.intern(event.text("args.kernel"))});
  };
  const formats::JsonObjectsResult read = formats::for_each_json_object(json, [&](const JsonFields& event) {
    if (event.text("ph") == "X") return add_row(event);
    ++result.skipped_events;
    if (event.text("ph") == "M" && event.text("name") == "process_name") {
      std::string_view name = event.text("args.name");
      const bool is_compute = name.ends_with(kCompute);
      if (is_compute) name.remove_suffix(kCompute.size());
      if (name.find("/device:") != std::string_view::npos || name.find(":CPU:") != std::string_view::npos ||
          name.find(":GPU:") != std::string_view::npos || name.find("/gpu:") != std::string_view::npos ||
          name.find("/cpu:") != std::string_view::npos) {
        devices.insert_or_assign(process_id_of(event), name);
      }
    }
  });
  result.found = read.found && !devices.empty();
  result.damaged = read.damaged;
  result.is_truncated = !read.ended;
  std::vector<StepRow> named_rows;
  named_rows.reserve(result.rows.size());
  for (StepRow row : result.rows) {
    const auto device = devices.find(result.texts[row.device]);
    if (device == devices.end()) {
      ++result.rows_of_unnamed_device;
      continue;
    }
    row.device = result.texts.intern(device->second);
    named_rows.push_back(row);
  }
  result.rows = std::move(named_rows);
  return result;
}

}  // namespace joulemap::ingest
