// Any bytes are either a request within its limits or an error that says something.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plinth/hardware/base/check.h"
#include "plinth/infer/serve/openai/call.h"
#include "plinth/infer/serve/testing/tiny_tokenizer.h"

namespace {

void CheckCall(const absl::StatusOr<plinth::infer::Call>& call, int32_t vocab_size) {
  if (!call.ok()) {
    CHECK(!call.status().message().empty());
    return;
  }
  CHECK(!call->generate.prompt.empty());
  for (const int32_t id : call->generate.prompt) CHECK(id >= 0 && id < vocab_size);
  CHECK_GE(call->generate.max_tokens, 0);
  CHECK(call->stream || !call->include_usage);
  CHECK(call->generate.top_logprobs.has_value() || !call->generate.prompt_logprobs);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto& tokenizer = *plinth::infer::testing::TinyTokenizer().release();
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const plinth::infer::CallDefaults defaults{.chat_max_tokens = 9};
  CheckCall(plinth::infer::ParseCompletion(body, tokenizer, defaults), tokenizer.vocab_size());
  CheckCall(plinth::infer::ParseChat(body, tokenizer, defaults), tokenizer.vocab_size());
  return 0;
}
