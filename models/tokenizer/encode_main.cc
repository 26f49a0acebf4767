// Encodes text on stdin to token ids on stdout, or the other way round with --decode.

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/models/tokenizer/tokenizer.h"

ABSL_FLAG(std::string, tokenizer, "tokenizer.json", "Hugging Face tokenizer.json to use");
ABSL_FLAG(bool, decode, false, "read ids from stdin, write their bytes to stdout");
ABSL_FLAG(bool, null_separated, false,
          "stdin holds texts that each end with a NUL byte; each gives one line of ids");
ABSL_FLAG(bool, allow_special, false, "the spelling of a special token becomes that token");
ABSL_FLAG(bool, add_template, false, "add the tokens that the file's post_processor asks for");
ABSL_FLAG(bool, json, false, "print each list of ids as a JSON array");
ABSL_FLAG(std::string, save, "", "also write the tokenizer, as we understood it, to this file");

namespace plinth::models {
namespace {

absl::Status EncodeAndPrint(const Tokenizer& tokenizer, std::string_view text) {
  ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                   tokenizer.Encode(text, {.allow_special = absl::GetFlag(FLAGS_allow_special),
                                           .add_template = absl::GetFlag(FLAGS_add_template)}));
  if (absl::GetFlag(FLAGS_json)) {
    std::cout << "[" << absl::StrJoin(ids, ", ") << "]\n";
  } else {
    std::cout << absl::StrJoin(ids, " ") << "\n";
  }
  return absl::OkStatus();
}

absl::Status EncodeInput(const Tokenizer& tokenizer, const std::string& input) {
  if (!absl::GetFlag(FLAGS_null_separated)) return EncodeAndPrint(tokenizer, input);
  std::string_view rest = input;
  while (!rest.empty()) {
    const size_t end = rest.find('\0');
    if (end == std::string_view::npos) {
      return absl::InvalidArgumentError("stdin: the last text does not end with a NUL byte");
    }
    RETURN_IF_ERROR(EncodeAndPrint(tokenizer, rest.substr(0, end)));
    rest.remove_prefix(end + 1);
  }
  return absl::OkStatus();
}

absl::Status DecodeInput(const Tokenizer& tokenizer, const std::string& input) {
  std::istringstream words(input);
  std::vector<int32_t> ids;
  for (std::string word; words >> word;) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(word, &id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("stdin: \"", word.substr(0, 40), "\" is not a token id"));
    }
    ids.push_back(id);
  }
  ASSIGN_OR_RETURN(const std::string bytes, tokenizer.Decode(ids, {}));
  std::cout << bytes;
  return absl::OkStatus();
}

absl::Status Run() {
  ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load(absl::GetFlag(FLAGS_tokenizer)));
  const std::string save = absl::GetFlag(FLAGS_save);
  if (!save.empty()) RETURN_IF_ERROR(tokenizer->Save(save));
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  RETURN_IF_ERROR(absl::GetFlag(FLAGS_decode) ? DecodeInput(*tokenizer, input)
                                              : EncodeInput(*tokenizer, input));
  std::cout.flush();
  if (!std::cout) return absl::DataLossError("stdout: cannot write");
  return absl::OkStatus();
}

}  // namespace
}  // namespace plinth::models

int main(int argc, char** argv) {
  plinth::SetProgramHelp(
      "Encodes stdin to token ids, or decodes ids with --decode.\n"
      "  echo 'Hello there' | encode --tokenizer=tokenizer.json\n"
      "  echo 15496 612 | encode --tokenizer=tokenizer.json --decode");
  plinth::ParseFlagsOnly("encode", argc, argv);
  const absl::Status status = plinth::models::Run();
  if (status.ok()) return 0;
  return plinth::ReportError("encode", status);
}
