// SPDX-License-Identifier: Apache-2.0
//
// Reads logs of nvidia-smi --query-gpu=... --format=csv. Without a header, the columns are identified by their
// contents.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/text.h"
#include "ingest/power_csv/power_log.h"
#include "ingest/power_csv/power_rows.h"

namespace joulemap::ingest {
namespace {

// A column of the log. power.draw is the mean of the last second on GPUs since Ampere (except the A100) and the
// instantaneous power before (NVML's documentation of nvmlDeviceGetPowerUsage). A log does not show which, so the mean
// is assumed.
struct SmiColumn {
  std::string_view name;
  std::string_view channel;
  Quantity channel_quantity;
  double unit_factor;  // factor from the number in the column to the channel's unit: W, degC, MHz, %, bytes
  double averaging_time_s;
};
constexpr std::array kSmiColumns = {
    SmiColumn{"power.draw.instant", "power-instant", Quantity::power, 1, 0.025},
    SmiColumn{"power.draw.average", "power-average", Quantity::power, 1, 1},
    SmiColumn{"power.draw", "power", Quantity::power, 1, 1},
    SmiColumn{"enforced.power.limit", "power-limit", Quantity::power_limit, 1, 0},
    SmiColumn{"power.limit", "power-limit", Quantity::power_limit, 1, 0},
    SmiColumn{"temperature.gpu", "temperature", Quantity::temperature, 1, 0},
    SmiColumn{"clocks.current.sm", "sm-clock", Quantity::clock, 1, 0},
    SmiColumn{"clocks.sm", "sm-clock", Quantity::clock, 1, 0},
    SmiColumn{"utilization.gpu", "utilization", Quantity::utilization, 1, 0},
    SmiColumn{"utilization.memory", "memory-utilization", Quantity::utilization, 1, 0},
    SmiColumn{"memory.used", "memory-used", Quantity::memory, 1 << 20, 0},
};
constexpr double kMilliFactor = 1e-3;

// Whether nvidia-smi had no value: "[N/A]", "[Not Supported]", "[Unknown Error]", "ERR!".
bool is_missing_value(std::string_view text) {
  return text.empty() || text.front() == '[' || text == "N/A" || text.starts_with("ERR");
}

// Parses a number with or without its unit: "71.50 W", "71,50", "45 %", "1024 MiB"; nullopt for other texts.
std::optional<double> parse_smi_value(std::string_view text) {
  const std::size_t end = text.find_last_of("0123456789");
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view unit = trim(text.substr(end + 1));
  const std::optional<double> value = parse_non_negative(text.substr(0, end + 1));
  return value && unit == "mW" ? std::optional(*value * kMilliFactor) : value;
}

// Whether the text is a PCI bus id: "00000000:3B:00.0".
bool is_bus_id(std::string_view text) {
  const bool is_hex = text.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
  return is_hex && text.size() >= 10 && std::count(text.begin(), text.end(), ':') == 2 && text[text.size() - 2] == '.';
}

struct SmiLayout {
  std::optional<std::size_t> time_column, gpu_index_column;
  std::optional<std::size_t> gpu_identity_column;  // column of the GPU's UUID, bus id or serial number
  std::vector<std::pair<std::size_t, const SmiColumn*>> value_columns;
  bool is_guessed_from_row = false;
};

// Names of columns that identify a GPU, best first. The best one that the log has is used.
constexpr std::array<std::string_view, 6> kIdentityColumnNames = {"uuid",       "gpu_uuid", "pci.bus_id",
                                                                  "gpu_bus_id", "serial",   "gpu_serial"};

std::optional<SmiLayout> find_smi_columns(const std::vector<std::string>& header) {
  SmiLayout layout;
  std::size_t best_identity_rank = kIdentityColumnNames.size();
  for (std::size_t i = 0; i < header.size(); ++i) {
    // Removes the unit: "power.draw [W]".
    const std::string_view name = trim(std::string_view(header[i]).substr(0, header[i].find('[')));
    if (name == "timestamp") layout.time_column = i;
    if (name == "index") layout.gpu_index_column = i;
    for (std::size_t rank = 0; rank < kIdentityColumnNames.size(); ++rank) {
      if (kIdentityColumnNames[rank] != name || rank > best_identity_rank) continue;
      layout.gpu_identity_column = i;
      best_identity_rank = rank;
    }
    for (const SmiColumn& column : kSmiColumns) {
      if (column.name == name) layout.value_columns.emplace_back(i, &column);
    }
  }
  return layout.time_column ? std::optional(std::move(layout)) : std::nullopt;
}

const SmiColumn& find_smi_column(std::string_view name) {
  return *std::find_if(kSmiColumns.begin(), kSmiColumns.end(),
                       [&](const SmiColumn& column) { return column.name == name; });
}

// Guesses the columns from a row; nullopt if it has no time or no power. Power is the first field with the unit W;
// without units, the first number with two decimals, as only powers have them.
std::optional<SmiLayout> guess_smi_columns(const std::vector<std::string>& row) {
  SmiLayout layout;
  layout.is_guessed_from_row = true;
  std::optional<std::size_t> power;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string_view field = row[i];
    const std::size_t point = field.find_first_of(".,");
    const bool has_two_decimals =
        parse_non_negative(field) && point != std::string_view::npos && field.size() - point == 3;
    if (parse_wall_time(field, 0)) {
      layout.time_column = i;
    } else if (field.starts_with("GPU-") || field.starts_with("MIG-") ||
               (is_bus_id(field) && !layout.gpu_identity_column)) {
      layout.gpu_identity_column = i;
    } else if (field.ends_with(" W") || (!power && has_two_decimals)) {
      if (!power) power = i;
    } else if (!layout.gpu_index_column && i <= 2 && parse_u64(field) && field.size() <= 3) {
      layout.gpu_index_column = i;
    }
  }
  if (!layout.time_column || !power) return std::nullopt;
  layout.value_columns.emplace_back(*power, &find_smi_column("power.draw"));
  return layout;
}

class NvidiaSmiLogReader {
 public:
  NvidiaSmiLogReader(std::string_view name, std::string_view separator, SmiLayout layout,
                     std::optional<std::int64_t> utc_offset_s)
      : log_builder_(name),
        name_(name),
        separator_(separator),
        layout_(std::move(layout)),
        utc_offset_s_(utc_offset_s) {}

  void parse_log_line(std::string_view line) {
    const std::vector<std::string> fields = split_csv_fields(line, separator_);
    // A repeated header: a second run was appended to the same file. It may have other columns.
    if (std::optional<SmiLayout> appended = find_smi_columns(fields)) {
      layout_ = *std::move(appended);
      return;
    }
    log_builder_.count_row();
    const auto field = [&](std::optional<std::size_t> column) -> std::string_view {
      return column && *column < fields.size() ? std::string_view(fields[*column]) : std::string_view();
    };
    const std::optional<std::int64_t> time_ns = parse_wall_time(field(layout_.time_column), utc_offset_s_);
    if (!time_ns) return log_builder_.drop_row("the time is missing");
    const std::string_view identity = field(layout_.gpu_identity_column);
    const std::optional<std::string> domain = gpu_domain_name(field(layout_.gpu_index_column), identity);
    if (!domain) return log_builder_.drop_row("the GPU is missing");
    if (!layout_.gpu_index_column && !layout_.gpu_identity_column) row_times_ns_.push_back(*time_ns);
    bool has_value = false;
    for (const auto& [column_index, column] : layout_.value_columns) {
      const std::string_view text = field(column_index);
      if (is_missing_value(text)) continue;
      const std::optional<double> value = parse_smi_value(text);
      if (!value) continue;
      has_value = true;
      log_builder_.add_value(make_gpu_channel(*column, *domain, identity), *time_ns, *value * column->unit_factor);
    }
    if (!has_value) log_builder_.drop_row("no value is readable");
  }

  Result<PowerLog> finish() {
    if (!utc_offset_s_) {
      log_builder_.diagnostics().add({"local_time", 1,
                                      fmt::format("{}: times are assumed to be in this machine's time zone", name_),
                                      "set the time zone with --utc-offset +HH:MM"});
    }
    if (layout_.is_guessed_from_row) {
      log_builder_.diagnostics().add({"columns_guessed", 1,
                                      fmt::format("{}: the log has no header; power is assumed in column {}{}", name_,
                                                  layout_.value_columns.front().first + 1, describe_gpu_column()),
                                      "log with --format=csv, without noheader"});
    }
    report_gpu_identification();
    Result<PowerLog> log = log_builder_.finish(false);
    if (log) report_averaged_power(*log);
    return log;
  }

 private:
  std::string describe_gpu_column() const {
    if (layout_.gpu_index_column) return fmt::format(", the GPU index in column {}", *layout_.gpu_index_column + 1);
    return layout_.gpu_identity_column ? fmt::format(", the GPU in column {}", *layout_.gpu_identity_column + 1) : "";
  }

  void report_gpu_identification() {
    constexpr std::string_view kGpuColumnRemedy = "log with --query-gpu=timestamp,index,...";
    if (gpu_number_by_identity_.size() > 1) {
      log_builder_.diagnostics().add({"gpus_numbered", 1,
                                      fmt::format("{}: GPUs are numbered in the order of their first row", name_),
                                      std::string(kGpuColumnRemedy)});
    }
    if (row_times_ns_.size() < 4) return;
    // Rows of one query are close together: with two GPUs, at least a third of the intervals are far below the mean.
    const std::int64_t mean_ns =
        (row_times_ns_.back() - row_times_ns_.front()) / static_cast<std::int64_t>(row_times_ns_.size() - 1);
    std::size_t short_pause_count = 0;
    for (std::size_t i = 1; i < row_times_ns_.size(); ++i)
      short_pause_count += row_times_ns_[i] - row_times_ns_[i - 1] < mean_ns / 4;
    if (short_pause_count * 3 < row_times_ns_.size()) return;
    log_builder_.diagnostics().add(
        {"gpus_not_told_apart", 1,
         fmt::format("{}: its rows seem to come from several GPUs but do not name them; all are assigned to gpu0",
                     name_),
         std::string(kGpuColumnRemedy)});
  }

  std::optional<std::string> gpu_domain_name(std::string_view index, std::string_view identity) {
    if (layout_.gpu_index_column) {
      const std::optional<std::uint64_t> number = parse_u64(index);
      return number ? std::optional(fmt::format("gpu{}", *number)) : std::nullopt;
    }
    if (!layout_.gpu_identity_column) return "gpu0";
    if (is_missing_value(identity)) return std::nullopt;
    const auto [gpu_number, is_new] =
        gpu_number_by_identity_.try_emplace(std::string(identity), gpu_number_by_identity_.size());
    return fmt::format("gpu{}", gpu_number->second);
  }

  std::uint32_t make_gpu_channel(const SmiColumn& column, const std::string& domain, std::string_view identity) {
    return log_builder_.channel(fmt::format("{}-{}", domain, column.channel), [&] {
      Channel gpu_channel;
      gpu_channel.sensor = "nvidia-smi";
      gpu_channel.source = column.name;
      gpu_channel.domain = domain;
      gpu_channel.device = identity.starts_with("GPU-") ? std::string(identity) : domain;
      gpu_channel.domain_class = DomainClass::gpu;
      gpu_channel.kind = ChannelKind::gauge;
      gpu_channel.quantity = column.channel_quantity;
      gpu_channel.scale = column.channel_quantity == Quantity::memory ? 1 : kMilliFactor;
      gpu_channel.averaging_time_s = column.averaging_time_s;
      return gpu_channel;
    });
  }

  // Reports that the power is a mean. Where power.draw.instant is logged, it is used instead: the first power gauge of
  // a domain counts, and kSmiColumns lists it first.
  void report_averaged_power(PowerLog& log) {
    const auto has = [&](std::string_view source) {
      return std::any_of(log.channels.begin(), log.channels.end(),
                         [&](const Channel& channel) { return channel.source == source; });
    };
    if (!has("power.draw") || has("power.draw.instant")) return;
    log.diagnostics.add(
        {"power_is_mean", 1,
         fmt::format("{}: power.draw is a one-second mean on most GPUs and smooths shorter changes", name_),
         "also log power.draw.instant"});
  }

  PowerLogBuilder log_builder_;
  std::string name_;
  std::string_view separator_;
  SmiLayout layout_;
  std::optional<std::int64_t> utc_offset_s_;
  std::map<std::string, std::size_t, std::less<>>
      gpu_number_by_identity_;              // GPU numbers by identity, in order of first use
  std::vector<std::int64_t> row_times_ns_;  // times of rows that do not identify their GPU
};

bool has_power_column(const std::vector<std::string>& fields) {
  return std::any_of(fields.begin(), fields.end(), [](std::string_view field) {
    return field.starts_with("power.draw") || (field.ends_with(" W") && parse_smi_value(field));
  });
}

}  // namespace

Result<PowerLog> parse_nvidia_smi_log(std::string_view text, std::string_view name,
                                      std::optional<std::int64_t> utc_offset_s) {
  std::optional<NvidiaSmiLogReader> reader;
  int lines = 0;
  bool has_power = false;
  for_each_line(text, [&](std::string_view line) {
    if (reader) return reader->parse_log_line(line);
    if (++lines > 10) return;  // messages of the tool may precede the log
    const std::string_view separator = find_field_separator(line);
    const std::vector<std::string> fields = split_csv_fields(line, separator);
    if (std::optional<SmiLayout> layout = find_smi_columns(fields)) {
      std::sort(layout->value_columns.begin(), layout->value_columns.end(),
                [](const auto& a, const auto& b) { return a.second < b.second; });
      reader.emplace(name, separator, *std::move(layout), utc_offset_s);
    } else if (std::optional<SmiLayout> guessed_layout = guess_smi_columns(fields)) {
      reader.emplace(name, separator, *std::move(guessed_layout), utc_offset_s);
      reader->parse_log_line(line);
    } else {
      has_power = has_power || has_power_column(fields);
    }
  });
  if (reader) return reader->finish();
  if (has_power) {
    return Error{ErrorCode::malformed, fmt::format("{} contains powers but no times", name),
                 "also log the time: nvidia-smi --query-gpu=timestamp,index,uuid,power.draw --format=csv -lms 100"};
  }
  return Error{ErrorCode::malformed, fmt::format("{} is not a supported power log", name),
               "use CSV with the header time_unix_ns,domain,kind,value, or nvidia-smi "
               "--query-gpu=timestamp,index,uuid,power.draw,power.draw.instant --format=csv -lms 100"};
}

}  // namespace joulemap::ingest
