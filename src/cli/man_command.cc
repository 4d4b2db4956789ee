// SPDX-License-Identifier: Apache-2.0
#include "cli/man_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/output.h"
#include "cli/verb_description.h"

namespace joulemap::cli {
namespace {

// Escapes text for roff: a backslash, a dash (else shown as a hyphen that cannot be copied), and a dot or apostrophe at
// the beginning of a line, which would be a roff command.
std::string escape_roff(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if ((letter == '.' || letter == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else {
      out += letter;
    }
  }
  return out;
}

std::string option_names_roff(const OptionDescription& option) {
  std::string out;
  for (const std::string& name : option.names)
    out += fmt::format("{}\\fB{}\\fR", out.empty() ? "" : ", ", escape_roff(name));
  if (!option.value_placeholder.empty() && !option.is_argument)
    out += fmt::format(" \\fI{}\\fR", escape_roff(option.value_placeholder));
  return out;
}

std::string synopsis_roff(const VerbDescription& verb, const std::string& command) {
  std::string out = fmt::format(".SH SYNOPSIS\n.B {}\n", escape_roff(command));
  if (!verb.verbs.empty()) out += ".I VERB\n";
  out += "[\\fIOPTIONS\\fR]\n";
  for (const OptionDescription& option : verb.options) {
    if (option.is_argument) out += fmt::format(".I {}\n", escape_roff(option.names.front()));
  }
  return out;
}

std::string man_page(const VerbDescription& verb, const std::vector<VerbDescription>& all_verbs) {
  const std::string name =
      fmt::format("joulemap{}{}", verb.verb_words.empty() ? "" : "-", fmt::join(verb.verb_words, "-"));
  const std::string command =
      fmt::format("joulemap{}{}", verb.verb_words.empty() ? "" : " ", fmt::join(verb.verb_words, " "));
  std::string out = fmt::format(".TH {} 1 \"\" \"joulemap {}\" \"Joulemap\"\n.SH NAME\n{} \\- {}\n", escape_roff(name),
                                JOULEMAP_VERSION, escape_roff(name), escape_roff(verb.summary));
  out += synopsis_roff(verb, command) + ".SH OPTIONS\n";
  for (const OptionDescription& option : verb.options)
    out += fmt::format(".TP\n{}\n{}\n", option_names_roff(option), escape_roff(option.help_text));
  if (!verb.verbs.empty()) {
    out += ".SH VERBS\n";
    for (const VerbDescription& child_verb : all_verbs) {
      if (child_verb.verb_words.size() != verb.verb_words.size() + 1 ||
          !std::equal(verb.verb_words.begin(), verb.verb_words.end(), child_verb.verb_words.begin()))
        continue;
      out +=
          fmt::format(".TP\n.B {}\n{}\n", escape_roff(child_verb.verb_words.back()), escape_roff(child_verb.summary));
    }
  }
  if (!verb.help_footer.empty()) out += fmt::format(".SH NOTES\n.nf\n{}\n.fi\n", escape_roff(verb.help_footer));
  out +=
      ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 3 data lost (--strict), 77 not possible on this machine. stat "
      "and record: that of the command.\n";
  if (!verb.verb_words.empty()) out += ".SH SEE ALSO\n.BR joulemap (1)\n";
  return out;
}

int write_man_pages(const std::string& folder, const CommandLine& line) {
  const std::vector<VerbDescription> verbs = describe_verbs(*line.cli_app);
  const std::string section = folder + "/man1";
  std::error_code error;
  std::filesystem::create_directories(section, error);
  if (error) {
    return print_error({ErrorCode::io, fmt::format("cannot create the folder {}: {}", section, error.message()),
                        "name a folder that you may write to"});
  }
  for (const VerbDescription& verb : verbs) {
    const std::string path =
        fmt::format("{}/joulemap{}{}.1", section, verb.verb_words.empty() ? "" : "-", fmt::join(verb.verb_words, "-"));
    const Status write_status = write_to_file_or_stdout(path, man_page(verb, verbs), {});
    if (!write_status) return print_error(write_status.error());
  }
  return kExitSuccess;
}

}  // namespace

void add_man_command(CLI::App& verb, CommandLine& line) {
  const auto folder = std::make_shared<std::string>();
  verb.footer("To read a page: man -M DIR joulemap-record");
  verb.add_option("DIR", *folder, "folder of man pages; files go to DIR/man1")->required();
  verb.callback([folder, &line] { line.exit_code = write_man_pages(*folder, line); });
}

}  // namespace joulemap::cli
