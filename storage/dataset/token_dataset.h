// A tokenised text: one stream of token ids on disk, mapped when read.
//
// <dir>/meta.textproto   what it is (dataset.proto): readable, and small
// <dir>/tokens.bin       64 bytes of header (README.md), then little-endian u16 or u32 ids
#ifndef PLINTH_STORAGE_DATASET_TOKEN_DATASET_H_
#define PLINTH_STORAGE_DATASET_TOKEN_DATASET_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/storage/dataset/dataset.pb.h"
#include "plinth/storage/io/output_file.h"
#include "plinth/storage/io/read_file.h"
#include "plinth/storage/io/syscalls.h"

namespace plinth::storage {

// The tokenizer that made the ids; a model must have been made with the same one.
struct TokenizerIdentity {
  int64_t vocab_size = 0;
  uint64_t checksum = 0;  // storage::Checksum of its file
};

// Streams ids into a new dataset. Nothing is at `dir` until Finish renames it there.
// Threads  thread-compatible.   Memory  constant.
class DatasetWriter {
 public:
  // `dir` may exist: a finished dataset replaces it. Ids are stored in 16 bits when the
  // vocabulary allows. kInvalidArgument for a vocabulary outside [1, 2^31].
  static absl::StatusOr<std::unique_ptr<DatasetWriter>> Create(const std::string& dir,
                                                               const TokenizerIdentity& tokenizer,
                                                               Syscalls& syscalls = RealSyscalls());

  // kInvalidArgument for an id outside of the vocabulary (names id and position); nothing of
  // the call is stored then.
  absl::Status Append(std::span<const int32_t> tokens);
  // Adds to the count of text bytes that the tokens stand for: bits per byte divide by it.
  void AddSourceBytes(int64_t bytes) { source_bytes_ += bytes; }
  // Makes everything durable and renames. Call once.
  absl::Status Finish();

 private:
  DatasetWriter(std::string dir, std::string temporary, const TokenizerIdentity& tokenizer,
                OutputFile file, Syscalls& syscalls);

  std::string dir_;
  std::string temporary_;
  TokenizerIdentity tokenizer_;
  OutputFile file_;
  Syscalls* syscalls_;
  int64_t tokens_ = 0;
  int64_t source_bytes_ = 0;
};

// Threads  re-entrant after Open.
class TokenDataset {
 public:
  // Checks both files' structure and that they agree; tokens are not read.
  // Errors   kNotFound; kDataLoss: cut or damaged header, or a size that is not the one the
  //          meta says; kUnimplemented: another version; kInvalidArgument: malformed meta.
  static absl::StatusOr<std::unique_ptr<TokenDataset>> Open(const std::string& dir);

  int64_t size() const { return meta_.tokens(); }
  int64_t source_bytes() const { return meta_.source_bytes(); }
  // Of the tokens and their encoding: names the data in a DataCursor.
  uint64_t checksum() const { return meta_.tokens_xxh3(); }
  TokenizerIdentity tokenizer() const;
  const std::string& dir() const { return dir_; }

  // kFailedPrecondition, telling both sides, unless the data was made with this tokenizer.
  absl::Status CheckTokenizer(const TokenizerIdentity& expected) const;

  // Tokens [begin, begin + out.size()). CHECKs the range. kDataLoss for an id outside the
  // vocabulary: an embedding must never be indexed with it.
  absl::Status Copy(int64_t begin, std::span<int32_t> out) const;

  // Reads everything: checksum and range of all ids.
  absl::Status Verify() const;

 private:
  TokenDataset(std::string dir, DatasetMeta meta, MappedFile file)
      : dir_(std::move(dir)), meta_(std::move(meta)), file_(std::move(file)) {}

  std::string dir_;
  DatasetMeta meta_;
  MappedFile file_;
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_DATASET_TOKEN_DATASET_H_
