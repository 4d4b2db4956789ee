// SPDX-License-Identifier: Apache-2.0
#include "account/carbon_series.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <set>

#include "base/text.h"
#include "formats/csv.h"

namespace joulemap::account {
namespace {

constexpr double kNsPerS = 1e9;
constexpr double kLatestCarbonTime_s = 4e9;  // year 2096
constexpr double kMaxSeriesIntensity_gco2_per_kwh = 1e5;

std::optional<int> parse_digits(std::string_view text, std::size_t position, std::size_t count) {
  if (position + count > text.size()) return std::nullopt;
  int value = 0;
  const char* const end = text.data() + position + count;
  const auto [number_end, error] = std::from_chars(text.data() + position, end, value);
  return error == std::errc() && number_end == end && value >= 0 ? std::optional(value) : std::nullopt;
}

// "2026-11-18T15:00[:00]Z", also with a blank instead of T, and +00:00 instead of Z.
std::optional<std::int64_t> parse_iso_time_ns(std::string_view text) {
  if (text.ends_with("Z")) {
    text.remove_suffix(1);
  } else if (text.ends_with("+00:00")) {
    text.remove_suffix(6);
  } else {
    return std::nullopt;
  }
  const auto year = parse_digits(text, 0, 4), month = parse_digits(text, 5, 2), day = parse_digits(text, 8, 2);
  const auto hour = parse_digits(text, 11, 2), minute = parse_digits(text, 14, 2);
  const auto second = text.size() == 16 ? std::optional(0) : parse_digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second || (text.size() != 16 && text.size() != 19))
    return std::nullopt;
  using namespace std::chrono;
  const year_month_day date(std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                            std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const auto utc_time = sys_days(date) + hours(*hour) + minutes(*minute) + seconds(*second);
  return duration_cast<nanoseconds>(utc_time.time_since_epoch()).count();
}

std::optional<std::int64_t> parse_carbon_time_ns(std::string_view text) {
  if (const std::optional<double> unix_s = parse_double(text)) {
    if (*unix_s < 0 || *unix_s > kLatestCarbonTime_s) return std::nullopt;
    return std::llround(*unix_s * kNsPerS);
  }
  return parse_iso_time_ns(text);
}

std::string format_utc_time(std::int64_t unix_ns) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_ns / 1'000'000'000)));
}

// End of the time that the series covers.
std::int64_t series_end_ns(std::span<const CarbonPoint> series) {
  const std::int64_t last_ns = series.back().unix_ns;
  return series.size() < 2 ? last_ns : last_ns + (last_ns - series[series.size() - 2].unix_ns);
}

// Fraction of a time span of the run in which modules were not probed.
double fraction_without_probing(const ReportResult& report, const RunTimeSpan& span) {
  if (!report.probe || span.end_s <= span.begin_s) return 1;
  double probed_s = 0;
  for (const RunTimeSpan& probe_span : report.probe->spans)
    probed_s += std::max(std::min(span.end_s, probe_span.end_s) - std::max(span.begin_s, probe_span.begin_s), 0.0);
  return std::max(1 - probed_s / (span.end_s - span.begin_s), 0.0);
}

double carbon_intensity_at(std::span<const CarbonPoint> series, std::int64_t unix_ns) {
  const auto next_point = std::ranges::upper_bound(series, unix_ns, {}, &CarbonPoint::unix_ns);
  return next_point == series.begin() ? series.front().gco2_per_kwh : std::prev(next_point)->gco2_per_kwh;
}

}  // namespace

Result<std::vector<CarbonPoint>> read_carbon_series(std::string_view text, std::string_view name) {
  const std::vector<formats::CsvRecord> records = formats::read_csv(text);
  if (records.size() < 3 || records.front().size() < 2 || trim(records.front()[0]) != "time" ||
      trim(records.front()[1]) != "gco2_per_kwh") {
    return Error{ErrorCode::usage, fmt::format("{} is no time series of carbon intensities", name),
                 "the first line must be time,gco2_per_kwh, and two or more rows must follow"};
  }
  std::vector<CarbonPoint> series;
  for (std::size_t line = 1; line < records.size(); ++line) {
    const formats::CsvRecord& record = records[line];
    const std::optional<std::int64_t> unix_ns = parse_carbon_time_ns(trim(record[0]));
    const std::optional<double> intensity = parse_double(record.size() > 1 ? trim(record[1]) : std::string_view());
    if (!unix_ns || !intensity || *intensity < 0 || *intensity > kMaxSeriesIntensity_gco2_per_kwh) {
      return Error{ErrorCode::usage, fmt::format("{}: row {} has no time or no intensity in g/kWh", name, line),
                   "times are Unix seconds or UTC, such as 2026-11-18T15:00:00Z"};
    }
    if (!series.empty() && *unix_ns <= series.back().unix_ns) {
      return Error{ErrorCode::usage, fmt::format("{}: the time of row {} is not later than the one before", name, line),
                   "sort the rows by time"};
    }
    series.push_back({*unix_ns, *intensity});
  }
  return series;
}

Result<double> mean_carbon_intensity(std::span<const CarbonPoint> series, const ReportResult& report,
                                     Provenance provenance) {
  if (!report.start_unix_ns) {
    return Error{ErrorCode::usage, "the recording does not contain the time of day of the run",
                 "give the intensity as a number: --gco2-per-kwh 56"};
  }
  const std::int64_t begin_ns = *report.start_unix_ns;
  const std::int64_t finish_ns = begin_ns + std::llround(report.elapsed_s * kNsPerS);
  if (begin_ns < series.front().unix_ns || finish_ns > series_end_ns(series)) {
    return Error{ErrorCode::usage,
                 fmt::format("the time series covers {} to {}, but the run is from {} to {}",
                             format_utc_time(series.front().unix_ns), format_utc_time(series_end_ns(series)),
                             format_utc_time(begin_ns), format_utc_time(finish_ns)),
                 "give a series that covers the run"};
  }
  std::set<std::string> domain_names;
  for (const DomainEnergy& domain : report.domains) {
    if (domain.is_counted && domain.provenance == provenance) domain_names.insert(domain.name);
  }
  double weighted_intensity = 0;
  double weight = 0;
  for (const PowerSeries& power : report.power) {
    if (!domain_names.contains(power.domain)) continue;
    for (std::size_t i = 0; i < power.watts.size(); ++i) {
      const double slice_begin_s = static_cast<double>(i) * report.slice_s;
      const double centre_s = slice_begin_s + 0.5 * report.slice_s;
      const double watts = power.watts[i].value_or(0) *
                           fraction_without_probing(report, {slice_begin_s, slice_begin_s + report.slice_s});
      weighted_intensity += watts * carbon_intensity_at(series, begin_ns + std::llround(centre_s * kNsPerS));
      weight += watts;
    }
  }
  // Without power over time, the intensity halfway through the run is used.
  if (weight <= 0) return carbon_intensity_at(series, begin_ns + (finish_ns - begin_ns) / 2);
  return weighted_intensity / weight;
}

}  // namespace joulemap::account
