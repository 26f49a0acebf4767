// Byte-level BPE: text to token ids and back, compatible with Hugging Face's tokenizer.json.
//
//   ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load("tokenizer.json"));
//   ASSIGN_OR_RETURN(const std::vector<int32_t> ids, tokenizer->Encode("Hello", {}));
//   ASSIGN_OR_RETURN(const std::string bytes, tokenizer->Decode(ids, {}));
//
// Lossless: Decode(Encode(x)) == x for any bytes x, valid UTF-8 or not, up to what the file itself
// asks for: the one space that add_prefix_space puts in front, form C (nfc), and the white space
// that lstrip and rstrip tokens take along. Bytes that belong to no UTF-8 character form pieces of
// their own, so they change the tokens of nothing but themselves and their neighbours' borders.
//
// Safe: text never becomes a special token unless the caller allows it; no merge can produce one.
//
// Threads: immutable; every method may be called from any number of threads at once.
#ifndef PLINTH_MODELS_TOKENIZER_TOKENIZER_H_
#define PLINTH_MODELS_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plinth/models/tokenizer/added_tokens.h"
#include "plinth/models/tokenizer/bpe_merger.h"
#include "plinth/models/tokenizer/pre_tokenizer.h"
#include "plinth/models/tokenizer/tokenizer_spec.h"

namespace plinth::models {

inline constexpr std::string_view kEndOfText = "<|endoftext|>";

struct EncodeOptions {
  // The spelling of a special token in the text becomes that token. Only for text that the
  // program itself wrote (chat templates), never for what a user typed.
  bool allow_special = false;
  // Put around the text what the file's post_processor asks for (begin of text for Llama 3).
  bool add_template = false;
};

struct DecodeOptions {
  bool skip_special = false;  // special tokens give no text
};

class Tokenizer {
 public:
  // Errors: kNotFound or the system's code if the file cannot be read; else as Parse, with the
  // path in front.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const std::string& path);
  // Errors: as ParseTokenizerJson and Create.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Parse(std::string_view json);
  // Errors: kInvalidArgument for a spec that contradicts itself: a byte without a token, a merge
  // whose result is absent, special or repeated, an id or a text that is used twice.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(TokenizerSpec spec);

  // The canonical tokenizer.json; Hugging Face's `tokenizers` loads it and gives equal ids.
  std::string ToJson() const { return TokenizerJson(spec_); }
  // Writes ToJson() beside `path` and renames it there: readers see the old file or the new one.
  absl::Status Save(const std::string& path) const;
  // XXH3 (64 bits, 16 hex digits) of ToJson(): equal tokenizers and no others agree on it. Costs
  // a serialisation, so keep the result.
  std::string Checksum() const;

  // Errors: kResourceExhausted if the file's own pattern backtracks without end on `text`.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text,
                                              const EncodeOptions& options) const;
  // The bytes of `ids`, which need not be valid UTF-8 (see ReplaceInvalidUtf8 and
  // StreamingDecoder). Errors: kInvalidArgument for an id without a token.
  absl::StatusOr<std::string> Decode(std::span<const int32_t> ids,
                                     const DecodeOptions& options) const;

  // One more than the largest id; a few ids below it may have no token.
  int32_t vocab_size() const { return static_cast<int32_t>(bytes_.size()); }
  // Raw bytes of a token, valid as long as this object; nothing if the id has no token.
  std::optional<std::string_view> BytesOfId(int32_t id) const;
  // The ordinary (not special) token with these raw bytes.
  std::optional<int32_t> IdOfBytes(std::string_view bytes) const;
  // The special token with this content.
  std::optional<int32_t> SpecialId(std::string_view content) const;
  bool IsSpecial(int32_t id) const { return special_ids_.contains(id); }
  // SpecialId(kEndOfText).
  std::optional<int32_t> end_of_text_id() const { return SpecialId(kEndOfText); }

 private:
  Tokenizer() = default;
  void TakeVocab();
  absl::Status TakeAddedTokens();
  absl::Status BuildMerger();
  absl::Status EncodeStretch(std::string_view text, std::vector<int32_t>& ids) const;
  absl::Status CheckTemplateIds(std::span<const int32_t> ids) const;

  TokenizerSpec spec_;
  std::vector<std::string> bytes_;                       // [id]; empty where there is no token
  absl::flat_hash_map<std::string, int32_t> model_ids_;  // not special, by raw bytes
  absl::flat_hash_map<std::string, int32_t> added_ids_;  // by content
  absl::flat_hash_set<int32_t> special_ids_;
  // Searched in this order; [0] plain, [1] normalized; with and without the special ones.
  AddedTokenMatcher ordinary_added_[2];
  AddedTokenMatcher all_added_[2];
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<BpeMerger> merger_;
};

}  // namespace plinth::models

#endif  // PLINTH_MODELS_TOKENIZER_TOKENIZER_H_
