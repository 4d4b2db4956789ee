// SPDX-License-Identifier: Apache-2.0
//
// Adds the kernel powers found in a recording to a kernel library, also for recordings older than the library:
//
//   build/bin/teach_library LIBRARY "NVIDIA H200" RECORDING [FROM TO]      seconds since its command began
//
// The GPU argument applies to recordings that do not contain the GPU model.
#include <fmt/format.h>

#include <cstdlib>

#include "attribution/analysis/report_builder.h"
#include "recording/kernel_library_file.h"

int main(int argc, char** argv) {
  if (argc != 4 && argc != 6) {
    fmt::print(stderr, "usage: teach_library LIBRARY GPU RECORDING [FROM TO]\n");
    return 2;
  }
  joulemap::attribution::CommandTimeRange time_range;
  if (argc == 6) time_range = {std::atof(argv[4]), std::atof(argv[5])};
  const std::string recording = argv[3];
  const auto findings = joulemap::attribution::learn_kernel_powers({&recording, 1}, time_range, argv[2]);
  if (!findings) {
    fmt::print(stderr, "{}\n", findings.error().message);
    return 1;
  }
  const auto add_status = joulemap::recording::add_to_kernel_library(argv[1], *findings);
  if (!add_status) {
    fmt::print(stderr, "{}\n", add_status.error().message);
    return 1;
  }
  fmt::print("{} classes of {}\n", findings->size(), recording);
  return 0;
}
