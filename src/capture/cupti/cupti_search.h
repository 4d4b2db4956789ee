// SPDX-License-Identifier: Apache-2.0
//
// Finds libcupti. A process must not load two copies: the framework's copy is the right one. It lies next to the
// framework's other libraries, so the search starts from the paths of loaded libraries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace joulemap::capture::cupti {

struct CuptiSearchInputs {
  std::string requested_path;                 // JOULEMAP_CUPTI; if set, the only candidate
  std::vector<std::string> loaded_libraries;  // paths of the libraries in this process
  int driver_major = 0;                       // newest CUDA major version that the driver supports; 0: unknown

  static CuptiSearchInputs read_from_process();
};

// Candidates in order of preference: a libcupti that is already loaded, files near loaded CUDA libraries, names for the
// dynamic linker, files of toolkits in /usr/local. Versions newer than the driver do not work and are left out.
std::vector<std::string> cupti_candidates(const CuptiSearchInputs& search);

// Handle of the CUDA driver if this process has loaded it, else null. Do not close it.
void* find_loaded_driver();

}  // namespace joulemap::capture::cupti
