// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan/command_template.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>

namespace joulemap::experiment {
namespace {

const std::vector<ExperimentFactor> kFactors = {{"variant", {"plain", "it's; echo $HOME \"&\" | {x}"}},
                                                {"batch", {"32"}}};

PlaceholderValues values(std::size_t variant, std::size_t row = 0) {
  const std::vector<std::size_t> levels = {variant, 0};
  return make_placeholder_values(kFactors, levels, {row, 1, 7, "/exp/rows/00000/attempt-1"});
}

std::string shell_output_of(const std::vector<std::string>& command) {
  EXPECT_EQ(command.size(), 3u);
  EXPECT_EQ(command[0], "sh");
  // popen runs a shell: the text reaches it as through sh -c.
  FILE* const pipe = ::popen(command[2].c_str(), "r");
  std::array<char, 200> text{};
  const std::size_t size = std::fread(text.data(), 1, text.size() - 1, pipe);
  ::pclose(pipe);
  return {text.data(), size};
}

TEST(CommandTemplate, FillsPlaceholdersWithinWords) {
  const CommandSpec command{
      {"train", "--variant={variant}", "{batch}", "{folder}/m.json", "{{batch}}", "${HOME} {} {\"a\": {}}"}, ""};
  ASSERT_TRUE(check_command_template(command, kFactors));
  const std::vector<std::string> expected_arguments = {"train",   "--variant=" + kFactors[0].levels[1],
                                                       "32",      "/exp/rows/00000/attempt-1/m.json",
                                                       "{batch}", "${HOME} {} {\"a\": {}}"};
  EXPECT_EQ(expand_command(command, values(1)), expected_arguments);
}

TEST(CommandTemplate, AShellReceivesAnyLevelVerbatim) {
  const CommandSpec command{{}, "printf '%s|' {variant} x{batch}"};
  ASSERT_TRUE(check_command_template(command, kFactors));
  EXPECT_EQ(shell_output_of(expand_command(command, values(1))), kFactors[0].levels[1] + "|x32|");
}

TEST(CommandTemplate, RefusesAPlaceholderWithinShellQuotes) {
  EXPECT_FALSE(check_command_template({{}, "echo \"{variant}\""}, kFactors));
  EXPECT_FALSE(check_command_template({{}, "echo '{variant}'"}, kFactors));
  EXPECT_TRUE(check_command_template({{}, "echo \\' {variant} \"$HOME\" {batch}"}, kFactors));
}

TEST(CommandTemplate, RefusesAPlaceholderWhereQuotingHasNoEffect) {
  const std::vector<std::string> unsafe_commands = {
      "cat <<EOF\n{variant}\nEOF",
      "cat <<-EOF\n\ta\n\t{variant}\n\tEOF\n",
      "cat <<'EOF'\n{variant}\nEOF",
      "cat << \"a b\" | sort\nit's\n{variant}\na b\n",
      "cat <<A <<B\n1\nA\n{variant}\nB\n",
      "cat <<{variant}\nEOF",
      "cat <<EOF {batch}\n$HOME\n EOF\n{variant}\nEOF",
      "echo \\{variant}",
      "echo `echo {variant}`",
      "echo \"`echo \"{variant}\"`\"",
      "# it's\necho '{variant}'",
      "echo $'it\\'s' {variant} '",
  };
  for (const std::string& text : unsafe_commands) EXPECT_FALSE(check_command_template({{}, text}, kFactors)) << text;
}

TEST(CommandTemplate, AcceptsAPlaceholderBesideHereDocumentsCommentsAndHereStrings) {
  const std::vector<std::string> safe_commands = {
      "cat <<EOF\n$HOME it's\nEOF\necho {variant}",
      "cat <<EOF {variant}\nx\nEOF",
      "cat <<-'EOF'\n\t\"\n\tEOF\necho {variant}",
      "# it's\necho {variant}",
      "echo a#b'c' {variant} # don't",
      "echo $(echo {variant}) > /dev/null",
      "echo {batch}# {variant}",
      "echo `date` {variant}",
  };
  for (const std::string& text : safe_commands) EXPECT_TRUE(check_command_template({{}, text}, kFactors)) << text;
}

TEST(CommandTemplate, AnUnknownNameIsRefused) {
  const Status checked = check_command_template({{"run", "{bacth}"}, ""}, kFactors);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("{bacth}"), std::string::npos);
}

TEST(CommandTemplate, FindsFactorsThatTheCommandDoesNotUse) {
  ExperimentSpec spec;
  spec.factors = {{"a", {"1", "2"}, true}, {"b", {"1", "2"}, true}, {"c", {"1", "2"}, true}, {"d", {"1"}, true}};
  EXPECT_TRUE(find_unused_factors(spec).empty());  // no command: rows of another tool
  spec.command.shell_text = "echo {a} {{c}}";
  spec.environment = {{"B", "{b}"}};
  EXPECT_EQ(find_unused_factors(spec), std::vector<std::string>{"c"});
}

TEST(CommandTemplate, SeedsOfRowsDifferAndAreReproducible) {
  EXPECT_EQ(expand_placeholders("{seed}", values(0, 3)), expand_placeholders("{seed}", values(1, 3)));
  EXPECT_NE(expand_placeholders("{seed}", values(0, 3)), expand_placeholders("{seed}", values(0, 4)));
}

}  // namespace
}  // namespace joulemap::experiment
