// SPDX-License-Identifier: Apache-2.0
#include "cli/measured_tables.h"

#include <array>
#include <filesystem>
#include <tuple>

#include "base/small_file.h"
#include "cli/model_file.h"

namespace joulemap::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 2> kTableFileExtensions = {".csv.gz", ".csv"};

// Reads the table `name` of a folder: name.csv.gz, else name.csv. Returns an empty text if neither exists.
Result<std::string> read_measured_table(const fs::path& folder, const std::string& name) {
  for (const char* ending : kTableFileExtensions) {
    const std::string path = (folder / (name + ending)).string();
    if (file_exists(path)) return read_plain_or_gzip_file(path);
  }
  return std::string();
}

// Appends the rows of the CSV text `appended_csv` to `table`. Fails if the columns differ. An empty text has no rows.
Status append_csv_rows(std::string& table, std::string appended_csv, const std::string& name) {
  if (table.empty()) {
    table = std::move(appended_csv);
    return Done{};
  }
  if (appended_csv.empty()) return Done{};
  const std::size_t head = appended_csv.find('\n');
  if (head == std::string::npos || table.compare(0, head + 1, appended_csv, 0, head + 1) != 0) {
    return Error{ErrorCode::malformed, name + ".csv has different columns in different folders",
                 "write it again: python -m joulemap collect --out ROWS --tables FOLDER"};
  }
  if (table.back() != '\n') table += '\n';
  table.append(appended_csv, head + 1);
  return Done{};
}

// The folder `name` next to `folder`. Resolves `folder` first, so that this works for "data/h200/" and ".", too.
fs::path sibling_folder(const std::string& folder, const char* name) {
  std::error_code path_error;  // not reported here: reading the tables reports the reason
  const fs::path resolved_folder = fs::weakly_canonical(fs::path(folder), path_error);
  return (path_error ? fs::path(folder) : resolved_folder).parent_path() / name;
}

}  // namespace

Result<predict::FitTables> read_measured_tables(const std::vector<std::string>& folders, const std::string& device) {
  predict::FitTables tables;
  tables.device = device;
  const auto add = [](std::string& table, const fs::path& folder, const std::string& name) -> Status {
    Result<std::string> text = read_measured_table(folder, name);
    if (!text) return std::move(text).error();
    return append_csv_rows(table, std::move(*text), name);
  };
  for (const std::string& folder : folders) {
    for (const auto& [table, name] : {std::pair<std::string*, const char*>{&tables.operations, "operations"},
                                      {&tables.layers, "layers"},
                                      {&tables.networks, "networks"},
                                      {&tables.busy, "busy"}}) {
      if (const Status add_status = add(*table, folder, name); !add_status) return add_status.error();
    }
    // Lists of network operations do not depend on the GPU: those next to the first folder that has them are used.
    for (const auto& [operations, settings, name] :
         {std::tuple{&tables.network_operations, &tables.network_settings, "networks"},
          std::tuple{&tables.study_operations, &tables.study_settings, "seed"}}) {
      if (!operations->empty()) continue;
      if (const Status add_status = add(*operations, sibling_folder(folder, name), "operations"); !add_status)
        return add_status.error();
      if (const Status add_status = add(*settings, sibling_folder(folder, name), "settings"); !add_status)
        return add_status.error();
    }
  }
  if (tables.operations.empty()) {
    return Error{ErrorCode::not_found, "no operations.csv.gz in " + folders.front(),
                 "python -m joulemap collect --out ROWS --tables " + folders.front()};
  }
  return tables;
}

std::vector<std::string> measured_table_files(const std::vector<std::string>& folders) {
  std::vector<std::string> files;
  for (const std::string& folder : folders) {
    for (const fs::path& candidate :
         {fs::path(folder), sibling_folder(folder, "networks"), sibling_folder(folder, "seed")}) {
      for (const char* name : {"operations", "layers", "networks", "busy", "settings"}) {
        for (const char* ending : kTableFileExtensions) {
          if (std::string path = (candidate / (std::string(name) + ending)).string(); file_exists(path)) {
            files.push_back(std::move(path));
          }
        }
      }
    }
  }
  return files;
}

Result<std::string> read_networks_table(const std::string& folder) {
  Result<std::string> text = read_measured_table(folder, "networks");
  if (!text || !text->empty()) return text;
  return Error{ErrorCode::not_found, "no networks.csv.gz in " + folder,
               "python -m joulemap collect --kinds network --out ROWS --tables " + folder};
}

}  // namespace joulemap::cli
