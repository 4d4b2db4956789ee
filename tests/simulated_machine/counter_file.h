// SPDX-License-Identifier: Apache-2.0
//
// CounterFile: the energy_uj file of one zone, with injectable faults.
//
// The text is "<decimal><blanks>\n" with a fixed length for the whole run, so a plain write in place never leaves the
// tail of an older text behind.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "energy_counter.h"

namespace joulemap::simulated {

// Times are seconds after the command started. Each fault happens once.
struct FaultPlan {
  bool tears_writes = false;             // write in two halves
  bool replaces_file = false;            // write another file and rename it over this one
  std::optional<double> freeze_at_s;     // from then on the text does not change
  std::optional<double> vanish_at_s;     // the file is unlinked
  std::optional<double> reset_at_s;      // continues from 0
  std::optional<double> garbage_at_s;    // from then on the text is not a number
  std::optional<double> deny_at_s;       // mode 000; the text still changes for open descriptors and for root
  std::optional<double> step_back_at_s;  // drops by 500 J and continues from there
};

class CounterFile {
 public:
  // wrap_uj sets the length of the text; the counter must wrap there.
  static Result<CounterFile> create(std::string path, EnergyCounter counter, std::uint64_t wrap_uj, FaultPlan faults);

  // Publishes this energy. command_s: seconds since the command started, negative before. With `tears_writes`, finish()
  // writes the second half some time later.
  Status publish(double true_energy_j, double command_s);
  Status finish();

  bool writes_in_halves() const { return faults_.tears_writes; }

 private:
  CounterFile(std::string path, EnergyCounter counter, std::size_t width, FaultPlan faults)
      : path_(std::move(path)), counter_(counter), width_(width), faults_(faults) {}
  Status trigger_faults(double true_energy_j, double command_s);
  Status write_piece(std::string_view text_part, std::size_t position);
  Status replace_file();
  void compose_text(std::string_view content);

  std::string path_;
  EnergyCounter counter_;
  std::size_t width_;  // of the text before its newline
  FaultPlan faults_;
  FileDescriptor file_;
  std::string text_;
  mode_t file_mode_ = 0444;
  bool is_text_frozen_ = false;   // frozen, vanished or garbage
  bool has_second_half_ = false;  // finish() has a second half to write
};

}  // namespace joulemap::simulated
