// SPDX-License-Identifier: Apache-2.0
//
// Where libcupti may lie. A process must not have two of them: the one that the framework brought is the one to use, and
// it lies among the framework's other libraries. So the paths of what is loaded lead to it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace joulemap::capture::cupti {

struct CuptiSearch {
  std::string named;                // JOULEMAP_CUPTI: this and no other
  std::vector<std::string> loaded;  // paths of the libraries in this process
  int driver_major = 0;             // the newest CUDA that the driver can; 0: not known

  static CuptiSearch of_this_process();
};

// What to try, the best first: paths, and at the end names for the dynamic linker to find. Versions that are newer than
// the driver do not work and are left out.
std::vector<std::string> cupti_candidates(const CuptiSearch& search);

// Of the CUDA driver, if this process has loaded it. Not to be closed.
void* loaded_driver();

}  // namespace joulemap::capture::cupti
