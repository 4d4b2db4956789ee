// SPDX-License-Identifier: Apache-2.0
//
// Locates the capture files that `record` makes its command load, and the environment variables for it. The program
// finds them relative to itself: in a build tree, in the folder that `make dist` makes, in a Python wheel. Main thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/diagnostics.h"

namespace joulemap::cli {

struct CaptureFiles {
  std::string capture_library;       // libjoulemap_capture.so
  std::string sitecustomize_folder;  // the folder with our sitecustomize.py; empty if the Python package is missing
};
// `program`: the path of the running program.
Result<CaptureFiles> find_capture_files(const std::string& program);

// Path of the running program, with symbolic links resolved.
std::string program_path();

struct CaptureEnvironment {
  std::vector<std::string> variables;  // "NAME=value"
  Diagnostics diagnostics;             // of variables that another tool uses already
};
// `trace`: auto, full, light, kernels or off. Existing variables are extended, or left unchanged if another tool set
// them.
CaptureEnvironment capture_environment(const CaptureFiles& files, std::string_view trace);

}  // namespace joulemap::cli
