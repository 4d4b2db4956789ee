// SPDX-License-Identifier: Apache-2.0
#include "ingest/cprofile/cprofile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "ingest/cprofile/marshal.h"
#include "ingest/epoch_logs/experiment_files.h"
#include "ingest/epoch_logs/file_name_pattern.h"
#include "ingest/trace_file.h"

namespace joulemap::ingest {
namespace {

using MarshalKind = MarshalObject::Kind;

constexpr std::string_view kBuiltInFileName = "~";
constexpr std::string_view kNoPowerRemedy = "a profile contains no power";
constexpr double kMaxProfiledTime_s = 1e8;  // three years: more is damage
// Functions that a row of an experiment keeps: by own and by cumulative time.
constexpr std::size_t kMaxStoredFunctions = 200;

// "/usr/lib/python3.11/json/decoder.py" -> "json/decoder.py": distinguishes the many __init__.py.
std::string_view shorten_library_path(std::string_view path) {
  const std::size_t file = path.find_last_of("/\\");
  if (file == std::string_view::npos || file == 0) return path;
  const std::size_t folder = path.find_last_of("/\\", file - 1);
  return folder == std::string_view::npos ? path : path.substr(folder + 1);
}

// "<built-in method torch.lstm>" -> "torch.lstm", "<method 'cpu' of 'torch.Tensor' objects>" -> "torch.Tensor.cpu".
std::string built_in_function_name(std::string_view name) {
  constexpr std::string_view kBuiltInFunctionPrefix = "<built-in method ";
  constexpr std::string_view kBuiltInMethodPrefix = "<method '";
  constexpr std::string_view kMethodClassSeparator = "' of '";
  constexpr std::string_view kBuiltInMethodSuffix = "' objects>";
  if (name.starts_with(kBuiltInFunctionPrefix) && name.ends_with('>'))
    return std::string(name.substr(kBuiltInFunctionPrefix.size(), name.size() - kBuiltInFunctionPrefix.size() - 1));
  const std::size_t separator_position = name.find(kMethodClassSeparator);
  if (!name.starts_with(kBuiltInMethodPrefix) || !name.ends_with(kBuiltInMethodSuffix) ||
      separator_position == std::string_view::npos)
    return std::string(name);
  const std::size_t type = separator_position + kMethodClassSeparator.size();
  if (type + kBuiltInMethodSuffix.size() > name.size()) return std::string(name);
  return fmt::format("{}.{}", name.substr(type, name.size() - type - kBuiltInMethodSuffix.size()),
                     name.substr(kBuiltInMethodPrefix.size(), separator_position - kBuiltInMethodPrefix.size()));
}

std::string function_name(std::string_view file, std::int64_t line, std::string_view name) {
  if (file == kBuiltInFileName && line == 0) return built_in_function_name(name);
  return fmt::format("{} ({}:{})", name, shorten_library_path(file), line);
}

bool is_valid_time(const MarshalObject& object) {
  const bool is_number = object.kind == MarshalKind::real || object.kind == MarshalKind::integer;
  // Own times can be slightly negative: cProfile subtracts its own overhead, and clocks are set back.
  return is_number && std::isfinite(object.real_value) && std::abs(object.real_value) < kMaxProfiledTime_s;
}

bool is_valid_count(const MarshalObject& object) {
  return object.kind == MarshalKind::integer && object.integer_value >= 0;
}

// An entry: (file, line, name): (primitive calls, calls, own time, cumulative time, callers).
std::optional<ProfiledFunction> parse_profiled_function(const MarshalDocument& document, std::uint32_t key,
                                                        std::uint32_t value) {
  const std::vector<std::uint32_t>& key_item_indices = document.object_at(key).item_indices;
  const std::vector<std::uint32_t>& sums = document.object_at(value).item_indices;
  if (document.object_at(key).kind != MarshalKind::tuple || key_item_indices.size() != 3) return std::nullopt;
  if (document.object_at(value).kind != MarshalKind::tuple || sums.size() != 5) return std::nullopt;
  const MarshalObject& file = document.object_at(key_item_indices[0]);
  const MarshalObject& line = document.object_at(key_item_indices[1]);
  const MarshalObject& name = document.object_at(key_item_indices[2]);
  if (file.kind != MarshalKind::text || line.kind != MarshalKind::integer || name.kind != MarshalKind::text)
    return std::nullopt;
  const MarshalObject& primitive_calls = document.object_at(sums[0]);
  const MarshalObject& calls = document.object_at(sums[1]);
  if (!is_valid_count(primitive_calls) || !is_valid_count(calls) || primitive_calls.integer_value > calls.integer_value)
    return std::nullopt;
  if (!is_valid_time(document.object_at(sums[2])) || !is_valid_time(document.object_at(sums[3]))) return std::nullopt;
  ProfiledFunction function;
  function.name = function_name(file.text, line.integer_value, name.text);
  function.call_count = static_cast<std::uint64_t>(calls.integer_value);
  function.recursive_call_count = static_cast<std::uint64_t>(calls.integer_value - primitive_calls.integer_value);
  function.self_s = std::max(0.0, document.object_at(sums[2]).real_value);
  function.cumulative_s = std::max(0.0, document.object_at(sums[3]).real_value);
  return function;
}

// Functions that have the same name after shortening are one row: a file that was imported by two paths.
void add_profiled_function(ProfiledFunction& sum, const ProfiledFunction& function) {
  sum.call_count += function.call_count;
  sum.recursive_call_count += function.recursive_call_count;
  sum.self_s += function.self_s;
  sum.cumulative_s += function.cumulative_s;
}

Error not_a_profile_error(std::string message) {
  return {ErrorCode::malformed, std::move(message),
          "pass a file that python -m cProfile -o FILE, or pstats' dump_stats, wrote"};
}

std::vector<FunctionResult> select_largest_functions(const FunctionProfile& profile) {
  std::vector<const ProfiledFunction*> functions_by_cumulative_time;
  for (const ProfiledFunction& function : profile.functions) functions_by_cumulative_time.push_back(&function);
  std::ranges::stable_sort(functions_by_cumulative_time, std::ranges::greater{}, &ProfiledFunction::cumulative_s);
  const double least_s = functions_by_cumulative_time.size() > kMaxStoredFunctions
                             ? functions_by_cumulative_time[kMaxStoredFunctions - 1]->cumulative_s
                             : 0;
  std::vector<FunctionResult> functions;
  for (std::size_t i = 0; i < profile.functions.size(); ++i) {
    const ProfiledFunction& function = profile.functions[i];
    if (i >= kMaxStoredFunctions && function.cumulative_s < least_s) continue;
    FunctionResult result{function.name, "cpu", function.call_count, function.self_s, std::nullopt};
    result.cumulative_s = function.cumulative_s;
    functions.push_back(std::move(result));
  }
  return functions;
}

void fill_row_from_profile(const std::string& path, ExperimentRow& row) {
  row.attempts = 1;
  const Result<FunctionProfile> profile = read_cprofile(path);
  if (!profile) {
    row.state = ExperimentRowState::failed;
    row.diagnostics.add({"damaged_file", 1, profile.error().message, profile.error().remedy});
    return;
  }
  row.state = ExperimentRowState::done;
  row.elapsed_s = profile->total_s;
  row.functions = select_largest_functions(*profile);
  row.diagnostics = profile->diagnostics;
  DomainEnergy machine;
  machine.name = "machine";
  machine.reason = kNoPowerRemedy;
  machine.is_counted = true;
  row.domains.push_back(std::move(machine));
}

}  // namespace

bool is_cprofile(std::string_view start) {
  // A dict, whose first key is a tuple; 0x80 marks objects that are referred to later.
  const auto code = [&](std::size_t i) { return static_cast<char>(start[i] & 0x7f); };
  return start.size() > 1 && code(0) == '{' && (code(1) == ')' || code(1) == '(');
}

Result<FunctionProfile> parse_cprofile(std::string_view bytes) {
  const Result<MarshalDocument> document = read_marshal(bytes);
  if (!document) return not_a_profile_error(document.error().message);
  const MarshalObject& root = document->object_at(document->root_index);
  if (root.kind != MarshalKind::dict)
    return not_a_profile_error("not a profile of cProfile: it contains no table of functions");
  std::map<std::string, ProfiledFunction> functions_by_name;
  std::uint64_t damaged_entry_count = 0;
  for (std::size_t i = 0; i + 1 < root.item_indices.size(); i += 2) {
    std::optional<ProfiledFunction> function =
        parse_profiled_function(*document, root.item_indices[i], root.item_indices[i + 1]);
    if (!function) {
      ++damaged_entry_count;
      continue;
    }
    const auto [function_entry, is_new] = functions_by_name.try_emplace(function->name, *function);
    if (!is_new) add_profiled_function(function_entry->second, *function);
  }
  if (functions_by_name.empty() && damaged_entry_count > 0)
    return not_a_profile_error("not a profile of cProfile: no entry is a function");
  FunctionProfile profile;
  for (auto& [name, function] : functions_by_name) {
    profile.total_s += function.self_s;
    profile.functions.push_back(std::move(function));
  }
  if (profile.total_s > kMaxProfiledTime_s) return not_a_profile_error("the times of the profile are not plausible");
  std::ranges::stable_sort(profile.functions, std::ranges::greater{}, &ProfiledFunction::self_s);
  if (damaged_entry_count > 0) {
    profile.diagnostics.add({"events_dropped", damaged_entry_count,
                             "entries of the profile are damaged and were left out", "write the profile again"});
  }
  return profile;
}

Result<FunctionProfile> read_cprofile(const std::string& path) {
  const Result<TraceBytes> bytes = read_trace_file(path);
  if (!bytes) return bytes.error();
  Result<FunctionProfile> profile = parse_cprofile(bytes->view());
  if (!profile) return std::move(profile).error().with_context(path);
  bytes->report_damage(profile->diagnostics);
  return profile;
}

Result<ExperimentData> read_profile_experiment(const ProfileExperimentOptions& options) {
  const Result<FileNamePattern> pattern = FileNamePattern::parse(options.pattern);
  if (!pattern) return pattern.error();
  const FileNamePattern* const names = options.pattern.empty() ? nullptr : &*pattern;
  const Result<std::vector<InputFile>> files =
      find_experiment_files(options.inputs, names, "{model}_{framework:pytorch|tensorflow}_{pass}.prof");
  if (!files) return files.error();
  Result<std::vector<ExperimentFactor>> factors = make_pattern_factors(names);
  if (!factors) return std::move(factors).error();
  ExperimentData data;
  data.name = kCprofileFormat;
  data.factors = std::move(*factors);
  for (std::size_t i = 0; i < files->size(); ++i) {
    ExperimentRow row = make_experiment_row((*files)[i], names, i, data);
    row.number = i;
    fill_row_from_profile((*files)[i].path, row);
    data.rows.push_back(std::move(row));
  }
  sort_factor_levels(data);
  data.diagnostics.add({"profile_without_power", files->size(),
                        "profiles contain no power: the energy of rows and functions is unknown",
                        "import one profile with --power, or measure the program with joulemap record"});
  return data;
}

}  // namespace joulemap::ingest
