// SPDX-License-Identifier: Apache-2.0
#include "base/printable_text.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"

namespace joulemap {
namespace {

TEST(PrintableText, ReplacesTerminalControlSequences) {
  EXPECT_EQ(printable("a\x1b[31mb\x07\n"), "a?[31mb??");
  EXPECT_EQ(printable(std::string_view("nul\0", 4)), "nul?");
  EXPECT_EQ(printable("csi \xC2\x9B"
                      "31m"),
            "csi ?31m");
  EXPECT_EQ(printable("del\x7F"), "del?");
}

TEST(PrintableText, ReplacesBidirectionalAndInvisibleCharacters) {
  EXPECT_EQ(printable("\u202Egpj.exe"), "?gpj.exe");
  EXPECT_EQ(printable("a\u2028b\u2029c"), "a?b?c");
  EXPECT_EQ(printable("\u2066x\u2069\u200F\u061C\uFEFF\u200B"), "?x?????");
  EXPECT_EQ(printable("\U000E0041tag"), "?tag");
}

TEST(PrintableText, PreservesLettersOfAllScripts) {
  for (const std::string_view text : {"plain", "µ ± é", "日本語", "नमस्ते", "👩‍💻", "الطبقة"})
    EXPECT_EQ(printable(text), text);
}

TEST(PrintableText, MarksInvalidUtf8) { EXPECT_EQ(printable("a\xFF\x9B"), "a\uFFFD\uFFFD"); }

TEST(PrintableText, PreservesLineEndsTabsAndColours) {
  EXPECT_EQ(printable_lines("a\tb\n\x1b[1m\x1b[32mgood\x1b[0m\n"), "a\tb\n\x1b[1m\x1b[32mgood\x1b[0m\n");
  EXPECT_EQ(printable_lines("\x1b[8mhidden \x1b[30;40mblack"), "?[8mhidden ?[30;40mblack");
  EXPECT_EQ(printable_lines("\x1b]0;title\x07 \x1b[2J \x1b[31"), "?]0;title? ?[2J ?[31");
  EXPECT_EQ(printable_lines("over\rwritten\u202E"), "over?written?");
}

TEST(PrintableText, PreservesTheMeaningOfJson) {
  EXPECT_EQ(escape_unsafe_json("{\"a\":\"\u202E\u2028\"}\n"), "{\"a\":\"\\u202e\\u2028\"}\n");
  EXPECT_EQ(escape_unsafe_json("\"\xC2\x9B\x7F\U000E0041µ\""), "\"\\u009b\\u007f\\udb40\\udc41µ\"");
}

TEST(PrintableText, RemovesAllControlSequencesFromRandomBytes) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 40, '\0');
    constexpr std::string_view kFrequentBytes = "\xE2\x80\xC2\x9B\x1B[\xAE";
    for (char& byte : bytes)
      byte = random() % 3 == 0 ? kFrequentBytes[random() % kFrequentBytes.size()] : static_cast<char>(random());
    const std::string printable_text = printable(bytes);
    EXPECT_EQ(printable(printable_text), printable_text);
    EXPECT_EQ(to_valid_utf8(printable_text), printable_text);
    for (const char byte : printable_text) EXPECT_GE(static_cast<unsigned char>(byte), 0x20);
  }
}

}  // namespace
}  // namespace joulemap
