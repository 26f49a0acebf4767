#include "plinth/storage/dataset/token_dataset.h"

#include <google/protobuf/text_format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/storage/io/checksum.h"
#include "plinth/storage/io/directory.h"

namespace plinth::storage {
namespace {

constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 64;
constexpr char kMagic[] = "PLINTHTK";
constexpr char kTokensName[] = "/tokens.bin";
constexpr char kMetaName[] = "/meta.textproto";
constexpr int64_t kMaxMetaBytes = 1 << 20;

template <typename T>
void PutInteger(T value, std::string* out) {
  for (size_t i = 0; i < sizeof(T); ++i) *out += static_cast<char>(value >> (8 * i));
}

uint32_t TokenBytes(int64_t vocab_size) { return vocab_size <= 65536 ? 2 : 4; }

// The first 64 bytes of tokens.bin. Everything in it follows from the meta, so a reader
// compares whole headers.
std::string Header(const TokenizerIdentity& tokenizer) {
  std::string header(kMagic);
  PutInteger(kVersion, &header);
  PutInteger(TokenBytes(tokenizer.vocab_size), &header);
  PutInteger(static_cast<uint64_t>(tokenizer.vocab_size), &header);
  PutInteger(tokenizer.checksum, &header);
  header.resize(kHeaderBytes - 8, '\0');
  PutInteger(Checksum(header), &header);
  return header;
}

absl::Status CheckHeader(std::string_view header, const TokenizerIdentity& tokenizer) {
  if (header.substr(0, 8) != kMagic) {
    return absl::DataLossError("is not a token file (magic bytes differ)");
  }
  std::string expected_checksum;
  PutInteger(Checksum(header.substr(0, kHeaderBytes - 8)), &expected_checksum);
  if (header.substr(kHeaderBytes - 8) != expected_checksum) {
    return absl::DataLossError("its header is damaged (checksum differs)");
  }
  if (header != Header(tokenizer)) {
    return absl::DataLossError("its header is not the one that meta.textproto describes");
  }
  return absl::OkStatus();
}

absl::StatusOr<DatasetMeta> ReadMeta(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxMetaBytes));
  DatasetMeta meta;
  if (!google::protobuf::TextFormat::ParseFromString(text, &meta)) {
    return absl::InvalidArgumentError(path + ": is not a DatasetMeta in text format");
  }
  if (meta.format_version() != kVersion) {
    return absl::UnimplementedError(
        absl::StrCat(path, ": dataset format ", meta.format_version(), ", expected ", kVersion));
  }
  if (meta.vocab_size() < 1 || meta.vocab_size() > int64_t{1} << 31 || meta.tokens() < 0 ||
      meta.tokens() > int64_t{1} << 60 || meta.source_bytes() < 0 ||
      meta.token_bytes() != TokenBytes(meta.vocab_size())) {
    return absl::InvalidArgumentError(path + ": sizes out of range: " + meta.ShortDebugString());
  }
  return meta;
}

// Calls `use` with the ids as they are stored.
template <typename Use>
auto WithTokens(std::span<const std::byte> file, uint32_t token_bytes, Use use) {
  const std::byte* start = file.data() + kHeaderBytes;  // page-aligned + 64
  return token_bytes == 2 ? use(reinterpret_cast<const uint16_t*>(start))
                          : use(reinterpret_cast<const uint32_t*>(start));
}

std::string Describe(const TokenizerIdentity& tokenizer) {
  return absl::StrCat("tokenizer ", ChecksumText(tokenizer.checksum), " of ", tokenizer.vocab_size,
                      " tokens");
}

}  // namespace

DatasetWriter::DatasetWriter(std::string dir, std::string temporary,
                             const TokenizerIdentity& tokenizer, OutputFile file,
                             Syscalls& syscalls)
    : dir_(std::move(dir)),
      temporary_(std::move(temporary)),
      tokenizer_(tokenizer),
      file_(std::move(file)),
      syscalls_(&syscalls) {}

absl::StatusOr<std::unique_ptr<DatasetWriter>> DatasetWriter::Create(
    const std::string& dir, const TokenizerIdentity& tokenizer, Syscalls& syscalls) {
  if (tokenizer.vocab_size < 1 || tokenizer.vocab_size > int64_t{1} << 31) {
    return absl::InvalidArgumentError(
        absl::StrCat(dir, ": vocabulary of ", tokenizer.vocab_size, " tokens, expected 1 to 2^31"));
  }
  // Beside the final place, so that the rename stays in one file system.
  const size_t name = dir.find_last_of('/') + 1;
  const std::string temporary = dir.substr(0, name) + ".tmp-" + dir.substr(name);
  RETURN_IF_ERROR(RemoveTree(temporary, syscalls));
  RETURN_IF_ERROR(MakeDirectories(temporary, syscalls));
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(temporary + kTokensName, syscalls));
  RETURN_IF_ERROR(file.Append(Header(tokenizer)));
  return std::unique_ptr<DatasetWriter>(
      new DatasetWriter(dir, temporary, tokenizer, std::move(file), syscalls));
}

absl::Status DatasetWriter::Append(std::span<const int32_t> tokens) {
  const uint32_t width = TokenBytes(tokenizer_.vocab_size);
  std::string bytes;
  bytes.reserve(tokens.size() * width);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= tokenizer_.vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat(dir_, ": token ", tokens_ + static_cast<int64_t>(i), " is ", tokens[i],
                       ", expected 0 to ", tokenizer_.vocab_size - 1));
    }
    width == 2 ? PutInteger(static_cast<uint16_t>(tokens[i]), &bytes)
               : PutInteger(static_cast<uint32_t>(tokens[i]), &bytes);
  }
  RETURN_IF_ERROR(file_.Append(bytes));
  tokens_ += tokens.size();
  return absl::OkStatus();
}

absl::Status DatasetWriter::Finish() {
  RETURN_IF_ERROR(file_.Finish());
  DatasetMeta meta;
  meta.set_format_version(kVersion);
  meta.set_tokens(tokens_);
  meta.set_token_bytes(TokenBytes(tokenizer_.vocab_size));
  meta.set_vocab_size(tokenizer_.vocab_size);
  meta.set_tokenizer_checksum(tokenizer_.checksum);
  meta.set_source_bytes(source_bytes_);
  meta.set_tokens_xxh3(file_.checksum());
  std::string text;
  CHECK(google::protobuf::TextFormat::PrintToString(meta, &text));
  RETURN_IF_ERROR(WriteFileAtomically(temporary_ + kMetaName, text, *syscalls_));
  return CommitDirectory(temporary_, dir_, *syscalls_);
}

absl::StatusOr<std::unique_ptr<TokenDataset>> TokenDataset::Open(const std::string& dir) {
  ASSIGN_OR_RETURN(DatasetMeta meta, ReadMeta(dir + kMetaName));
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(dir + kTokensName));
  const uint64_t expected =
      kHeaderBytes + static_cast<uint64_t>(meta.tokens()) * meta.token_bytes();
  if (file.bytes().size() != expected) {
    return absl::DataLossError(absl::StrCat(file.path(), ": expected ", expected, " bytes for ",
                                            meta.tokens(), " tokens, got ", file.bytes().size()));
  }
  const std::string_view header(reinterpret_cast<const char*>(file.bytes().data()), kHeaderBytes);
  RETURN_IF_ERROR(CheckHeader(header, {meta.vocab_size(), meta.tokenizer_checksum()}))
      << file.path();
  return std::unique_ptr<TokenDataset>(new TokenDataset(dir, std::move(meta), std::move(file)));
}

TokenizerIdentity TokenDataset::tokenizer() const {
  return {meta_.vocab_size(), meta_.tokenizer_checksum()};
}

absl::Status TokenDataset::CheckTokenizer(const TokenizerIdentity& expected) const {
  const TokenizerIdentity mine = tokenizer();
  if (mine.vocab_size == expected.vocab_size && mine.checksum == expected.checksum) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(dir_ + ": made with " + Describe(mine) +
                                       ", but the model has " + Describe(expected) +
                                       ": tokenise the text again");
}

absl::Status TokenDataset::Copy(int64_t begin, std::span<int32_t> out) const {
  const int64_t count = static_cast<int64_t>(out.size());
  CHECK(begin >= 0 && begin <= size() && count <= size() - begin)
      << begin << "+" << count << " of " << size();
  return WithTokens(file_.bytes(), meta_.token_bytes(), [&](const auto* tokens) -> absl::Status {
    for (int64_t i = 0; i < count; ++i) {
      if (tokens[begin + i] >= meta_.vocab_size()) {
        return absl::DataLossError(absl::StrCat(file_.path(), ": token ", begin + i, " is ",
                                                tokens[begin + i], ", expected below ",
                                                meta_.vocab_size()));
      }
      out[i] = static_cast<int32_t>(tokens[begin + i]);
    }
    return absl::OkStatus();
  });
}

absl::Status TokenDataset::Verify() const {
  if (const uint64_t got = Checksum(file_.bytes()); got != meta_.tokens_xxh3()) {
    return absl::DataLossError(file_.path() + ": checksum is " + ChecksumText(got) + ", expected " +
                               ChecksumText(meta_.tokens_xxh3()));
  }
  constexpr int64_t kAtOnce = 1 << 16;
  std::vector<int32_t> tokens(kAtOnce);
  for (int64_t begin = 0; begin < size(); begin += kAtOnce) {
    const int64_t count = std::min(kAtOnce, size() - begin);
    RETURN_IF_ERROR(Copy(begin, std::span(tokens).first(count)));
  }
  return absl::OkStatus();
}

}  // namespace plinth::storage
