// SPDX-License-Identifier: Apache-2.0
#include "ingest/xplane/xplane_reader.h"

#include <limits>
#include <optional>

#include "ingest/xplane/xplane_event_reader.h"
#include "ingest/xplane/xplane_segments.h"

namespace joulemap::ingest {

Diagnostics read_xplane(std::string_view bytes, XPlaneVisitor& visitor) {
  Diagnostics diagnostics;
  XPlaneSegments segments(bytes, visitor, std::numeric_limits<std::size_t>::max());
  XEventReader reader(visitor);
  while (const std::optional<XSegment> segment = segments.next()) {
    diagnostics.add_all(segment->damage);
    reader.read(*segment, diagnostics);
  }
  diagnostics.add_all(segments.take_damage());
  return diagnostics;
}

}  // namespace joulemap::ingest
