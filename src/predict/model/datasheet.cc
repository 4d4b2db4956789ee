// SPDX-License-Identifier: Apache-2.0
#include "predict/model/datasheet.h"

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

std::string normalized_device_name(std::string_view text) {
  std::string letters;
  for (const char letter : text) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
  }
  return letters;
}

}  // namespace

std::span<const Datasheet> known_datasheets() { return datasheet_table(); }

std::optional<Datasheet> find_datasheet(std::string_view name) {
  const std::string requested_name = normalized_device_name(name);
  if (requested_name.empty()) return std::nullopt;
  for (const Datasheet& datasheet : datasheet_table()) {
    if (normalized_device_name(datasheet.name).find(requested_name) != std::string::npos) return datasheet;
  }
  // The driver's names may be longer than those of the table: "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3".
  for (const Datasheet& datasheet : datasheet_table()) {
    const std::string datasheet_name = normalized_device_name(datasheet.name);
    if (requested_name.find(datasheet_name) != std::string::npos) return datasheet;
  }
  if (requested_name.find("h100") != std::string::npos)
    return find_datasheet(requested_name.find("pcie") != std::string::npos ? "h100pcie" : "h100sxm");
  return std::nullopt;
}

}  // namespace joulemap::predict
