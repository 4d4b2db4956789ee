// SPDX-License-Identifier: Apache-2.0
//
// CuptiApi: the opened libcupti of this process, its functions and its version. cupti_search.h defines the search
// order; JOULEMAP_CUPTI=PATH overrides it. The library is never unloaded, because it has threads of its own. A value
// type; const access is thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "capture/cupti/cupti_abi.h"
#include "capture/cupti/cupti_records.h"
#include "capture/cupti/cupti_search.h"
#include "model/diagnostics.h"

namespace joulemap::capture::cupti {

class CuptiApi {
 public:
  // Fails when no library is found, its version is unsupported, or it lacks the functions that records need.
  static Result<CuptiApi> open(const CuptiSearchInputs& search = CuptiSearchInputs::read_from_process());

  const CuptiFunctions& functions() const { return functions_; }
  const RecordLayout& record_layout() const { return *record_layout_; }
  std::uint32_t version() const { return version_; }
  const std::string& library_path() const { return library_path_; }
  // Diagnostics about functions that this library lacks, and about a version newer than those supported.
  const Diagnostics& diagnostics() const { return diagnostics_; }

  bool can_trace_launches() const;
  bool can_set_clock() const { return functions_.register_clock != nullptr; }
  bool can_detach() const;
  bool can_trace_graphs() const { return functions_.get_graph_node_id != nullptr; }

  // "GPU-8f0c...", in NVML's notation. nullopt when the driver does not report it.
  std::optional<std::string> device_uuid(std::uint32_t ordinal) const;
  std::string result_text(CuptiResult outcome) const;

 private:
  CuptiApi() = default;
  static Result<CuptiApi> open_library(const std::string& path, int driver_major);
  Status read_version(int driver_major);
  void diagnose_missing_functions();

  std::string library_path_;
  CuptiFunctions functions_;
  DriverFunctions driver_;
  std::uint32_t version_ = 0;
  const RecordLayout* record_layout_ = nullptr;
  Diagnostics diagnostics_;
};

}  // namespace joulemap::capture::cupti
