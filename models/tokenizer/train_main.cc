// Trains a byte-level BPE tokenizer on text files and writes a Hugging Face tokenizer.json.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plinth/hardware/base/program.h"
#include "plinth/hardware/base/progress_line.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/models/tokenizer/bpe_trainer.h"
#include "plinth/models/tokenizer/tokenizer.h"
#include "plinth/storage/io/input_file.h"

ABSL_FLAG(std::vector<std::string>, input, {},
          "text files, separated by commas; more may follow as arguments");
ABSL_FLAG(int32_t, vocab_size, 8192, "size with the 256 bytes and the special tokens");
ABSL_FLAG(std::string, output, "tokenizer.json", "file to write");
ABSL_FLAG(std::vector<std::string>, special_tokens, {std::string(plinth::models::kEndOfText)},
          "special tokens, separated by commas; they get the last ids");
ABSL_FLAG(bool, json, false, "print the result as one JSON object");

namespace plinth::models {
namespace {

using Clock = std::chrono::steady_clock;

// Adds a file in blocks that end at line ends, so that memory stays bounded. Returns its bytes.
absl::StatusOr<int64_t> AddFile(const std::string& path, BpeTrainer& trainer,
                                ProgressLine& progress) {
  constexpr int64_t kBlockBytes = 8 << 20;
  ASSIGN_OR_RETURN(const storage::InputFile file, storage::InputFile::Open(path));
  std::string text;
  for (int64_t done = 0; done < file.size();) {
    const int64_t more = std::min(kBlockBytes, file.size() - done);
    RETURN_IF_ERROR(file.Append(done, more, &text));
    done += more;
    const size_t line_end = text.rfind('\n');
    const bool last = done == file.size();
    const size_t use = last || line_end == std::string::npos ? text.size() : line_end + 1;
    RETURN_IF_ERROR(trainer.AddText(std::string_view(text).substr(0, use))) << path;
    text.erase(0, use);
    progress.Show(absl::StrFormat("%s: %d MB read", path, done >> 20));
  }
  return file.size();
}

absl::Status Run(const std::vector<std::string>& inputs) {
  if (inputs.empty()) return absl::InvalidArgumentError("--input: no text file given");
  const Clock::time_point start = Clock::now();
  ASSIGN_OR_RETURN(const auto trainer,
                   BpeTrainer::Create({.vocab_size = absl::GetFlag(FLAGS_vocab_size),
                                       .special_tokens = absl::GetFlag(FLAGS_special_tokens)}));
  int64_t bytes = 0;
  std::unique_ptr<Tokenizer> tokenizer;
  {
    ProgressLine progress;
    for (const std::string& path : inputs) {
      ASSIGN_OR_RETURN(const int64_t file_bytes, AddFile(path, *trainer, progress));
      bytes += file_bytes;
    }
    const int64_t pieces = trainer->distinct_pieces();
    ASSIGN_OR_RETURN(tokenizer, trainer->Train([&](int64_t done, int64_t wanted) {
      progress.Show(absl::StrFormat("%d different pieces, merge %d of %d", pieces, done, wanted));
    }));
  }
  const std::string output = absl::GetFlag(FLAGS_output);
  RETURN_IF_ERROR(tokenizer->Save(output));
  if (tokenizer->vocab_size() < absl::GetFlag(FLAGS_vocab_size)) {
    std::cerr << "note: the text has pairs for only " << tokenizer->vocab_size()
              << " tokens, not for " << absl::GetFlag(FLAGS_vocab_size) << "\n";
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (absl::GetFlag(FLAGS_json)) {
    std::cout << absl::StrFormat(
        "{\"vocab_size\": %d, \"bytes\": %d, \"distinct_pieces\": %d, \"seconds\": %.3f, "
        "\"checksum\": \"%s\"}\n",
        tokenizer->vocab_size(), bytes, trainer->distinct_pieces(), seconds, tokenizer->Checksum());
  } else {
    std::cout << absl::StrFormat("%s: %d tokens from %d bytes in %.1f s, checksum %s\n", output,
                                 tokenizer->vocab_size(), bytes, seconds, tokenizer->Checksum());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace plinth::models

int main(int argc, char** argv) {
  plinth::SetProgramHelp(
      "Trains a byte-level BPE tokenizer and writes a Hugging Face tokenizer.json.\n"
      "  train --input=a.txt,b.txt --vocab_size=8192 --output=tokenizer.json");
  const std::vector<char*> arguments = plinth::ParseFlags(argc, argv);
  std::vector<std::string> inputs = absl::GetFlag(FLAGS_input);
  inputs.insert(inputs.end(), arguments.begin() + 1, arguments.end());
  const absl::Status status = plinth::models::Run(inputs);
  if (status.ok()) return 0;
  return plinth::ReportError("train", status);
}
