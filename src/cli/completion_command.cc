// SPDX-License-Identifier: Apache-2.0
#include "cli/completion_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "cli/output.h"
#include "cli/value_checks.h"
#include "cli/verb_description.h"

namespace joulemap::cli {
namespace {

// Shell function for bash and zsh. Its arguments are the previous word and the verbs so far; it prints the candidates
// for the next word: values of an option, verbs, or options.
std::string completion_candidates_function(const std::vector<VerbDescription>& verbs) {
  std::string out = "__joulemap_candidates() {\n  local previous=\"$1\" verbs=\"$2\"\n  case \"$verbs $previous\" in\n";
  for (const VerbDescription& verb : verbs) {
    for (const OptionDescription& option : verb.options) {
      if (option.choices.empty() || option.is_argument) continue;
      for (const std::string& name : option.names)
        out += fmt::format("    '{} {}') echo '{}'; return ;;\n", fmt::join(verb.verb_words, " "), name,
                           fmt::join(option.choices, " "));
    }
  }
  out += "  esac\n  case \"$verbs\" in\n";
  for (const VerbDescription& verb : verbs) {
    std::vector<std::string> words = verb.verbs;
    for (const OptionDescription& option : verb.options) {
      if (option.is_argument) {
        words.insert(words.end(), option.choices.begin(), option.choices.end());
      } else {
        words.insert(words.end(), option.names.begin(), option.names.end());
      }
    }
    out += fmt::format("    '{}') echo '{}' ;;\n", fmt::join(verb.verb_words, " "), fmt::join(words, " "));
  }
  return out + "  esac\n}\n";
}

// Shell function that prints those of its arguments that form a verb: "experiment run".
std::string completion_verbs_function(const std::vector<VerbDescription>& verbs) {
  std::string paths;
  for (const VerbDescription& verb : verbs) {
    if (!verb.verb_words.empty())
      paths += fmt::format("{}'{}'", paths.empty() ? "" : "|", fmt::join(verb.verb_words, " "));
  }
  return fmt::format(
      "__joulemap_verbs() {{\n  local found='' word\n  for word in \"$@\"; do\n"
      "    case \"${{found:+$found }}$word\" in {}) found=\"${{found:+$found }}$word\" ;; esac\n"
      "  done\n  echo \"$found\"\n}}\n",
      paths);
}

std::string bash_script(const std::vector<VerbDescription>& verbs) {
  return "# Completion of joulemap for bash: source it, or place it in a folder of completions.\n" +
         completion_candidates_function(verbs) + completion_verbs_function(verbs) +
         "_joulemap() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" word\n"
         "  for word in \"${COMP_WORDS[@]:0:COMP_CWORD}\"; do\n"
         "    [ \"$word\" = -- ] && { COMPREPLY=($(compgen -c -- \"$current\")); return; }\n"
         "  done\n"
         "  local verbs=\"$(__joulemap_verbs \"${COMP_WORDS[@]:1:COMP_CWORD-1}\")\"\n"
         "  local candidates=''\n"
         // Options only after a dash: before it, files and verbs are what a person looks for.
         "  for word in $(__joulemap_candidates \"$previous\" \"$verbs\"); do\n"
         "    [[ $word == -* && $current != -* ]] || candidates+=\" $word\"\n"
         "  done\n"
         "  COMPREPLY=($(compgen -W \"$candidates\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -F _joulemap joulemap\n";
}

std::string zsh_script(const std::vector<VerbDescription>& verbs) {
  return "#compdef joulemap\n# Completion of joulemap for zsh: place it as _joulemap in a folder of $fpath.\n" +
         completion_candidates_function(verbs) + completion_verbs_function(verbs) +
         "_joulemap() {\n"
         "  if (( ${words[(I)--]} && ${words[(I)--]} < CURRENT )); then _normal; return; fi\n"
         "  local verbs=\"$(__joulemap_verbs ${words[2,CURRENT-1]})\"\n"
         "  local -a candidates=(${=$(__joulemap_candidates \"${words[CURRENT-1]}\" \"$verbs\")})\n"
         // Options only after a dash, files only where there are no values or verbs to choose.
         "  if [[ \"${words[CURRENT]}\" != -* ]]; then candidates=(${candidates:#-*}); fi\n"
         "  if (( ${#candidates} )); then compadd -a candidates; else _files; fi\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _joulemap ]; then _joulemap; else compdef _joulemap joulemap; fi\n";
}

std::string quote_for_fish(std::string_view text) {
  std::string out = "'";
  for (const char letter : text) {
    if (letter == '\'' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + "'";
}

// One `complete` line per option, with the condition that the words of its verb were given.
std::string fish_script(const std::vector<VerbDescription>& verbs) {
  std::string out = "# Completion of joulemap for fish: place it in a folder of completions.\n";
  for (const VerbDescription& verb : verbs) {
    std::string condition;
    for (const std::string& word : verb.verb_words)
      condition += fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ", word);
    if (!verb.verbs.empty())
      condition += fmt::format("{}not __fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ",
                               fmt::join(verb.verbs, " "));
    const std::string start = fmt::format("complete -c joulemap -n {}", quote_for_fish(condition));
    for (const std::string& child_verb : verb.verbs) out += fmt::format("{} -f -a {}\n", start, child_verb);
    for (const OptionDescription& option : verb.options) {
      if (option.is_argument) {
        if (!option.choices.empty()) out += fmt::format("{} -f -a '{}'\n", start, fmt::join(option.choices, " "));
        continue;
      }
      out += start;
      for (const std::string& name : option.names)
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.choices.empty()) {
        out += fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
      } else if (!option.value_placeholder.empty()) {
        out += " -r";
      }
      out += fmt::format(" -d {}\n", quote_for_fish(option.help_text));
    }
  }
  return out;
}

}  // namespace

void add_completion_command(CLI::App& verb, CommandLine& line) {
  const auto shell = std::make_shared<std::string>();
  verb.footer(
      "bash: joulemap completion bash > ~/.local/share/bash-completion/completions/joulemap\n"
      "zsh:  joulemap completion zsh > ~/.zfunc/_joulemap   (a folder of $fpath)\n"
      "fish: joulemap completion fish > ~/.config/fish/completions/joulemap.fish");
  verb.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(word_choice_validator({"bash", "zsh", "fish"}));
  verb.callback([shell, &line] {
    const std::vector<VerbDescription> verbs = describe_verbs(*line.cli_app);
    const Status write_status = write_to_stream(StandardStream::out, *shell == "bash"  ? bash_script(verbs)
                                                                     : *shell == "zsh" ? zsh_script(verbs)
                                                                                       : fish_script(verbs));
    line.exit_code = write_status ? kExitSuccess : print_error(write_status.error());
  });
}

}  // namespace joulemap::cli
