// SPDX-License-Identifier: Apache-2.0
//
// Progress of long work, for a line on the terminal. The callback gets the completed share, from 0 to 1, on a thread
// that does the work. Calls never overlap. An empty callback shows no progress.
#pragma once

#include <functional>

namespace joulemap {

using ProgressCallback = std::function<void(double share)>;

inline void report_progress(const ProgressCallback& callback, double share) {
  if (callback) callback(share);
}

// A callback for a part of the work, which covers the shares from `begin` to `end` of the whole.
inline ProgressCallback make_partial_progress_callback(const ProgressCallback& progress_callback, double begin,
                                                       double end) {
  if (!progress_callback) return {};
  return [progress_callback, begin, end](double share) { progress_callback(begin + share * (end - begin)); };
}

}  // namespace joulemap
