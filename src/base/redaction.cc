// SPDX-License-Identifier: Apache-2.0
#include "base/redaction.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace joulemap {
namespace {

using LowerCaseWords = std::vector<std::string>;

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_name_character(char c) { return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.'; }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// "authToken", "auth-token" and "AUTH_TOKEN" become "auth", "token".
LowerCaseWords split_name_into_words(std::string_view name) {
  LowerCaseWords words;
  bool begins = true;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!is_letter_or_digit(name[i])) {
      begins = true;
      continue;
    }
    const bool is_camel_case_boundary = i > 0 && is_upper(name[i]) && !is_upper(name[i - 1]);
    if (begins || is_camel_case_boundary) words.emplace_back();
    words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
    begins = false;
  }
  return words;
}

// Suffixes of a name's last word that mark a secret, also joined to another word ("hftoken").
constexpr std::array<std::string_view, 9> kSecretSuffixes = {
    "token", "password", "passwd", "passphrase", "secret", "credential", "apikey", "secretkey", "accesskey"};
// Secret only as a whole word: "monkey" and "oauth2" are not.
constexpr std::array<std::string_view, 9> kSecretWords = {
    "key", "auth", "authorization", "bearer", "cookie", "passwords", "credentials", "secrets", "oauth"};
// After one of these words, a secret word is harmless: "pad-token" is vocabulary, "sort-key" a column, "no-auth" a
// switch.
constexpr std::array<std::string_view, 40> kSecretNegatingWords = {
    "pad",    "eos",     "bos",     "unk",       "mask",  "sep",   "cls",  "begin",  "start",   "end",
    "stop",   "special", "max",     "min",       "num",   "n",     "per",  "new",    "image",   "prompt",
    "sort",   "primary", "foreign", "partition", "group", "cache", "dict", "row",    "column",  "index",
    "metric", "label",   "query",   "random",    "prng",  "no",    "use",  "enable", "disable", "without"};

// Prefixes of service tokens (GitHub, GitLab, Hugging Face, OpenAI, Slack, AWS).
constexpr std::array<std::string_view, 10> kTokenPrefixes = {"hf_", "ghp_", "gho_",  "ghs_",  "github_pat_",
                                                             "sk-", "AKIA", "xoxb-", "xoxp-", "glpat-"};
constexpr std::size_t kMinTokenLength = 20;

bool is_secret_token(std::string_view word) {
  return word.size() >= kMinTokenLength && std::ranges::any_of(kTokenPrefixes, [&](std::string_view begin) {
           return word.starts_with(begin) &&
                  std::ranges::none_of(word.substr(begin.size()), [](char c) { return c == '.'; });
         });
}

// Redacts "https://user:password@host" from its "://" on; leaves `position` behind the redacted part.
std::string redact_url_authority(std::string_view text, std::size_t& position, bool is_http_url) {
  const std::size_t begin = position + 3;
  const std::size_t end = std::min(text.find_first_of("/?# \t\n\"'<>", begin), text.size());
  const std::string_view url_authority = text.substr(begin, end - begin);
  const std::size_t sign = url_authority.rfind('@');
  position = begin;
  if (sign == std::string_view::npos) return "://";
  const std::size_t colon = url_authority.substr(0, sign).find(':');
  position = begin + sign;
  if (colon != std::string_view::npos)
    return "://" + std::string(url_authority.substr(0, colon + 1)) + std::string(kRedactionPlaceholder);
  return "://" + std::string(is_http_url ? kRedactionPlaceholder : url_authority.substr(0, sign));
}

// Position of the value that follows a name in a text, if the name has one.
struct ValuePosition {
  std::size_t begin = 0;
  bool extends_to_line_end = false;  // value extends to the end of the line or quote
};
std::optional<ValuePosition> find_value_after_name(std::string_view text, std::string_view name, std::size_t end) {
  const bool is_quoted = end < text.size() && (text[end] == '"' || text[end] == '\'');
  std::size_t position = is_quoted ? end + 1 : end;
  const std::size_t blanks = position;
  while (position < text.size() && is_blank(text[position])) ++position;
  if (position >= text.size()) return std::nullopt;
  const bool is_http_header = !is_quoted && text[position] == ':' && is_upper(name.front());
  const bool is_followed_by_equals_sign =
      text[position] == '=' && position + 1 < text.size() && text[position + 1] != '=';
  const bool is_option = name.starts_with('-') && position > blanks && text[position] != '-';
  if (!is_followed_by_equals_sign && !is_http_header && !(is_quoted && text[position] == ':')) {
    return is_option ? std::optional(ValuePosition{position, false}) : std::nullopt;
  }
  ++position;
  while (position < text.size() && is_blank(text[position])) ++position;
  return position < text.size() ? std::optional(ValuePosition{position, is_http_header}) : std::nullopt;
}

std::size_t find_value_end(std::string_view text, const ValuePosition& value) {
  const std::string_view ends =
      value.extends_to_line_end ? std::string_view("\n\"'") : std::string_view(" \t\n,;&|)}]\"'");
  return std::min(text.find_first_of(ends, value.begin), text.size());
}

// Redacts the secrets inside one argument, which may be shell or Python code, JSON, a header or a URL.
std::string redact_secrets(std::string_view text) {
  std::string out;
  for (std::size_t position = 0; position < text.size();) {
    if (text.substr(position).starts_with("://")) {
      const bool is_http_url = out.ends_with("http") || out.ends_with("https");
      out += redact_url_authority(text, position, is_http_url);
      continue;
    }
    std::size_t end = position;
    while (end < text.size() && is_name_character(text[end])) ++end;
    if (end == position) {
      out += text[position++];
      continue;
    }
    const std::string_view name = text.substr(position, end - position);
    position = end;
    if (is_secret_token(name)) {
      out += kRedactionPlaceholder;
      continue;
    }
    out += name;
    // A bare `key` is not secret in code: `key=len` is an argument of Python's sorted().
    const std::optional<ValuePosition> value =
        is_secret_name(name) && name != "key" ? find_value_after_name(text, name, end) : std::nullopt;
    if (!value) continue;
    out += text.substr(end, value->begin - end);
    const char quote = text[value->begin];
    if (quote == '"' || quote == '\'') {
      const std::size_t close = std::min(text.find(quote, value->begin + 1), text.size());
      out += quote + std::string(kRedactionPlaceholder);
      position = close;
    } else {
      out += kRedactionPlaceholder;
      position = find_value_end(text, *value);
    }
  }
  return out;
}

bool has_only_name_characters(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_name_character);
}

}  // namespace

bool is_secret_name(std::string_view name) {
  const LowerCaseWords words = split_name_into_words(name);
  if (words.empty()) return false;
  const std::string& last_word = words.back();
  const bool is_secret =
      is_one_of(last_word, kSecretWords) ||
      std::ranges::any_of(kSecretSuffixes, [&](std::string_view end) { return last_word.ends_with(end); });
  return is_secret && (words.size() < 2 || !is_one_of(words[words.size() - 2], kSecretNegatingWords));
}

std::vector<std::string> redact_arguments(std::span<const std::string> arguments) {
  std::vector<std::string> redacted;
  bool is_secret_value = false;  // the argument is the value of the preceding option, a secret
  bool is_shell_script = false;  // the argument follows -c
  for (const std::string& argument : arguments) {
    const std::size_t sign = argument.find('=');
    const std::string_view name = std::string_view(argument).substr(0, sign);
    const bool is_option = argument.starts_with('-');
    if (is_secret_value && !argument.starts_with("--")) {
      redacted.emplace_back(kRedactionPlaceholder);
      is_secret_value = false;
    } else if (sign != std::string::npos && has_only_name_characters(name) && is_secret_name(name) &&
               !is_shell_script) {
      redacted.push_back(std::string(name) + "=" + std::string(kRedactionPlaceholder));
      is_secret_value = false;
    } else {
      redacted.push_back(redact_secrets(argument));
      is_secret_value = is_option && has_only_name_characters(argument) && is_secret_name(argument);
    }
    is_shell_script = argument == "-c";
  }
  return redacted;
}

}  // namespace joulemap
