// SPDX-License-Identifier: Apache-2.0
//
// Where the parts of the capture lie that `record` has its command load, and the variables that make it do so. The program
// finds them beside itself: in a build tree, in the folder that `make dist` makes, in a Python wheel. Main thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/diagnostics.h"

namespace joulemap::cli {

struct CaptureFiles {
  std::string capture_library;  // libjoulemap_capture.so
  std::string inject;           // the folder with our sitecustomize.py; empty where the Python package is missing
};
// `program`: the path of the running program.
Result<CaptureFiles> find_capture_files(const std::string& program);

// Of the running program; resolved, so that a link to it is no hindrance.
std::string program_path();

struct CaptureEnvironment {
  std::vector<std::string> variables;  // "NAME=value"
  Diagnostics diagnostics;             // of what another tool has taken already
};
// `trace`: auto, full, light, kernels or off. Variables that are there already are added to or left to their owner.
CaptureEnvironment capture_environment(const CaptureFiles& files, std::string_view trace);

}  // namespace joulemap::cli
