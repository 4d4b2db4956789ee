// SPDX-License-Identifier: Apache-2.0
//
// Reads Python's marshal format, as far as cProfile uses it: numbers, texts, tuples, lists and dicts, of Python 2.7 and
// 3.x. Objects are in one table and refer to each other by index, so that a shared object is stored once, however often
// the file refers to it. Pure; every read is checked against the end of the bytes.
//
// Format: Python/marshal.c of CPython.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace joulemap::ingest {

struct MarshalObject {
  enum class Kind : std::uint8_t { none, integer, real, text, tuple, dict };
  Kind kind = Kind::none;
  std::int64_t integer_value = 0;           // also of True and False
  double real_value = 0;                    // of an integer, too
  std::string_view text;                    // refers to the bytes that were read; not checked for UTF-8
  std::vector<std::uint32_t> item_indices;  // tuple, list: its items; dict: key, value, key, value ...
};

struct MarshalDocument {
  std::vector<MarshalObject> objects;
  std::uint32_t root_index = 0;

  const MarshalObject& object_at(std::uint32_t index) const { return objects[index]; }
};

// Fails if the bytes end within an object, contain an object of another type, an invalid reference, or more than the one
// object. The document refers to `bytes`.
Result<MarshalDocument> read_marshal(std::string_view bytes);

}  // namespace joulemap::ingest
