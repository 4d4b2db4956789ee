// SPDX-License-Identifier: Apache-2.0
#include "ingest/epoch_logs/experiment_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/small_file.h"
#include "base/text.h"

namespace joulemap::ingest {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExamplePattern = "{framework}-{run}.csv";

bool is_repetition_field(std::string_view field) { return field == "run" || field == "rep" || field == "repetition"; }

Status add_file_if_matching(const fs::path& path, const FileNamePattern* pattern, bool is_named,
                            std::vector<InputFile>& files) {
  const std::string name = path.filename().string();
  if (pattern == nullptr) {
    files.push_back({path.string(), {}});
    return Done{};
  }
  std::optional<FileNamePattern::FieldValues> fields = pattern->match(name);
  if (fields) files.push_back({path.string(), *std::move(fields)});
  if (fields || !is_named) return Done{};
  return Error{ErrorCode::usage, fmt::format("{} does not match the pattern", path.string()),
               fmt::format("take its name and put its fields in braces, as in --pattern '{}'", kExamplePattern)};
}

std::size_t find_or_add_level(ExperimentFactor& factor, const std::string& level) {
  const auto matching_level = std::find(factor.levels.begin(), factor.levels.end(), level);
  const auto index = static_cast<std::size_t>(matching_level - factor.levels.begin());
  if (matching_level == factor.levels.end()) factor.levels.push_back(level);
  return index;
}

}  // namespace

Result<std::vector<InputFile>> find_experiment_files(const std::vector<std::string>& inputs,
                                                     const FileNamePattern* pattern, std::string_view example) {
  std::vector<InputFile> files;
  for (const std::string& input : inputs) {
    std::error_code error;
    if (!fs::is_directory(input, error)) {
      if (Status add_status = add_file_if_matching(input, pattern, true, files); !add_status)
        return std::move(add_status).error();
      continue;
    }
    if (pattern == nullptr) {
      return Error{ErrorCode::usage, fmt::format("{} is a folder: a pattern must select its files", input),
                   fmt::format("--pattern '{}'", example)};
    }
    std::vector<fs::path> file_paths;
    for (fs::recursive_directory_iterator at(input, error), end; !error && at != end; at.increment(error)) {
      if (at->is_regular_file(error)) file_paths.push_back(at->path());
    }
    if (error) return Error{ErrorCode::io, fmt::format("read {}: {}", input, error.message()), ""};
    std::sort(file_paths.begin(), file_paths.end(),
              [](const fs::path& a, const fs::path& b) { return natural_less(a.string(), b.string()); });
    for (const fs::path& path : file_paths) {
      if (Status add_status = add_file_if_matching(path, pattern, false, files); !add_status)
        return std::move(add_status).error();
    }
  }
  if (!files.empty()) return files;
  return Error{ErrorCode::not_found, "no file matches the pattern",
               "take the name of a file and put its fields in braces"};
}

Result<std::vector<ExperimentFactor>> make_pattern_factors(const FileNamePattern* pattern) {
  std::vector<ExperimentFactor> factors;
  if (pattern == nullptr) return std::vector<ExperimentFactor>{{"run", {"all"}, true}};
  for (const std::string& field : pattern->field_names()) {
    if (!is_repetition_field(field)) factors.push_back({field, {}, true});
  }
  if (!factors.empty()) return factors;
  return Error{ErrorCode::usage, "the pattern has no field besides the repetition",
               fmt::format("--pattern '{}'", kExamplePattern)};
}

ExperimentRow make_experiment_row(const InputFile& file, const FileNamePattern* pattern, std::size_t number,
                                  ExperimentData& data) {
  ExperimentRow row;
  row.block = pattern == nullptr ? number : 0;
  std::size_t factor = 0;
  for (std::size_t i = 0; pattern != nullptr && i < pattern->field_names().size(); ++i) {
    const std::string& field = pattern->field_names()[i];
    const std::string& value = file.field_values.at(field);
    if (is_repetition_field(field)) {
      const std::uint64_t repetition = parse_u64(value).value_or(number + 1);
      row.block = repetition > 0 ? repetition - 1 : 0;
      continue;
    }
    row.levels.push_back(find_or_add_level(data.factors[factor++], value));
  }
  if (pattern == nullptr) row.levels.push_back(0);
  return row;
}

void sort_factor_levels(ExperimentData& data) {
  for (std::size_t factor = 0; factor < data.factors.size(); ++factor) {
    const std::vector<std::string> unsorted_levels = data.factors[factor].levels;
    std::vector<std::string>& levels = data.factors[factor].levels;
    std::sort(levels.begin(), levels.end(), natural_less);
    for (ExperimentRow& row : data.rows)
      row.levels[factor] = find_or_add_level(data.factors[factor], unsorted_levels[row.levels[factor]]);
  }
}

}  // namespace joulemap::ingest
