// SPDX-License-Identifier: Apache-2.0
//
// Result<T>: the value of an operation that may fail in a way we expect (a file is missing, a permission is denied,
// a text is malformed), or the Error that says what happened, where, and what the user can do about it.
//
// Member names follow std::expected, so that it can become an alias once the compilers we support have it (clang 14,
// used for tidy and fuzzing, does not). Bugs are not errors: they are JOULEMAP_CHECK (check.h). Damaged data is a
// Diagnostic (model/diagnostics.h).
//
//   Result<std::string> text = read_small_file(path);
//   if (!text) return std::move(text).error().with_context("reading the package counter");
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace joulemap {

enum class ErrorCode {
  not_found,               // no such file, device or command
  permission,              // it is there, but we may not
  unsupported,             // it is there, but this machine or kernel cannot
  malformed,               // it was read, but makes no sense
  io,                      // the operating system refused for another reason
  usage,                   // the caller asked for something that has no meaning
  command_not_found,       // a command to run: there is none of that name
  command_not_executable,  // there is, but it cannot be executed
};

struct Error {
  ErrorCode code = ErrorCode::io;
  std::string message;
  std::string remedy;  // the line that would fix it; empty where none is known

  // "reading rapl: open /sys/...: permission denied"
  Error with_context(std::string_view context) && {
    message.insert(0, std::string(context) + ": ");
    return std::move(*this);
  }
};

template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit, so that both `return value;` and `return error;` read as they should.
  Result(T value) : state_(std::move(value)) {}      // NOLINT
  Result(Error error) : state_(std::move(error)) {}  // NOLINT

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    JOULEMAP_CHECK(!has_value(), "error() of a Result that holds a value");
    return std::get<1>(state_);
  }
  Error&& error() && {
    JOULEMAP_CHECK(!has_value(), "error() of a Result that holds a value");
    return std::move(std::get<1>(state_));
  }

 private:
  T& checked() {
    JOULEMAP_CHECK(has_value(), std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  std::variant<T, Error> state_;
};

struct Done {};
using Status = Result<Done>;

}  // namespace joulemap
