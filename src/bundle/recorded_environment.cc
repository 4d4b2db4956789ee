// SPDX-License-Identifier: Apache-2.0
#include "bundle/recorded_environment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "formats/json_writer.h"
#include "recording/part_folder.h"
#include "recording/recording_parts.h"
#include "recording/recording_reader.h"
#include "report/json/calibrate_json.h"

namespace joulemap::bundle {
namespace {

// NTP slews a clock by at most 500 ppm, half a millisecond between two pairs; a larger change is a step or a suspend.
constexpr double kMinReportedClockJump_s = 0.1;

// Unsigned arithmetic: a damaged recording may contain any two numbers.
std::int64_t saturating_difference_ns(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

class RecordedEnvironmentCollector : public recording::RecordingVisitor {
 public:
  void on_source(std::uint32_t source, const RecordingSource& recording_source) override {
    environment_.sources.push_back(recording_source);
    hosts_[source] = recording_source.host;
  }
  void on_fact(std::uint32_t source, const EnvironmentFact& fact) override {
    if (fact.name == recording::kRankFactName) return;
    const std::string& host = hosts_[source];
    if (known_facts_.emplace(host, fact.name, fact.value).second) environment_.facts.push_back({host, fact});
  }
  void on_channels(std::uint32_t /*source*/, std::uint32_t /*first*/, std::span<const Channel> channels) override {
    environment_.channels.insert(environment_.channels.end(), channels.begin(), channels.end());
  }
  void on_clock(std::uint32_t source, const ClockPair& pair) override {
    const std::int64_t offset_ns = saturating_difference_ns(pair.unix_ns, pair.monotonic_ns);
    const auto [offset_entry, is_first] = clock_offsets_ns_.try_emplace(source, offset_ns);
    if (is_first) return;
    const double jump_s = static_cast<double>(saturating_difference_ns(offset_ns, offset_entry->second)) * 1e-9;
    offset_entry->second = offset_ns;
    if (std::abs(jump_s) < kMinReportedClockJump_s) return;
    if (!environment_.clock_jump_s || std::abs(jump_s) > std::abs(*environment_.clock_jump_s))
      environment_.clock_jump_s = jump_s;
  }
  RecordedEnvironment take_environment() && { return std::move(environment_); }

 private:
  RecordedEnvironment environment_;
  std::map<std::uint32_t, std::string> hosts_;  // of each source
  std::set<std::tuple<std::string, std::string, std::string>> known_facts_;
  std::map<std::uint32_t, std::int64_t> clock_offsets_ns_;  // last offset of each source
};

// JSON allows a key once. "facts" contains the names with one value in the whole recording; "differing_facts" lists all
// values of the others, as of several machines.
void write_facts(formats::JsonWriter& json, const RecordedEnvironment& environment) {
  std::map<std::string, std::set<std::string>> fact_values_by_name;
  for (const HostFact& host_fact : environment.facts)
    fact_values_by_name[host_fact.fact.name].insert(host_fact.fact.value);
  std::set<std::string> written_names;
  json.key("facts").begin_object();
  for (const auto& [host, fact] : environment.facts) {
    if (fact_values_by_name[fact.name].size() == 1 && written_names.insert(fact.name).second)
      json.member(fact.name, fact.value);
  }
  json.end_object().key("differing_facts").begin_array();
  for (const auto& [host, fact] : environment.facts) {
    if (fact_values_by_name[fact.name].size() == 1) continue;
    json.begin_object().member("host", host).member("name", fact.name).member("value", fact.value).end_object();
  }
  json.end_array();
}

void write_sources(formats::JsonWriter& json, const RecordedEnvironment& environment) {
  json.key("sources").begin_array();
  for (const RecordingSource& source : environment.sources) {
    json.begin_object()
        .member("role", source.role)
        .member("host", source.host)
        .text_or_null("joulemap", source.version)
        .member("recording_id", source.recording_id)
        .member("imported", is_imported(source))
        .end_object();
  }
  json.end_array();
}

void write_channels(formats::JsonWriter& json, const RecordedEnvironment& environment) {
  json.key("channels").begin_array();
  for (const Channel& channel : environment.channels) {
    json.begin_object()
        .member("name", channel.name)
        .member("sensor", channel.sensor)
        .text_or_null("domain", channel.domain)
        .member("kind", to_string(channel.kind))
        .member("unit", unit_of(channel.quantity))
        .member("provenance", to_string(channel.provenance))
        .text_or_null("device", channel.device)
        .text_or_null("device_model", channel.device_model)
        .text_or_null("driver", channel.driver)
        .end_object();
  }
  json.end_array();
}

}  // namespace

Result<RecordedEnvironment> read_environment(std::span<const std::string> paths) {
  const Result<std::vector<recording::RecordingFile>> files = recording::open_recording(paths);
  if (!files) return files.error();
  RecordedEnvironmentCollector visitor;
  const Result<recording::RecordingSummary> summary = recording::read_recording(*files, visitor);
  if (!summary) return summary.error();
  return std::move(visitor).take_environment();
}

std::string environment_json(const RecordedEnvironment& environment, const ReportResult& report) {
  formats::JsonWriter json;
  json.begin_object().member("schema", "joulemap.environment/1").key("hosts").begin_array();
  for (const std::string& host : report.hosts) json.value(host);
  json.end_array();
  write_facts(json, environment);
  write_sources(json, environment);
  write_channels(json, environment);
  report::write_calibrations(json, report.calibration);
  json.member("clock_jump_s", environment.clock_jump_s).end_object();
  return std::move(json).text();
}

}  // namespace joulemap::bundle
