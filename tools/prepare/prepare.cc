#include "plinth/tools/prepare/prepare.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/models/tokenizer/tokenizer.h"
#include "plinth/storage/dataset/token_dataset.h"
#include "plinth/storage/io/checksum.h"
#include "plinth/storage/io/directory.h"
#include "plinth/storage/io/input_file.h"
#include "plinth/storage/io/output_file.h"
#include "plinth/storage/io/read_file.h"

namespace plinth::tools {
namespace {

constexpr int64_t kMaxTokenizerBytes = int64_t{256} << 20;

// A document's place in the whole text.
struct Document {
  std::string path;
  int64_t begin = 0;
  int64_t end = 0;
};

struct Source {
  std::vector<Document> documents;  // none is empty
  int64_t size() const { return documents.empty() ? 0 : documents.back().end; }
};

struct Encoder {
  std::unique_ptr<models::Tokenizer> tokenizer;
  storage::TokenizerIdentity identity;
  std::optional<int32_t> separator;
};

absl::StatusOr<Source> OpenSource(const std::vector<std::string>& inputs) {
  if (inputs.empty()) return absl::InvalidArgumentError("--input: no text file given");
  Source source;
  for (const std::string& path : inputs) {
    ASSIGN_OR_RETURN(const storage::InputFile file, storage::InputFile::Open(path));
    const int64_t begin = source.size();
    if (file.size() > 0) source.documents.push_back({path, begin, begin + file.size()});
  }
  if (source.size() == 0) return absl::InvalidArgumentError("--input: the text is empty");
  return source;
}

absl::StatusOr<Encoder> LoadEncoder(const std::string& path, const std::string& separator) {
  // Read once: the checksum is that of the bytes that were parsed.
  ASSIGN_OR_RETURN(const std::string json, storage::ReadFile(path, kMaxTokenizerBytes));
  Encoder encoder;
  ASSIGN_OR_RETURN(encoder.tokenizer, models::Tokenizer::Parse(json), _ << path);
  encoder.identity = {.vocab_size = encoder.tokenizer->vocab_size(),
                      .checksum = storage::Checksum(std::string_view(json))};
  if (separator.empty()) return encoder;
  encoder.separator = encoder.tokenizer->SpecialId(separator);
  if (!encoder.separator) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has no special token ", separator,
                     "; name the one that ends a document with --separator, or --separator= "
                     "for none"));
  }
  return encoder;
}

// The first offset >= `offset` at which a line starts; the end of the text if there is none.
absl::StatusOr<int64_t> NextLineStart(const Source& source, int64_t offset, int64_t block_bytes) {
  const auto document = std::find_if(source.documents.begin(), source.documents.end(),
                                     [offset](const Document& d) { return offset < d.end; });
  if (document == source.documents.end() || offset == document->begin) return offset;
  ASSIGN_OR_RETURN(const storage::InputFile file, storage::InputFile::Open(document->path));
  std::string text;
  // From the byte before: `offset` is a line's start when a line ends there.
  for (int64_t at = offset - 1; at < document->end; at += static_cast<int64_t>(text.size())) {
    text.clear();
    RETURN_IF_ERROR(
        file.Append(at - document->begin, std::min(block_bytes, document->end - at), &text));
    const size_t line_end = text.find('\n');
    if (line_end != std::string::npos) return at + static_cast<int64_t>(line_end) + 1;
  }
  return document->end;
}

absl::StatusOr<int64_t> EvalBegin(const Source& source, const PrepareOptions& options) {
  if (options.eval_bytes == 0) return source.size();
  if (options.eval_bytes < 0 || options.eval_bytes >= source.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--eval_bytes: ", options.eval_bytes,
                                                   ", expected 0 to ", source.size() - 1,
                                                   " (the text has ", source.size(), " bytes)"));
  }
  ASSIGN_OR_RETURN(const int64_t begin,
                   NextLineStart(source, source.size() - options.eval_bytes, options.block_bytes));
  if (begin == source.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--eval_bytes: no line starts in the last ",
                                                   options.eval_bytes,
                                                   " bytes of the text; hold out more"));
  }
  return begin;
}

// Where to cut a block that is not the last, so that no piece of text that belongs together is
// torn: behind a line that is followed by neither white space nor another script's, else behind
// any line, else in front of a character.
size_t BlockEnd(std::string_view text) {
  for (size_t end = text.rfind('\n', text.size() - 2); end != std::string_view::npos && end > 0;
       end = text.rfind('\n', end - 1)) {
    if (text[end + 1] > ' ' && text[end + 1] < '\x7f') return end + 1;
  }
  if (const size_t end = text.rfind('\n'); end != std::string_view::npos) return end + 1;
  // A UTF-8 character has at most three continuation bytes (10xxxxxx).
  size_t end = text.size();
  for (int i = 0; i < 4 && end > 1; ++i) {
    if ((static_cast<unsigned char>(text[--end]) & 0xC0) != 0x80) return end;
  }
  return text.size();
}

// Writes one split. Counts what is done across both.
class SplitWriter {
 public:
  SplitWriter(const PrepareOptions& options, const Source& source, const Encoder& encoder)
      : options_(options), source_(source), encoder_(encoder) {}

  // Bytes [begin, end) of the text to the dataset `dir`, and as they are to `copy` if given.
  absl::StatusOr<SplitSize> Write(int64_t begin, int64_t end, const std::string& dir,
                                  storage::OutputFile* copy) {
    ASSIGN_OR_RETURN(const std::unique_ptr<storage::DatasetWriter> dataset,
                     storage::DatasetWriter::Create(dir, encoder_.identity, *options_.syscalls));
    SplitSize size{.bytes = end - begin};
    for (const Document& document : source_.documents) {
      const int64_t from = std::max(begin, document.begin), to = std::min(end, document.end);
      if (from >= to) continue;
      ASSIGN_OR_RETURN(const storage::InputFile file, storage::InputFile::Open(document.path));
      RETURN_IF_ERROR(WriteRange(file, from - document.begin, to - document.begin, *dataset, copy,
                                 &size.tokens))
          << document.path;
      if (to == document.end && encoder_.separator) {
        RETURN_IF_ERROR(dataset->Append({&*encoder_.separator, 1}));
        ++size.tokens;
      }
    }
    RETURN_IF_ERROR(dataset->Finish());
    return size;
  }

 private:
  absl::Status WriteRange(const storage::InputFile& file, int64_t begin, int64_t end,
                          storage::DatasetWriter& dataset, storage::OutputFile* copy,
                          int64_t* tokens) {
    std::string text;
    for (int64_t read = begin; read < end || !text.empty();) {
      const int64_t kept = static_cast<int64_t>(text.size());
      const int64_t more = std::min(std::max(options_.block_bytes - kept, int64_t{1}), end - read);
      RETURN_IF_ERROR(file.Append(read, more, &text));
      read += more;
      const size_t cut = read == end ? text.size() : BlockEnd(text);
      const std::string_view block = std::string_view(text).substr(0, cut);
      ASSIGN_OR_RETURN(const std::vector<int32_t> ids, encoder_.tokenizer->Encode(block, {}));
      RETURN_IF_ERROR(dataset.Append(ids));
      dataset.AddSourceBytes(static_cast<int64_t>(cut));
      if (copy != nullptr) RETURN_IF_ERROR(copy->Append(block));
      *tokens += static_cast<int64_t>(ids.size());
      done_ += static_cast<int64_t>(cut);
      text.erase(0, cut);
      if (options_.progress) options_.progress(done_, source_.size());
    }
    return absl::OkStatus();
  }

  const PrepareOptions& options_;
  const Source& source_;
  const Encoder& encoder_;
  int64_t done_ = 0;
};

absl::StatusOr<PrepareResult> WriteAll(const PrepareOptions& options, const Source& source,
                                       const Encoder& encoder, int64_t eval_begin,
                                       const std::string& dir) {
  storage::Syscalls& syscalls = *options.syscalls;
  RETURN_IF_ERROR(storage::RemoveTree(dir, syscalls));
  RETURN_IF_ERROR(storage::MakeDirectories(dir, syscalls));
  SplitWriter writer(options, source, encoder);
  PrepareResult result;
  ASSIGN_OR_RETURN(result.train, writer.Write(0, eval_begin, dir + "/train", nullptr));
  if (eval_begin < source.size()) {
    ASSIGN_OR_RETURN(storage::OutputFile copy,
                     storage::OutputFile::Create(dir + "/eval.txt", syscalls));
    ASSIGN_OR_RETURN(result.eval, writer.Write(eval_begin, source.size(), dir + "/eval", &copy));
    RETURN_IF_ERROR(copy.Finish());
  }
  RETURN_IF_ERROR(storage::CommitDirectory(dir, options.output, syscalls));
  return result;
}

}  // namespace

absl::StatusOr<PrepareResult> Prepare(const PrepareOptions& options) {
  std::string output = options.output;
  while (output.size() > 1 && output.back() == '/') output.pop_back();
  if (output.empty()) return absl::InvalidArgumentError("--output: no directory given");
  if (options.block_bytes <= 0) return absl::InvalidArgumentError("block_bytes must be > 0");
  struct stat info {};
  if (::lstat(output.c_str(), &info) == 0) {
    return absl::AlreadyExistsError(output + ": exists; remove it or choose another --output");
  }
  ASSIGN_OR_RETURN(const Source source, OpenSource(options.inputs));
  ASSIGN_OR_RETURN(const Encoder encoder, LoadEncoder(options.tokenizer, options.separator));
  ASSIGN_OR_RETURN(const int64_t eval_begin, EvalBegin(source, options));
  const size_t name = output.find_last_of('/') + 1;
  const std::string temporary = output.substr(0, name) + ".tmp-" + output.substr(name);
  PrepareOptions cleaned = options;
  cleaned.output = output;
  absl::StatusOr<PrepareResult> result = WriteAll(cleaned, source, encoder, eval_begin, temporary);
  // The first error is the one to report.
  if (!result.ok()) storage::RemoveTree(temporary).IgnoreError();
  return result;
}

}  // namespace plinth::tools
