// Learns a byte-level BPE vocabulary from text.
//
//   ASSIGN_OR_RETURN(auto trainer, BpeTrainer::Create({.vocab_size = 8192}));
//   RETURN_IF_ERROR(trainer->AddText(text));                       // as often as wanted
//   ASSIGN_OR_RETURN(auto tokenizer, trainer->Train());
//
// The text is cut into pieces as it will be when encoding, equal pieces are counted, and the most
// frequent adjacent pair becomes a token, again and again; pair counts are kept up to date only
// where a merge changed them. Ids: 0..255 the bytes, then the merges in the order they were
// learned, then the special tokens.
//
// Deterministic: a higher count wins, then the pair with the smaller ids; the order of texts and
// of hash tables plays no role. Memory: proportional to the different pieces, not to the text.
// Threads: owned by one thread.
#ifndef PLINTH_MODELS_TOKENIZER_BPE_TRAINER_H_
#define PLINTH_MODELS_TOKENIZER_BPE_TRAINER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/models/tokenizer/added_tokens.h"
#include "plinth/models/tokenizer/pre_tokenizer.h"
#include "plinth/models/tokenizer/tokenizer.h"

namespace plinth::models {

struct BpeTrainerOptions {
  int32_t vocab_size = 0;  // with the 256 bytes and the special tokens
  std::vector<std::string> special_tokens = {std::string(kEndOfText)};
  std::vector<std::string> patterns;  // Oniguruma dialect; empty: GPT-2's pattern
  int64_t min_pair_count = 2;         // rarer pairs are not worth a token
};

class BpeTrainer {
 public:
  // Errors: kInvalidArgument if vocab_size leaves no room for a merge or exceeds kMaxTokenId + 1,
  // or a pattern or special token is unusable.
  static absl::StatusOr<std::unique_ptr<BpeTrainer>> Create(BpeTrainerOptions options);

  // Counts the pieces of one text. Spellings of special tokens in it are left out, so that no
  // merge can grow into one. Errors: as PreTokenizer::Split.
  absl::Status AddText(std::string_view text);

  // Learns from all text so far; `progress`, if any, is told (merges done, merges wanted) every
  // few milliseconds of work. The vocabulary is smaller than asked for when the text has no more
  // pairs of min_pair_count. Errors: kInvalidArgument if there was no text.
  using Progress = std::function<void(int64_t done, int64_t wanted)>;
  absl::StatusOr<std::unique_ptr<Tokenizer>> Train(const Progress& progress = nullptr) const;

  int64_t distinct_pieces() const { return static_cast<int64_t>(piece_counts_.size()); }

  // Longer pieces (no white space for this long: encoded data, not language) count in parts, so
  // that the work per merge stays bounded.
  static constexpr size_t kMaxPieceBytes = 256;

 private:
  explicit BpeTrainer(BpeTrainerOptions options) : options_(std::move(options)) {}

  BpeTrainerOptions options_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  AddedTokenMatcher special_;
  absl::flat_hash_map<std::string, int64_t> piece_counts_;
};

}  // namespace plinth::models

#endif  // PLINTH_MODELS_TOKENIZER_BPE_TRAINER_H_
