// SPDX-License-Identifier: Apache-2.0
//
// Result<T>: the value of an operation that can fail in an expected way (missing file, denied permission, malformed
// text), or an Error with the cause, the location and a remedy for the user.
//
// Member names follow std::expected, so that Result can become an alias once all supported compilers have it (clang 14,
// used for tidy and fuzzing, does not). Bugs are not errors: use JOULEMAP_CHECK (check.h). Damaged data is reported as
// a Diagnostic (model/diagnostics.h).
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
  permission,              // exists, but access is denied
  unsupported,             // exists, but this machine or kernel does not support it
  malformed,               // readable, but the content is invalid
  io,                      // any other failure of a system call
  usage,                   // the caller's request is invalid
  command_not_found,       // no command of that name
  command_not_executable,  // the command exists but cannot be executed
};

struct Error {
  ErrorCode code = ErrorCode::io;
  std::string message;
  std::string remedy;  // one line that fixes the problem; empty if unknown

  // Puts a context before the message: "reading rapl: open /sys/...: permission denied".
  Error with_context(std::string_view context) && {
    message.insert(0, std::string(context) + ": ");
    return std::move(*this);
  }
};

template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit constructors, so that functions can `return value;` and `return error;`.
  Result(T value) : state_(std::move(value)) {}      // NOLINT
  Result(Error error) : state_(std::move(error)) {}  // NOLINT

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return checked_value(); }
  const T& value() const& { return const_cast<Result*>(this)->checked_value(); }
  T&& value() && { return std::move(checked_value()); }
  T& operator*() & { return checked_value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(checked_value()); }
  T* operator->() { return &checked_value(); }
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
  T& checked_value() {
    JOULEMAP_CHECK(has_value(), std::get<1>(state_).message);
    return std::get<0>(state_);
  }
  std::variant<T, Error> state_;
};

struct Done {};
using Status = Result<Done>;

}  // namespace joulemap
