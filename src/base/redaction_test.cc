// SPDX-License-Identifier: Apache-2.0
#include "base/redaction.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace joulemap {
namespace {

using Arguments = std::vector<std::string>;

Arguments split_words(std::string_view line) {
  Arguments words;
  for (const std::string_view word : split(line, '|')) words.emplace_back(word);
  return words;
}

TEST(Redaction, RecognizesASecretByWordsOfItsName) {
  for (const char* name : {"token",
                           "hf-token",
                           "HF_TOKEN",
                           "authToken",
                           "hftoken",
                           "api-key",
                           "apiKey",
                           "APIKEY",
                           "key",
                           "WANDB_API_KEY",
                           "aws_secret_access_key",
                           "password",
                           "db.password",
                           "passwd",
                           "passphrase",
                           "client-secret",
                           "credentials",
                           "auth",
                           "basic-auth",
                           "Authorization",
                           "cookie",
                           "X-API-Key",
                           "openai-key",
                           "--private-key"}) {
    EXPECT_TRUE(is_secret_name(name)) << name;
  }
}

TEST(Redaction, IgnoresNamesThatOnlyResembleSecrets) {
  for (const char* name :
       {"tokenizer", "max-tokens",    "max-token", "num-keys", "keys",      "keyboard",  "monkey",
        "author",    "authors",       "auth-type", "key-dim",  "pad-token", "eos_token", "token-type",
        "sort-key",  "password-file", "no-auth",   "use-auth", "secretary", "keyframe",  "lr",
        ""}) {
    EXPECT_FALSE(is_secret_name(name)) << name;
  }
}

struct RedactionCase {
  const char* input;
  const char* redacted;
};

TEST(Redaction, RemovesSecretsFromCommandLines) {
  const std::vector<RedactionCase> cases = {
      {"train|--api-key|X|--lr|3", "train|--api-key|***|--lr|3"},
      {"train|--api-key=X=Y&Z", "train|--api-key=***"},
      {"train|-token|X", "train|-token|***"},
      {"train|--password|-X", "train|--password|***"},
      {"env|HF_TOKEN=X Y|python|a.py", "env|HF_TOKEN=***|python|a.py"},
      {"docker|-e|HF_TOKEN=X|--env=HF_TOKEN=X", "docker|-e|HF_TOKEN=***|--env=HF_TOKEN=***"},
      {"java|-Ddb.password=X", "java|-Ddb.password=***"},
      {"run|+wandb.api_key=X", "run|+wandb.api_key=***"},
      {"git|clone|https://me:X@host/a?b=c@d", "git|clone|https://me:***@host/a?b=c@d"},
      {"git|clone|https://X@host/a", "git|clone|https://***@host/a"},
      {"get|http://host/?api_key=X&n=1", "get|http://host/?api_key=***&n=1"},
      {"curl|-H|Authorization: Bearer X Y", "curl|-H|Authorization: ***"},
      {"sh|-c|HF_TOKEN=X python a.py --api-key 'X Y' --lr 3", "sh|-c|HF_TOKEN=*** python a.py --api-key '***' --lr 3"},
      {"python|-c|login(token=\"X\", n=1)", "python|-c|login(token=\"***\", n=1)"},
      {"run|--config|{\"api_key\": \"X\", \"n\": 1}", "run|--config|{\"api_key\": \"***\", \"n\": 1}"},
      {"login|hf_abcdefghijklmnopqrstuvwxyz", "login|***"},
  };
  for (const RedactionCase& test_case : cases) {
    EXPECT_EQ(redact_arguments(split_words(test_case.input)), split_words(test_case.redacted)) << test_case.input;
  }
}

TEST(Redaction, LeavesOtherTextUnchanged) {
  for (const char* line : {
           "python|train.py|--tokenizer|gpt2|--max-tokens|5|--keyboard|us|--num-keys|3|--author|me",
           "python|-c|print(sorted(x, key=len)); assert token == 3",
           "train|--password|--lr|3",
           "train|--no-auth|data.csv|--pad-token|[PAD]|--auth-type|basic",
           "ssh|git@host|ssh://git@host/repo|http://host:80/a@b",
           "run|key: value|a=b|--x=y|=|--|-|",
           "sh|-c|for key in a b; do echo $key: $token; done",
       }) {
    EXPECT_EQ(redact_arguments(split_words(line)), split_words(line)) << line;
  }
}

}  // namespace
}  // namespace joulemap
