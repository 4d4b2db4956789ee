// SPDX-License-Identifier: Apache-2.0
//
// The kernel library of a bundle, in messages of `bundle` and `verify`. Pure.
#pragma once

#include <string>

#include "bundle/bundle_file.h"
#include "model/diagnostics.h"

namespace joulemap::cli {

// Replaces the path of the library by the name of its member, so that the same library gives the same messages.
inline Diagnostics without_library_path(const Diagnostics& diagnostics, const std::string& path) {
  if (path.empty() || path == "none") return diagnostics;
  const auto renamed = [&path](std::string text) {
    for (std::size_t at = text.find(path); at != std::string::npos;
         at = text.find(path, at + bundle::kLibraryName.size()))
      text.replace(at, path.size(), bundle::kLibraryName);
    return text;
  };
  Diagnostics out;
  for (const Diagnostic& note : diagnostics.list())
    out.add(Diagnostic{note.code, note.count, renamed(note.message), renamed(note.remedy)});
  return out;
}

}  // namespace joulemap::cli
