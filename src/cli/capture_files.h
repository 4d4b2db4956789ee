// SPDX-License-Identifier: Apache-2.0
//
// Finds the capture files that `record` makes the measured command load, and sets the environment variables that load
// them. joulemap finds the files relative to its own executable: in a build tree, in the folder that `make dist`
// creates, or in a Python wheel. Main thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/diagnostics.h"

namespace joulemap::cli {

struct CaptureFiles {
  std::string capture_library;       // libjoulemap_capture.so
  std::string sitecustomize_folder;  // folder of joulemap's sitecustomize.py; empty if the Python package is missing
};
// `program`: path of the joulemap executable. Fails if the library is missing.
Result<CaptureFiles> find_capture_files(const std::string& program);

// Path of the joulemap executable, with symbolic links resolved; empty if /proc is not readable.
std::string program_path();

struct CaptureEnvironment {
  std::vector<std::string> variables;  // "NAME=value"
  Diagnostics diagnostics;             // what cannot be captured: variables in use, missing Python package
};
// Variables for the measured command. `trace`: auto, full, light, kernels or off. PYTHONPATH is extended; an injection
// variable that another tool has set is left unchanged.
CaptureEnvironment make_capture_environment(const CaptureFiles& files, std::string_view trace);

}  // namespace joulemap::cli
