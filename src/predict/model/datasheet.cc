// SPDX-License-Identifier: Apache-2.0
#include "predict/model/datasheet.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace joulemap::predict {
namespace {

constexpr double kBytesPerTerabyte = 1e12;
constexpr double kBytesPerMegabyte = 1e6;

// peak_flops: fp32, tf32, fp16, bf16. GPUs without TF32 or bf16 have the rate of fp32 there.
const std::vector<Datasheet>& datasheet_table() {
  static const std::vector<Datasheet> kDatasheetTable = {
      {"NVIDIA H200",
       132,
       {67e12, 495e12, 989e12, 989e12},
       4.8 * kBytesPerTerabyte,
       50 * kBytesPerMegabyte,
       8.5 * kBytesPerTerabyte,
       700,
       120},
      {"NVIDIA H100 SXM",
       132,
       {67e12, 495e12, 989e12, 989e12},
       3.35 * kBytesPerTerabyte,
       50 * kBytesPerMegabyte,
       8.5 * kBytesPerTerabyte,
       700,
       120},
      {"NVIDIA H100 PCIe",
       114,
       {51e12, 378e12, 756e12, 756e12},
       2.0 * kBytesPerTerabyte,
       50 * kBytesPerMegabyte,
       6.5 * kBytesPerTerabyte,
       350,
       80},
      {"NVIDIA B200",
       148,
       {75e12, 1125e12, 2250e12, 2250e12},
       8.0 * kBytesPerTerabyte,
       126 * kBytesPerMegabyte,
       14 * kBytesPerTerabyte,
       1000,
       170},
      {"NVIDIA A100 SXM4 80GB",
       108,
       {19.5e12, 156e12, 312e12, 312e12},
       2.04 * kBytesPerTerabyte,
       40 * kBytesPerMegabyte,
       4.5 * kBytesPerTerabyte,
       400,
       85},
      {"NVIDIA A100 SXM4 40GB",
       108,
       {19.5e12, 156e12, 312e12, 312e12},
       1.56 * kBytesPerTerabyte,
       40 * kBytesPerMegabyte,
       4.5 * kBytesPerTerabyte,
       400,
       80},
      {"NVIDIA A100 PCIe 80GB",
       108,
       {19.5e12, 156e12, 312e12, 312e12},
       1.94 * kBytesPerTerabyte,
       40 * kBytesPerMegabyte,
       4.3 * kBytesPerTerabyte,
       300,
       70},
      {"NVIDIA A100 PCIe 40GB",
       108,
       {19.5e12, 156e12, 312e12, 312e12},
       1.56 * kBytesPerTerabyte,
       40 * kBytesPerMegabyte,
       4.3 * kBytesPerTerabyte,
       250,
       65},
      {"NVIDIA V100 SXM2",
       80,
       {15.7e12, 15.7e12, 125e12, 15.7e12},
       0.9 * kBytesPerTerabyte,
       6 * kBytesPerMegabyte,
       2.2 * kBytesPerTerabyte,
       300,
       55},
      {"NVIDIA L40S",
       142,
       {91.6e12, 183e12, 362e12, 362e12},
       0.864 * kBytesPerTerabyte,
       96 * kBytesPerMegabyte,
       4.5 * kBytesPerTerabyte,
       350,
       75},
      {"NVIDIA L4",
       58,
       {30.3e12, 60e12, 121e12, 121e12},
       0.3 * kBytesPerTerabyte,
       48 * kBytesPerMegabyte,
       1.8 * kBytesPerTerabyte,
       72,
       28},
      {"NVIDIA A10",
       72,
       {31.2e12, 62.5e12, 125e12, 125e12},
       0.6 * kBytesPerTerabyte,
       6 * kBytesPerMegabyte,
       1.8 * kBytesPerTerabyte,
       150,
       45},
      {"NVIDIA A40",
       84,
       {37.4e12, 74.8e12, 150e12, 150e12},
       0.696 * kBytesPerTerabyte,
       6 * kBytesPerMegabyte,
       2.0 * kBytesPerTerabyte,
       300,
       70},
      {"NVIDIA T4",
       40,
       {8.1e12, 8.1e12, 65e12, 8.1e12},
       0.32 * kBytesPerTerabyte,
       4 * kBytesPerMegabyte,
       1.2 * kBytesPerTerabyte,
       70,
       27},
      {"NVIDIA GeForce RTX 4090",
       128,
       {82.6e12, 82.6e12, 165e12, 165e12},
       1.01 * kBytesPerTerabyte,
       72 * kBytesPerMegabyte,
       5 * kBytesPerTerabyte,
       450,
       60},
      // Quadro P5000: no tensor cores; frameworks compute fp16 products in fp32.
      {"NVIDIA Quadro P5000",
       20,
       {8.9e12, 8.9e12, 8.9e12, 8.9e12},
       0.288 * kBytesPerTerabyte,
       2 * kBytesPerMegabyte,
       0.9 * kBytesPerTerabyte,
       180,
       30},
      {"NVIDIA GeForce RTX 2070",
       36,
       {7.5e12, 7.5e12, 29.9e12, 7.5e12},
       0.448 * kBytesPerTerabyte,
       4 * kBytesPerMegabyte,
       1.4 * kBytesPerTerabyte,
       175,
       30},
      {"NVIDIA GeForce RTX 3080",
       68,
       {29.8e12, 29.8e12, 59.5e12, 59.5e12},
       0.76 * kBytesPerTerabyte,
       5 * kBytesPerMegabyte,
       2 * kBytesPerTerabyte,
       320,
       55},
      {"NVIDIA GeForce RTX 3090",
       82,
       {35.6e12, 35.6e12, 71e12, 71e12},
       0.936 * kBytesPerTerabyte,
       6 * kBytesPerMegabyte,
       2.2 * kBytesPerTerabyte,
       350,
       60},
  };
  return kDatasheetTable;
}

// Lower-case words of a GPU's name: "NVIDIA A100-SXM4-80GB" -> "nvidia", "a100", "sxm4", "80gb".
std::vector<std::string> split_device_name(std::string_view name) {
  std::vector<std::string> words;
  bool is_in_word = false;
  for (const char letter : name) {
    const auto code = static_cast<unsigned char>(letter);
    if (std::isalnum(code) != 0) {
      if (!is_in_word) words.emplace_back();
      words.back() += static_cast<char>(std::tolower(code));
    }
    is_in_word = std::isalnum(code) != 0;
  }
  return words;
}

bool contains_digit(std::string_view word) { return word.find_first_of("0123456789") != std::string_view::npos; }

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_memory_size(std::string_view word) {
  return word.ends_with("gb") && is_number(word.substr(0, word.size() - 2));
}

// "80" in "a100 80". Other numbers are models, such as 4090, or too small for a memory of these GPUs.
bool is_memory_size_without_unit(std::string_view word) {
  return (word.size() == 2 || word.size() == 3) && is_number(word);
}

// The words of a requested name that distinguish GPUs, as datasheets write them.
std::vector<std::string> distinguishing_words(std::string_view name) {
  std::vector<std::string> words;
  for (const std::string& word : split_device_name(name)) {
    if (word == "tesla" || word == "gpu") continue;
    // "80 GB": the number already counts as a memory size.
    if (word == "gb" && !words.empty() && is_memory_size(words.back())) continue;
    // The driver names the H100 SXM by its memory: "NVIDIA H100 80GB HBM3". That of an H200 is HBM3e.
    words.push_back(word.starts_with("hbm3") ? "sxm" : is_memory_size_without_unit(word) ? word + "gb" : word);
  }
  return words;
}

bool is_form_factor(std::string_view word) { return word.starts_with("sxm") || word == "pcie"; }

// "sxm" without a generation matches every generation.
bool is_same_form_factor(std::string_view a, std::string_view b) {
  return a.starts_with("sxm") && b.starts_with("sxm") && std::min(a.size(), b.size()) == 3;
}

// Index of the word that identifies the model: "h100", "4090".
std::size_t model_word_index(const std::vector<std::string>& datasheet_words) {
  return static_cast<std::size_t>(std::find_if(datasheet_words.begin(), datasheet_words.end(), contains_digit) -
                                  datasheet_words.begin());
}

struct WordRange {
  std::size_t begin = 0;
  std::size_t end = 0;  // equal to `begin`: none
};

// The words of a datasheet's name that `word` spells, possibly without blanks: "h100pcie", "h100sxm5", "rtx4090".
WordRange find_spelled_words(std::string_view word, const std::vector<std::string>& datasheet_words) {
  for (std::size_t begin = 0; begin < datasheet_words.size(); ++begin) {
    std::string_view rest = word;
    for (std::size_t end = begin; end < datasheet_words.size(); ++end) {
      const std::string& datasheet_word = datasheet_words[end];
      if (rest == datasheet_word || is_same_form_factor(rest, datasheet_word)) return {begin, end + 1};
      if (!rest.starts_with(datasheet_word)) break;
      rest.remove_prefix(datasheet_word.size());
    }
  }
  return {};
}

// Whether every requested word is in the datasheet's name and one of them is the model. Whole words only: an L4 is not
// an L40S, and an A100 is not an A10. A word that the datasheet lacks ("nvl", "laptop", "ti") names another GPU.
bool is_name_of_datasheet(const std::vector<std::string>& requested_words, const Datasheet& datasheet) {
  const std::vector<std::string> datasheet_words = split_device_name(datasheet.name);
  const std::size_t model_index = model_word_index(datasheet_words);
  const bool states_memory_size = std::any_of(datasheet_words.begin(), datasheet_words.end(), is_memory_size);
  const bool states_form_factor = std::any_of(datasheet_words.begin(), datasheet_words.end(), is_form_factor);
  bool is_model_named = false;
  for (const std::string& word : requested_words) {
    if (is_memory_size(word) && !states_memory_size) continue;
    if (word.starts_with("sxm") && !states_form_factor) continue;
    const WordRange range = find_spelled_words(word, datasheet_words);
    if (range.begin == range.end) return false;
    is_model_named = is_model_named || (range.begin <= model_index && model_index < range.end);
  }
  return is_model_named;
}

}  // namespace

std::span<const Datasheet> known_datasheets() { return datasheet_table(); }

std::optional<Datasheet> find_datasheet(std::string_view name) {
  const std::vector<std::string> requested_words = distinguishing_words(name);
  for (const Datasheet& datasheet : datasheet_table()) {
    if (is_name_of_datasheet(requested_words, datasheet)) return datasheet;
  }
  return std::nullopt;
}

}  // namespace joulemap::predict
