// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_description.h"

#include "base/text.h"

namespace joulemap::cli {
namespace {

// The values that an option accepts, from CLI11's type name "LEVEL:{domain,phase}". Empty if there is no list.
std::vector<std::string> parse_choices(const std::string& type_name) {
  const std::size_t begin = type_name.find('{');
  const std::size_t end = type_name.find('}', begin);
  std::vector<std::string> choices;
  if (begin == std::string::npos || end == std::string::npos) return choices;
  for (const std::string_view choice : split(std::string_view(type_name).substr(begin + 1, end - begin - 1), ','))
    choices.emplace_back(choice);
  return choices;
}

OptionDescription describe_option(const CLI::Option& option) {
  OptionDescription option_description;
  option_description.is_argument = option.get_positional();
  if (option_description.is_argument) option_description.names.push_back(option.get_name(true));
  for (const std::string& name : option.get_snames()) option_description.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) option_description.names.push_back("--" + name);
  const std::string type_name = option.get_type_name();
  option_description.value_placeholder =
      option.get_items_expected_max() > 0 ? type_name.substr(0, type_name.find(':')) : "";
  option_description.choices = parse_choices(type_name);
  option_description.help_text = option.get_description();
  return option_description;
}

void add_verb_descriptions(const CLI::App& app, std::vector<std::string> path, std::vector<VerbDescription>& verbs) {
  VerbDescription verb_description{std::move(path), app.get_description(), {}, {}, app.get_footer()};
  for (const CLI::Option* const option : app.get_options())
    verb_description.options.push_back(describe_option(*option));
  const auto child_verbs = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* const verb : child_verbs) verb_description.verbs.push_back(verb->get_name());
  path = verb_description.verb_words;
  verbs.push_back(std::move(verb_description));
  for (const CLI::App* const verb : child_verbs) {
    path.push_back(verb->get_name());
    add_verb_descriptions(*verb, path, verbs);
    path.pop_back();
  }
}

}  // namespace

std::vector<VerbDescription> describe_verbs(const CLI::App& app) {
  std::vector<VerbDescription> verbs;
  add_verb_descriptions(app, {}, verbs);
  return verbs;
}

}  // namespace joulemap::cli
