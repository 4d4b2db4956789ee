// SPDX-License-Identifier: Apache-2.0
#include "ingest/cprofile/cprofile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include <filesystem>
#include <fstream>

#include "ingest/cprofile/marshal.h"
#include "ingest/detect_format.h"

namespace joulemap::ingest {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;

// Parts of a marshal file, as CPython writes them.
std::string number(std::int32_t value) {
  std::string text = "i";
  for (int i = 0; i < 4; ++i) text += static_cast<char>((value >> (8 * i)) & 0xff);
  return text;
}
std::string real(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  std::string text = "g";
  for (int i = 0; i < 8; ++i) text += static_cast<char>((bits >> (8 * i)) & 0xff);
  return text;
}
std::string ascii(const std::string& text) { return "z"s + static_cast<char>(text.size()) + text; }
std::string set_reference_flag(std::string object) {
  object[0] = static_cast<char>(object[0] | 0x80);
  return object;
}
std::string reference(std::int32_t index) { return "r" + number(index).substr(1); }
std::string tuple(const std::vector<std::string>& items) {
  std::string text = ")"s + static_cast<char>(items.size());
  for (const std::string& item : items) text += item;
  return text;
}
std::string key(const std::string& file, int line, const std::string& name) {
  return tuple({ascii(file), number(line), ascii(name)});
}
std::string sums(int primitive_calls, int calls, double self_s, double cumulative_s,
                 const std::string& callers = "{0") {
  return tuple({number(primitive_calls), number(calls), real(self_s), real(cumulative_s), callers});
}
std::string dict(const std::string& items) { return "{" + items + "0"; }

TEST(Cprofile, ReadsCallsOwnAndCumulativeTimeOfEachFunction) {
  const Result<FunctionProfile> profile =
      parse_cprofile(dict(key("/home/me/train/model.py", 12, "forward") + sums(3, 5, 0.25, 2) +
                          key("~", 0, "<built-in method torch.conv2d>") +
                          sums(9, 9, 1.75, 1.75, dict(key("model.py", 12, "forward") + sums(9, 9, 1.75, 1.75)))));
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->functions.size(), 2);
  EXPECT_EQ(profile->functions[0].name, "torch.conv2d");
  EXPECT_EQ(profile->functions[0].call_count, 9);
  const ProfiledFunction& forward = profile->functions[1];
  EXPECT_EQ(forward.name, "forward (train/model.py:12)");
  EXPECT_EQ(forward.call_count, 5);
  EXPECT_EQ(forward.recursive_call_count, 2);
  EXPECT_EQ(forward.self_s, 0.25);
  EXPECT_EQ(forward.cumulative_s, 2);
  EXPECT_EQ(profile->total_s, 2);
  EXPECT_TRUE(profile->diagnostics.empty());
}

TEST(Cprofile, ResolvesReferencesToEarlierObjects) {
  // Objects 0 and 1: the key and its file; the second key refers to the file, the callers to the first key.
  const std::string first_key = set_reference_flag(tuple({set_reference_flag(ascii("a.py")), number(1), ascii("f")}));
  const std::string second_key = tuple({reference(1), number(7), ascii("g")});
  const Result<FunctionProfile> profile = parse_cprofile(
      dict(first_key + sums(1, 1, 1, 1) + second_key + sums(1, 1, 2, 2, dict(reference(0) + sums(1, 1, 2, 2)))));
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->functions[0].name, "g (a.py:7)");
}

TEST(Cprofile, ReadsTheTypesOfPython2) {
  // 't' is an interned string, 'R' refers to it, 'f' is a number as text, 'l' an integer of 15-bit digits.
  const std::string file = "t\4\0\0\0a.py"s;
  const std::string calls = "l\2\0\0\0\1\0\1\0"s;  // 1 + 2^15
  const std::string first_key = "(\3\0\0\0"s + file + number(1) + "s\1\0\0\0f"s;
  const std::string second_key = "(\3\0\0\0R\0\0\0\0"s + number(2) + "s\1\0\0\0g"s;
  const std::string values = "(\5\0\0\0"s + calls + calls + "f\0030.5"s + "f\0041.25"s + "{0";
  const Result<FunctionProfile> profile =
      parse_cprofile(dict(first_key + values + second_key + sums(1, 1, 0.25, 0.25)));
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->functions.size(), 2);
  EXPECT_EQ(profile->functions[0].name, "f (a.py:1)");
  EXPECT_EQ(profile->functions[0].call_count, 32769);
  EXPECT_EQ(profile->functions[0].self_s, 0.5);
  EXPECT_EQ(profile->functions[1].name, "g (a.py:2)");
}

TEST(Cprofile, ShortensTheNamesOfBuiltIns) {
  const Result<FunctionProfile> profile =
      parse_cprofile(dict(key("~", 0, "<method 'cpu' of 'torch._C._TensorBase' objects>") + sums(1, 1, 3, 3) +
                          key("~", 0, "<method 'x' of '") + sums(1, 1, 2, 2) +
                          key("~", 0, "<method '' of '' objects>") + sums(1, 1, 1, 1)));
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->functions[0].name, "torch._C._TensorBase.cpu");
  EXPECT_EQ(profile->functions[1].name, "<method 'x' of '");
  EXPECT_EQ(profile->functions[2].name, ".");
}

TEST(Cprofile, LeavesOutAndCountsDamagedEntries) {
  const Result<FunctionProfile> profile =
      parse_cprofile(dict(key("a.py", 1, "f") + sums(1, 1, 1, 1) + key("b.py", 1, "g") + sums(2, 1, 1, 1) +
                          key("c.py", 1, "h") + sums(1, 1, std::nan(""), 1) + number(3) + number(4)));
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->functions.size(), 1);
  ASSERT_TRUE(profile->diagnostics.contains("events_dropped"));
  EXPECT_EQ(profile->diagnostics.list().front().count, 3);
}

TEST(Cprofile, RefusesAFileThatIsNoProfile) {
  const std::string profile_bytes = dict(key("a.py", 1, "f") + sums(1, 1, 1, 1));
  for (std::size_t size = 0; size < profile_bytes.size(); ++size)
    EXPECT_FALSE(parse_cprofile(profile_bytes.substr(0, size))) << size;
  std::string nested(100, ')');
  for (std::size_t i = 1; i < nested.size(); i += 2) nested[i] = 1;
  const std::string huge_tuple = "(\xff\xff\xff\xff"s;
  const std::string long_integer = "l\x7f\0\0\0"s;
  for (const std::string& bytes : {""s, "{"s, "N"s, nested, huge_tuple, long_integer, reference(0), profile_bytes + "N",
                                   dict(number(1) + number(2)), "{\"traceEvents\": []}"s}) {
    const Result<FunctionProfile> profile = parse_cprofile(bytes);
    ASSERT_FALSE(profile);
    EXPECT_NE(profile.error().remedy, "");
  }
}

class CprofileFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void write(const std::string& name, const std::string& bytes) const { std::ofstream(folder_ / name) << bytes; }
  fs::path folder_;
};

TEST_F(CprofileFileTest, CprofileFileIsDetectedByItsContent) {
  write("a", dict(set_reference_flag(key("a.py", 1, "f")) + sums(1, 1, 1, 1)));
  const Result<std::string> format = detect_format(folder_ / "a");
  ASSERT_TRUE(format);
  EXPECT_EQ(*format, "cprofile");
}

TEST_F(CprofileFileTest, CprofileFilesBecomeRowsWithFunctionsAndUnknownEnergy) {
  write("transformer_xl_pytorch_train.prof", dict(key("a.py", 1, "f") + sums(1, 1, 1, 3)));
  write("ssd_tensorflow_train.prof", "damaged");
  const Result<ExperimentData> data =
      read_profile_experiment({{folder_}, "{model}_{framework:pytorch|tensorflow}_{pass}.prof"});
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(data->factors[0].levels, (std::vector<std::string>{"ssd", "transformer_xl"}));
  EXPECT_EQ(data->factors[1].levels, (std::vector<std::string>{"pytorch", "tensorflow"}));
  ASSERT_EQ(data->rows.size(), 2);
  EXPECT_EQ(data->rows[0].state, ExperimentRowState::failed);
  EXPECT_TRUE(data->rows[0].diagnostics.contains("damaged_file"));
  const ExperimentRow& row = data->rows[1];
  EXPECT_EQ(row.elapsed_s, 1);
  ASSERT_EQ(row.functions.size(), 1);
  EXPECT_EQ(row.functions[0].cumulative_s, 3);
  EXPECT_FALSE(row.functions[0].energy_j);
  ASSERT_EQ(row.domains.size(), 1);
  EXPECT_FALSE(row.domains[0].joules);
  EXPECT_NE(row.domains[0].reason, "");
  EXPECT_TRUE(data->diagnostics.contains("profile_without_power"));
}

}  // namespace
}  // namespace joulemap::ingest
