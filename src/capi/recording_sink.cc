// SPDX-License-Identifier: Apache-2.0
#include "capi/recording_sink.h"

namespace joulemap::capi {

std::unique_ptr<MarkLog> open_mark_log() { return nullptr; }

}  // namespace joulemap::capi
