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
  OptionDescription described;
  described.is_argument = option.get_positional();
  if (described.is_argument) described.names.push_back(option.get_name(true));
  for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  const std::string type_name = option.get_type_name();
  described.value_placeholder = option.get_items_expected_max() > 0 ? type_name.substr(0, type_name.find(':')) : "";
  described.choices = parse_choices(type_name);
  described.help_text = option.get_description();
  return described;
}

void add_verb_descriptions(const CLI::App& app, std::vector<std::string> path, std::vector<VerbDescription>& verbs) {
  VerbDescription described{std::move(path), app.get_description(), {}, {}, app.get_footer()};
  for (const CLI::Option* const option : app.get_options()) described.options.push_back(describe_option(*option));
  const auto below = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* const verb : below) described.verbs.push_back(verb->get_name());
  path = described.verb_words;
  verbs.push_back(std::move(described));
  for (const CLI::App* const verb : below) {
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
