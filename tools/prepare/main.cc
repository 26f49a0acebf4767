// prepare: text files to tokenised training and held-out datasets.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/progress_line.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/models/tokenizer/tokenizer.h"
#include "plinth/tools/prepare/prepare.h"

ABSL_FLAG(std::vector<std::string>, input, {},
          "text files, separated by commas; more may follow as arguments; each is one document");
ABSL_FLAG(std::string, tokenizer, "tokenizer.json", "Hugging Face tokenizer.json to use");
ABSL_FLAG(std::string, output, "", "directory to make; it must not exist");
ABSL_FLAG(int64_t, eval_bytes, 1000000,
          "bytes held out at the end of the text, cut at a line's start; 0: none");
ABSL_FLAG(std::string, separator, std::string(plinth::models::kEndOfText),
          "special token after each document; empty: none");
ABSL_FLAG(bool, json, false, "print the result as one JSON object");

namespace plinth::tools {
namespace {

constexpr char kUsage[] =
    "turns text files into tokenised training and held-out datasets.\n\n"
    "  prepare --input=a.txt,b.txt --tokenizer=tokenizer.json --output=DIR [--eval_bytes=N]\n\n"
    "Makes DIR/train, DIR/eval and DIR/eval.txt (the held-out text itself). Text is taken as\n"
    "bytes: it need not be UTF-8. A run that fails or is killed leaves no DIR.";

std::string ToText(const PrepareResult& result, const std::string& output) {
  std::string text;
  for (const auto& [name, size] : {std::pair{"train", result.train}, {"eval", result.eval}}) {
    if (size.bytes == 0) continue;
    absl::StrAppendFormat(&text, "%s/%-5s  %d bytes, %d tokens, %.3f bytes per token\n", output,
                          name, size.bytes, size.tokens,
                          static_cast<double>(size.bytes) / static_cast<double>(size.tokens));
  }
  return text;
}

std::string ToJson(const PrepareResult& result) {
  return absl::StrFormat(
      "{\"train_bytes\": %d, \"train_tokens\": %d, \"eval_bytes\": %d, \"eval_tokens\": %d}\n",
      result.train.bytes, result.train.tokens, result.eval.bytes, result.eval.tokens);
}

absl::StatusOr<std::string> Run(const std::vector<char*>& arguments) {
  PrepareOptions options = {.inputs = absl::GetFlag(FLAGS_input),
                            .tokenizer = absl::GetFlag(FLAGS_tokenizer),
                            .output = absl::GetFlag(FLAGS_output),
                            .eval_bytes = absl::GetFlag(FLAGS_eval_bytes),
                            .separator = absl::GetFlag(FLAGS_separator)};
  options.inputs.insert(options.inputs.end(), arguments.begin() + 1, arguments.end());
  absl::StatusOr<PrepareResult> result;
  {
    ProgressLine progress;
    options.progress = [&progress](int64_t done, int64_t total) {
      progress.Show(absl::StrFormat("%d of %d MB of text", done >> 20, total >> 20));
    };
    result = Prepare(options);
  }
  RETURN_IF_ERROR(result.status());
  return absl::GetFlag(FLAGS_json) ? ToJson(*result) : ToText(*result, options.output);
}

}  // namespace
}  // namespace plinth::tools

int main(int argc, char** argv) {
  plinth::SetProgramHelp(plinth::tools::kUsage);
  return plinth::PrintReport("prepare", plinth::tools::Run(plinth::ParseFlags(argc, argv)));
}
