#include "plinth/models/tokenizer/tokenizer.h"

#include <xxhash.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/models/tokenizer/byte_alphabet.h"
#include "plinth/models/tokenizer/nfc.h"
#include "plinth/storage/io/directory.h"
#include "plinth/storage/io/read_file.h"

namespace plinth::models {
namespace {

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// For messages: what a token looks like, without control characters or broken UTF-8.
std::string Shown(std::string_view bytes) {
  return absl::StrCat("\"", SpellBytes(bytes.substr(0, 40)), "\"");
}

std::optional<int32_t> Lookup(const absl::flat_hash_map<std::string, int32_t>& map,
                              std::string_view key) {
  const auto it = map.find(View(key));
  if (it == map.end()) return std::nullopt;
  return it->second;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string json, storage::ReadFile(path, kMaxTokenizerJsonBytes));
  ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, Parse(json), _ << path);
  return tokenizer;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Parse(std::string_view json) {
  ASSIGN_OR_RETURN(TokenizerSpec spec, ParseTokenizerJson(json));
  return Create(std::move(spec));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(TokenizerSpec spec) {
  std::unique_ptr<Tokenizer> self(new Tokenizer);
  self->spec_ = std::move(spec);
  std::vector<std::string> patterns = self->spec_.patterns;
  if (self->spec_.gpt2_pattern) patterns.emplace_back(kGpt2Pattern);
  ASSIGN_OR_RETURN(self->pre_tokenizer_, PreTokenizer::Create(std::move(patterns)),
                   _ << "pre_tokenizer");
  RETURN_IF_ERROR(self->TakeAddedTokens());
  self->TakeVocab();
  RETURN_IF_ERROR(self->BuildMerger());
  RETURN_IF_ERROR(self->CheckTemplateIds(self->spec_.prefix_ids));
  RETURN_IF_ERROR(self->CheckTemplateIds(self->spec_.suffix_ids));
  return self;
}

absl::Status Tokenizer::TakeAddedTokens() {
  bytes_.resize(spec_.vocab.size());
  absl::flat_hash_map<std::string, int32_t> model_ids;
  for (size_t id = 0; id < spec_.vocab.size(); ++id) {
    if (spec_.vocab[id].empty()) continue;
    if (!model_ids.emplace(spec_.vocab[id], static_cast<int32_t>(id)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("model.vocab: \"", spec_.vocab[id].substr(0, 40), "\" has two ids"));
    }
  }
  for (const AddedToken& token : spec_.added) {
    const std::string where =
        absl::StrCat("added_tokens: ", Shown(token.content), " with id ", token.id);
    const std::string sought = spec_.nfc && token.normalized ? ToNfc(token.content) : token.content;
    if (sought.empty() || sought.size() > AddedTokenMatcher::kMaxContentBytes) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": its length must be from 1 to ",
                                                     AddedTokenMatcher::kMaxContentBytes));
    }
    const auto in_model = model_ids.find(token.content);
    if (in_model != model_ids.end() && in_model->second != token.id) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": model.vocab gives it id ", in_model->second));
    }
    const size_t id = static_cast<size_t>(token.id);
    if (id >= bytes_.size()) bytes_.resize(id + 1);
    const bool other_owner =
        id < spec_.vocab.size() && !spec_.vocab[id].empty() && spec_.vocab[id] != token.content;
    if (other_owner || !bytes_[id].empty()) {
      return absl::InvalidArgumentError(where + ": the id belongs to another token as well");
    }
    if (added_ids_.contains(token.content)) {
      return absl::InvalidArgumentError(where + ": the content is listed twice");
    }
    bytes_[id] = token.content;
    const AddedTokenMatcher::Traits traits = {token.lstrip, token.rstrip, token.single_word};
    all_added_[token.normalized].Add(sought, token.id, traits);
    added_ids_.emplace(token.content, token.id);
    if (token.special) {
      special_ids_.insert(token.id);
    } else {
      ordinary_added_[token.normalized].Add(sought, token.id, traits);
    }
  }
  return absl::OkStatus();
}

void Tokenizer::TakeVocab() {
  // Added tokens own their bytes already; a model token that is spelled outside the byte alphabet
  // can be decoded, but no text leads to it.
  for (size_t id = 0; id < spec_.vocab.size(); ++id) {
    if (spec_.vocab[id].empty() || special_ids_.contains(static_cast<int32_t>(id))) continue;
    std::optional<std::string> bytes = BytesOfSpelling(spec_.vocab[id]);
    if (bytes) model_ids_.emplace(*bytes, static_cast<int32_t>(id));
    if (bytes_[id].empty()) bytes_[id] = bytes ? *std::move(bytes) : spec_.vocab[id];
  }
}

absl::Status Tokenizer::BuildMerger() {
  std::array<int32_t, 256> byte_ids;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const std::optional<int32_t> id = Lookup(model_ids_, {&c, 1});
    if (!id) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "model.vocab: no ordinary token for byte 0x%02X (\"%s\"); byte-level BPE needs all 256",
          byte, SpellBytes({&c, 1})));
    }
    byte_ids[byte] = *id;
  }
  std::vector<Merge> merges;
  merges.reserve(spec_.merges.size());
  absl::flat_hash_set<std::pair<int32_t, int32_t>> seen;
  for (size_t rank = 0; rank < spec_.merges.size(); ++rank) {
    const auto [left, right] = spec_.merges[rank];
    const std::string where = absl::StrCat("model.merges[", rank, "]");
    const int32_t size = static_cast<int32_t>(spec_.vocab.size());
    if (left < 0 || left >= size || right < 0 || right >= size) {
      return absl::InvalidArgumentError(where + ": an id is not in model.vocab");
    }
    const std::optional<std::string> bytes =
        BytesOfSpelling(spec_.vocab[left] + spec_.vocab[right]);
    const std::optional<int32_t> result = bytes ? Lookup(model_ids_, *bytes) : std::nullopt;
    if (!result) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": the result ",
                                                     Shown(bytes.value_or("")),
                                                     " is not an ordinary token of model.vocab"));
    }
    if (!seen.emplace(left, right).second) {
      return absl::InvalidArgumentError(where + ": the pair is listed twice");
    }
    merges.push_back({left, right, *result});
  }
  merger_ = std::make_unique<BpeMerger>(byte_ids, merges);
  return absl::OkStatus();
}

absl::Status Tokenizer::CheckTemplateIds(std::span<const int32_t> ids) const {
  for (const int32_t id : ids) {
    if (!BytesOfId(id)) {
      return absl::InvalidArgumentError(
          absl::StrCat("post_processor.special_tokens: id ", id, " has no token"));
    }
  }
  return absl::OkStatus();
}

absl::Status Tokenizer::Save(const std::string& path) const {
  return storage::WriteFileAtomically(path, ToJson());
}

std::string Tokenizer::Checksum() const {
  const std::string json = ToJson();
  return absl::StrFormat("%016x", XXH3_64bits(json.data(), json.size()));
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(std::string_view text,
                                                       const EncodeOptions& options) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 2);
  if (options.add_template) ids = spec_.prefix_ids;
  const AddedTokenMatcher* const added = options.allow_special ? all_added_ : ordinary_added_;
  const auto append = [&](int32_t id) {
    ids.push_back(id);
    return absl::OkStatus();
  };
  const auto encode = [&](std::string_view stretch) { return EncodeStretch(stretch, ids); };
  const auto normalize = [&](std::string_view stretch) {
    if (!spec_.nfc) return added[1].Walk(stretch, encode, append);
    const std::string normalized = ToNfc(stretch);
    return added[1].Walk(normalized, encode, append);
  };
  RETURN_IF_ERROR(added[0].Walk(text, normalize, append));
  if (options.add_template) {
    ids.insert(ids.end(), spec_.suffix_ids.begin(), spec_.suffix_ids.end());
  }
  return ids;
}

absl::Status Tokenizer::EncodeStretch(std::string_view text, std::vector<int32_t>& ids) const {
  std::string with_space;
  if (spec_.add_prefix_space && !text.starts_with(' ')) {
    with_space = absl::StrCat(" ", View(text));
    text = with_space;
  }
  return pre_tokenizer_->Split(text, [&](std::string_view piece) {
    if (spec_.ignore_merges) {
      if (const std::optional<int32_t> id = Lookup(model_ids_, piece)) {
        ids.push_back(*id);
        return;
      }
    }
    merger_->Encode(piece, ids);
  });
}

absl::StatusOr<std::string> Tokenizer::Decode(std::span<const int32_t> ids,
                                              const DecodeOptions& options) const {
  std::string bytes;
  bytes.reserve(ids.size() * 4);
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::optional<std::string_view> token = BytesOfId(ids[i]);
    if (!token) {
      return absl::InvalidArgumentError(absl::StrCat("id ", ids[i], " at position ", i,
                                                     " has no token; the vocabulary has ids 0 to ",
                                                     vocab_size() - 1));
    }
    if (options.skip_special && IsSpecial(ids[i])) continue;
    bytes.append(*token);
  }
  return bytes;
}

std::optional<std::string_view> Tokenizer::BytesOfId(int32_t id) const {
  if (id < 0 || id >= vocab_size() || bytes_[id].empty()) return std::nullopt;
  return bytes_[id];
}

std::optional<int32_t> Tokenizer::IdOfBytes(std::string_view bytes) const {
  if (const std::optional<int32_t> id = Lookup(model_ids_, bytes)) return id;
  const std::optional<int32_t> id = Lookup(added_ids_, bytes);
  return id && !IsSpecial(*id) ? id : std::nullopt;
}

std::optional<int32_t> Tokenizer::SpecialId(std::string_view content) const {
  const std::optional<int32_t> id = Lookup(added_ids_, content);
  return id && IsSpecial(*id) ? id : std::nullopt;
}

}  // namespace plinth::models
