// SPDX-License-Identifier: Apache-2.0
#include "cli/usage_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/nearest_word.h"
#include "base/text.h"

namespace joulemap::cli {
namespace {

// The parsers of the command line from the outside in: joulemap, its verb, the subcommand of the verb.
std::vector<const CLI::App*> parsed_verb_chain(const CLI::App& app) {
  std::vector<const CLI::App*> verb_chain = {&app};
  while (!verb_chain.back()->get_subcommands().empty())
    verb_chain.push_back(verb_chain.back()->get_subcommands().front());
  return verb_chain;
}

std::string printable_word(std::string_view word) {
  const bool is_plain = std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c <= '~'; });
  return is_plain && word.size() <= 60 ? std::string(word) : joulemap::quoted(word);
}

Error make_usage_error(const CLI::App& app, std::string message) {
  const std::string path = parsed_verb_name(app);
  return {ErrorCode::usage, std::move(message), fmt::format("see joulemap {}--help", path.empty() ? "" : path + " ")};
}

std::string suggest_similar_word(std::string_view mistyped_word, const std::vector<std::string>& known_words,
                                 std::string_view option_prefix) {
  const std::optional<std::string> nearest_match = nearest_word(mistyped_word, known_words);
  return nearest_match ? fmt::format("; did you mean {}{}?", option_prefix, *nearest_match) : std::string();
}

// Long option names that the innermost verb accepts: its own, and with fallthrough those of enclosing verbs.
std::vector<std::string> accepted_option_names(const std::vector<const CLI::App*>& verb_chain) {
  std::vector<std::string> names;
  for (std::size_t i = verb_chain.size(); i-- > 0;) {
    for (const CLI::Option* const option : verb_chain[i]->get_options()) {
      names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
    }
    if (!verb_chain[i]->get_fallthrough()) break;
  }
  return names;
}

Error unknown_option_error(const std::vector<const CLI::App*>& verb_chain, const std::string& word) {
  const std::string option = word.substr(0, word.find('='));
  const std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  const CLI::App& program = *verb_chain.front();
  if (verb_chain.size() > 1 && program.get_option_no_throw(option) != nullptr) {
    return make_usage_error(program, fmt::format("{0} must precede the verb: joulemap {0} ...", option));
  }
  return make_usage_error(program, fmt::format("unknown option {}{}", printable_word(option),
                                               suggest_similar_word(name, accepted_option_names(verb_chain), "--")));
}

Error surplus_word_error(const std::vector<const CLI::App*>& verb_chain, const std::string& word) {
  std::vector<std::string> verbs;
  for (const CLI::App* const verb : verb_chain.back()->get_subcommands([](const CLI::App*) { return true; })) {
    verbs.push_back(verb->get_name());
  }
  if (verbs.empty()) {
    return make_usage_error(*verb_chain.front(), fmt::format("unexpected argument {}", printable_word(word)));
  }
  return make_usage_error(*verb_chain.front(), fmt::format("unknown verb {}{}", joulemap::quoted(word),
                                                           suggest_similar_word(word, verbs, "")));
}

// Words that the parser did not use, without those of a command to run (record, stat).
std::vector<std::string> find_unused_words(const std::vector<const CLI::App*>& verb_chain) {
  std::vector<std::string> unused_words;
  for (const CLI::App* const app : verb_chain) {
    for (const std::string& word : app->remaining()) {
      if (app->get_prefix_command() && !word.starts_with('-')) break;
      unused_words.push_back(word);
    }
  }
  return unused_words;
}

const CLI::Option* find_option(const std::vector<const CLI::App*>& verb_chain, const std::string& name) {
  for (const CLI::App* const app : verb_chain) {
    const CLI::Option* const option = name.starts_with('-') ? app->get_option_no_throw(name) : nullptr;
    if (option != nullptr) return option;
  }
  return nullptr;
}

// Rejects two kinds of words that CLI11 misinterprets: for "--option=" it takes the next word as the value, and "++"
// ends the words of a verb.
std::optional<Error> misread_word_error(const std::vector<const CLI::App*>& verb_chain,
                                        const std::vector<std::string>& words) {
  const std::size_t wrapped_word_count =
      verb_chain.back()->get_prefix_command() ? verb_chain.back()->remaining().size() : 0;
  bool is_value = false;
  for (std::size_t i = 0; i + wrapped_word_count < words.size(); ++i) {
    if (std::exchange(is_value, false)) continue;
    if (words[i] == "++") return surplus_word_error(verb_chain, words[i]);
    const std::size_t equals_position = words[i].find('=');
    const CLI::Option* const option = find_option(verb_chain, words[i].substr(0, equals_position));
    if (option == nullptr) continue;
    if (equals_position + 1 == words[i].size()) {
      return make_usage_error(*verb_chain.front(),
                              fmt::format("{} has an empty value", words[i].substr(0, equals_position)));
    }
    is_value = equals_position == std::string::npos && option->get_items_expected_min() > 0;
  }
  return std::nullopt;
}

std::optional<Error> repeated_option_error(const std::vector<const CLI::App*>& verb_chain) {
  for (const CLI::App* const app : verb_chain) {
    for (const CLI::Option* const option : app->get_options()) {
      const bool takes_one_value =
          option->get_items_expected_max() == 1 && option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw;
      if (!takes_one_value || option->count() < 2) continue;
      return make_usage_error(*verb_chain.front(), fmt::format("{} is given {} times; it takes one value",
                                                               option->get_name(), option->count()));
    }
  }
  return std::nullopt;
}

}  // namespace

std::string parsed_verb_name(const CLI::App& app) {
  std::string path;
  for (const CLI::App* const verb : parsed_verb_chain(app)) {
    if (verb != &app) path += (path.empty() ? "" : " ") + verb->get_name();
  }
  return path;
}

std::optional<Error> find_usage_error(const CLI::App& app, const CommandLine& line,
                                      const std::vector<std::string>& words) {
  const std::vector<const CLI::App*> verb_chain = parsed_verb_chain(app);
  if (std::optional<Error> misread_error = misread_word_error(verb_chain, words)) return misread_error;
  if (std::optional<Error> repeated_error = repeated_option_error(verb_chain)) return repeated_error;
  const std::vector<std::string> unused_words = find_unused_words(verb_chain);
  const auto option =
      std::find_if(unused_words.begin(), unused_words.end(), [](const auto& word) { return word.starts_with('-'); });
  if (option != unused_words.end()) return unknown_option_error(verb_chain, *option);
  if (!unused_words.empty()) return surplus_word_error(verb_chain, unused_words.front());
  if (!line.replay_option.empty() && verb_chain.size() > 1 &&
      std::ranges::count(line.verbs_replaying, verb_chain.back()) == 0)
    return Error{ErrorCode::usage, "this verb does not replay samples: --replay has no effect", "remove --replay"};
  const auto& command_taking_verbs = line.verbs_taking_command;
  if (!line.has_double_dash || verb_chain.size() == 1) return std::nullopt;
  if (std::find(command_taking_verbs.begin(), command_taking_verbs.end(), verb_chain.back()) !=
      command_taking_verbs.end())
    return std::nullopt;
  return Error{ErrorCode::usage, "this verb does not run a command", "remove -- and everything after it"};
}

}  // namespace joulemap::cli
