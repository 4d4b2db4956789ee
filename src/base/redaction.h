// SPDX-License-Identifier: Apache-2.0
//
// Takes secrets out of command lines before they are written. What counts is the name of an option, variable or header: its
// words are looked at ("hf-token" ends in "token", "max-tokens" and "tokenizer" do not), so that what merely resembles a
// secret stays. Passwords in URLs and tokens with a known beginning ("hf_", "ghp_") go, too. A secret behind a name that
// means nothing (`-p hunter2`, a positional word) cannot be found. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap {

inline constexpr std::string_view kRedacted = "***";

// Whether what an option or variable of this name holds is a secret: "api-key", "HF_TOKEN", "auth.apiKey".
bool is_secret_name(std::string_view name);

// `--api-key X`, `--api-key=X`, `HF_TOKEN=X` and such within texts for a shell or an interpreter, with *** for X.
std::vector<std::string> redacted_arguments(std::span<const std::string> arguments);

}  // namespace joulemap
