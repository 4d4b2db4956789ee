// SPDX-License-Identifier: Apache-2.0
#include "cli/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/nearest_word.h"
#include "base/small_file.h"
#include "base/text.h"
#include "formats/document.h"

namespace joulemap::cli {
namespace {

constexpr std::size_t kMaxConfig_bytes = 64 << 10;
// Options that a configuration file may set: those that describe a machine or a site. Options of a single run are not
// allowed, because a forgotten file would change later runs unnoticed.
constexpr std::array<std::string_view, 13> kConfigKeys = {
    "carbon-data",   "color",   "device", "embodied-kg", "gco2-per-kwh", "lifetime-years", "period",
    "price-per-kwh", "profile", "pue",    "region",      "sensors",      "trace"};

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): there is one thread
  return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::string> list_config_files() {
  if (const std::string config_file = environment_variable("JOULEMAP_CONFIG"); !config_file.empty())
    return config_file == "none" ? std::vector<std::string>() : std::vector{config_file};
  std::vector<std::string> files;
  const std::string config = environment_variable("XDG_CONFIG_HOME");
  const std::string home_directory = environment_variable("HOME");
  if (!config.empty()) {
    files.push_back(config + "/joulemap/joulemap.toml");
  } else if (!home_directory.empty()) {
    files.push_back(home_directory + "/.config/joulemap/joulemap.toml");
  }
  files.emplace_back("joulemap.toml");
  return files;
}

std::optional<std::string> config_value_text(const formats::DocumentValue& value) {
  if (const auto text = value.text()) return text;
  if (const auto integer = value.integer()) return std::to_string(*integer);
  if (const auto number = value.number()) return fmt::format("{}", *number);
  return std::nullopt;
}

Error config_file_error(const std::string& file, std::string message, std::string remedy) {
  return {ErrorCode::usage, fmt::format("{}: {}", file, std::move(message)), std::move(remedy)};
}

// `verb_name`: of the table that contains the key; empty: outside of all tables. `verbs`: those that the key applies to.
Error unknown_config_key_error(const std::string& file, const std::string& key, std::string_view verb_name,
                               const std::vector<CLI::App*>& verbs) {
  std::vector<std::string> known_keys;
  for (const std::string_view known_key : kConfigKeys) {
    const std::string option_name = fmt::format("--{}", known_key);
    const auto has_option = [&](CLI::App* verb) { return verb->get_option_no_throw(option_name) != nullptr; };
    if (std::ranges::any_of(verbs, has_option)) known_keys.emplace_back(known_key);
  }
  const std::string table = verb_name.empty() ? "" : fmt::format(" of [{}]", verb_name);
  const bool is_key_of_other_verbs = std::ranges::count(kConfigKeys, key) > 0;
  const std::string message = is_key_of_other_verbs ? fmt::format("{} is not a key{}", joulemap::quoted(key), table)
                                                    : fmt::format("unknown key {}{}", joulemap::quoted(key), table);
  const std::optional<std::string> nearest_key = is_key_of_other_verbs ? std::nullopt : nearest_word(key, known_keys);
  return config_file_error(file, message,
                           nearest_key          ? fmt::format("did you mean {}?", *nearest_key)
                           : known_keys.empty() ? fmt::format("[{}] has no keys", verb_name)
                                                : fmt::format("keys{} are {}", table, fmt::join(known_keys, ", ")));
}

// Sets the default of the option `key` of one verb. Returns false if the verb has no such option, and fails if the
// value is not valid.
Result<bool> set_option_default(CLI::App& verb, const std::string& key, const std::string& value,
                                const std::string& file) {
  CLI::Option* const option = verb.get_option_no_throw("--" + key);
  if (option == nullptr) return false;
  try {
    option->run_callback_for_default()->default_val(value);
  } catch (const CLI::Error& error) {
    return config_file_error(file, fmt::format("{} = {}: {}", key, joulemap::quoted(value), error.what()),
                             "correct the value");
  }
  return true;
}

CLI::App* find_verb(CLI::App& app, const std::string& name) {
  const auto matching_verbs = app.get_subcommands([&name](CLI::App* verb) { return verb->get_name() == name; });
  return matching_verbs.empty() ? nullptr : matching_verbs.front();
}

// `verb_name`: of the table; empty: the whole file.
Status apply_config_table(CLI::App& app, const std::vector<CLI::App*>& verbs, const formats::DocumentValue& table,
                          const std::string& file, std::string_view verb_name) {
  for (const formats::DocumentMember& member : *table.table()) {
    if (verb_name.empty() && member.value.table() != nullptr) {
      CLI::App* const verb = find_verb(app, member.key);
      if (verb == nullptr)
        return config_file_error(file, fmt::format("unknown verb [{}]", member.key), "see joulemap --help");
      if (Status apply_status = apply_config_table(app, {verb}, member.value, file, member.key); !apply_status)
        return apply_status;
      continue;
    }
    if (std::ranges::count(kConfigKeys, member.key) == 0)
      return unknown_config_key_error(file, member.key, verb_name, verbs);
    const std::optional<std::string> value = config_value_text(member.value);
    if (!value) return config_file_error(file, fmt::format("{} is no text or number", member.key), "correct the value");
    bool is_known = false;
    for (CLI::App* const verb : verbs) {
      Result<bool> option_result = set_option_default(*verb, member.key, *value, file);
      if (!option_result) return std::move(option_result).error();
      is_known = is_known || *option_result;
    }
    if (!is_known) return unknown_config_key_error(file, member.key, verb_name, verbs);
  }
  return Done{};
}

}  // namespace

Status apply_config_files(CLI::App& app) {
  const bool is_config_variable_set = !environment_variable("JOULEMAP_CONFIG").empty();
  for (const std::string& file : list_config_files()) {
    const Result<std::string> text = read_file_start(file, kMaxConfig_bytes);
    // A file that this user may not read counts as absent, unless JOULEMAP_CONFIG names it.
    const bool is_config_file_absent =
        !text && (text.error().code == ErrorCode::not_found || text.error().code == ErrorCode::permission);
    if (is_config_file_absent && !is_config_variable_set) continue;
    if (!text) return text.error();
    const Result<formats::DocumentValue> document = formats::read_toml(*text, file);
    if (!document) return document.error();
    std::vector<CLI::App*> verbs = {&app};
    for (CLI::App* const verb : app.get_subcommands([](CLI::App*) { return true; })) verbs.push_back(verb);
    if (Status apply_status = apply_config_table(app, verbs, *document, file, ""); !apply_status) return apply_status;
  }
  return Done{};
}

}  // namespace joulemap::cli
