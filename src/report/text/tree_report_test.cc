// SPDX-License-Identifier: Apache-2.0
//
// Tests of the report tree: sums, selected lines, and the layout at 80 columns and in ASCII.
#include <gtest/gtest.h>

#include "report/text/kernel_names.h"
#include "report/text/tree_lines.h"
#include "report/text/tree_text.h"
#include "support/golden.h"
#include "support/ledger_example.h"

namespace joulemap::report {
namespace {

const EnergyNode* find_child(const EnergyNode& node, const std::string& name) {
  for (const EnergyNode& candidate : node.children) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

std::size_t longest_line_length(const std::string& text) {
  std::size_t max_length = 0;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    max_length = std::max(max_length, count_display_columns(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  return max_length;
}

TEST(EnergyTree, ABranchSumsItsChildrenAndItsOwnEnergy) {
  const EnergyNode root = energy_tree(make_training_report(), {});
  const EnergyNode* gpu = find_child(root, "gpu0");
  ASSERT_NE(gpu, nullptr);
  const EnergyNode* train = find_child(*gpu, "train");
  ASSERT_NE(train, nullptr);
  const EnergyNode* backward = find_child(*train, "backward");
  ASSERT_NE(backward, nullptr);
  const EnergyNode* layer = find_child(*backward, "layer1.0");
  ASSERT_NE(layer, nullptr) << "a branch with one branch is one";
  EXPECT_DOUBLE_EQ(layer->summed_row.energy_j.value(), 1500);
  ASSERT_NE(find_child(*layer, "(self)"), nullptr);
  EXPECT_DOUBLE_EQ(find_child(*layer, "(self)")->summed_row.energy_j.value(), 100);
}

TEST(EnergyTree, IntervalsOfBranchesComeFromTheLedgerAndNotFromSums) {
  const EnergyNode root = energy_tree(make_training_report(), {});
  const EnergyNode& gpu = *find_child(root, "gpu0");
  EXPECT_DOUBLE_EQ(gpu.summed_row.low_j.value(), 3980);
  EXPECT_DOUBLE_EQ(gpu.summed_row.high_j.value(), 4020);
}

TEST(EnergyTree, ADeviceWithoutEnergyHasTimesAndNoZero) {
  const EnergyNode root = energy_tree(make_training_report(), {});
  ASSERT_NE(find_child(root, "cpu train forward head"), nullptr);
  EXPECT_FALSE(find_child(root, "cpu train forward head")->summed_row.energy_j);
}

TEST(TreeLines, ExpandsTheLargestBranchesUpToTheLineLimit) {
  const EnergyNode root = energy_tree(make_training_report(), {});
  for (std::size_t max_lines = 1; max_lines < 20; ++max_lines) {
    const std::vector<TreeLine> lines = tree_lines(root, {{}, max_lines, 0});
    EXPECT_LE(lines.size(), max_lines);
  }
  EXPECT_EQ(tree_lines(root, {1, 100, 0}).size(), 2u) << "devices only";
}

TEST(TreeLines, SumsOmittedBranches) {
  const EnergyNode root = energy_tree(make_training_report(), {});
  double shown_j = 0;
  for (const TreeLine& line : tree_lines(root, {{}, 6, 0})) {
    const EnergyNode& node = line.node != nullptr ? *line.node : line.omitted_children_sum;
    if (line.is_last_sibling.size() == 1) shown_j += node.summed_row.energy_j.value_or(0);
  }
  EXPECT_DOUBLE_EQ(shown_j, root.summed_row.energy_j.value());
}

TEST(TreeReport, FitsEightyColumns) {
  const std::string text = tree_text(make_training_report(), {}, {CharacterSet::unicode});
  expect_golden("report_tree.txt", text);
  EXPECT_LE(longest_line_length(text), 80u);
}

TEST(TreeReport, NeedsNoUnicodeAndNoWideTerminal) {
  const std::string text = tree_text(make_training_report(), {}, {CharacterSet::ascii, 60});
  expect_golden("report_tree_ascii.txt", text);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x80; }));
}

TEST(TreeReport, PrintsTheFullBasisInWideTerminals) {
  expect_golden("report_tree_wide.txt", tree_text(make_training_report(), {}, {CharacterSet::unicode, 120}));
}

TEST(TreeReport, SharesAreThoseOfTheCommandWhereOtherProcessesUseTheDeviceToo) {
  ReportResult result;
  result.by = "layer";
  result.attributed_j = 900;
  result.idle_j = 0;
  result.unattributed_j = 100;
  for (const auto& [path, joules] : {std::pair(std::vector<std::string>{"background"}, 600.0),
                                     std::pair(std::vector<std::string>{"train", "forward", "fc"}, 300.0)}) {
    ReportRow& row = result.rows.emplace_back();
    row.path = path;
    row.device = "cpu";
    row.energy_j = joules;
  }
  ReportRow& group = result.groups.emplace_back();
  group.device = "cpu";
  group.energy_j = 900;
  const std::string text = tree_text(result, {}, {});
  EXPECT_NE(text.find("75.0%"), std::string::npos) << text;  // 300 J of the 400 J of the command
  EXPECT_NE(text.find("25.0%"), std::string::npos) << text;  // not attributed
  EXPECT_NE(text.find("\n other processes"), std::string::npos) << text;
  EXPECT_EQ(text.find("background"), std::string::npos) << text;
  result.rows.front().energy_j = 10;
  EXPECT_NE(tree_text(result, {}, {}).find("background"), std::string::npos) << "a small part is a row like others";
}

TEST(TreeReport, EscapesNamesOfARecording) {
  ReportResult result = make_training_report();
  result.rows[0].path.back() = "evil\x1b[2Jname";
  const std::string text = tree_text(result, {}, {CharacterSet::unicode});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(TreeReport, ReportsAFilterWithoutMatches) {
  TreeTextOptions tree_options;
  tree_options.tree_query.name_filter = "no such thing";
  ReportResult result = make_training_report();
  result.groups.clear();
  EXPECT_NE(tree_text(result, tree_options, {}).find("no row matches the filter"), std::string::npos);
}

TEST(KernelNames, AreShortenedToTheFunctionName) {
  const std::string name =
      "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, char*>(int, float)";
  EXPECT_EQ(brief_kernel_name(name, 200),
            "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, char*>");
  EXPECT_EQ(brief_kernel_name(name, 50), "vectorized_elementwise_kernel<..add<float>, char*>");
  EXPECT_LE(count_display_columns(brief_kernel_name(name, 50)), 50u);
  EXPECT_EQ(brief_kernel_name(name, 20), "vectorize..se_kernel");
  EXPECT_EQ(brief_kernel_name("sm90_xmma_gemm_f32", 80), "sm90_xmma_gemm_f32");
}

}  // namespace
}  // namespace joulemap::report
