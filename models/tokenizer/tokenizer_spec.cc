#include "plinth/models/tokenizer/tokenizer_spec.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "plinth/hardware/base/json_fields.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::models {
namespace {

namespace json = ::boost::json;

std::string At(std::string_view path, size_t index) {
  return absl::StrCat(std::string(path), "[", index, "]");
}

absl::Status ReadVocab(const json::value& value, TokenizerSpec& spec) {
  if (!value.is_object()) return WrongJson("model.vocab", "an object", value);
  for (const auto& field : value.get_object()) {
    const std::string token(field.key());
    const std::string path = absl::StrCat("model.vocab[\"", token.substr(0, 60), "\"]");
    const json::value& id = field.value();
    if (token.empty()) return absl::InvalidArgumentError("model.vocab: a token is empty");
    if (!id.is_int64() || id.get_int64() < 0 || id.get_int64() > kMaxTokenId) {
      return WrongJson(path, absl::StrCat("an integer from 0 to ", kMaxTokenId), id);
    }
    const size_t index = static_cast<size_t>(id.get_int64());
    if (index >= spec.vocab.size()) spec.vocab.resize(index + 1);
    if (!spec.vocab[index].empty()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": id ", index, " already belongs to \"",
                                                     spec.vocab[index].substr(0, 60), "\""));
    }
    spec.vocab[index] = token;
  }
  return absl::OkStatus();
}

// One merge is "left right" or ["left", "right"].
absl::StatusOr<std::pair<std::string, std::string>> ReadMerge(const json::value& value,
                                                              const std::string& path) {
  if (value.is_string()) {
    const std::string text(value.get_string());
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return std::make_pair(text.substr(0, space), text.substr(space + 1));
    }
  }
  if (value.is_array() && value.get_array().size() == 2 && value.get_array()[0].is_string() &&
      value.get_array()[1].is_string()) {
    return std::make_pair(std::string(value.get_array()[0].get_string()),
                          std::string(value.get_array()[1].get_string()));
  }
  return WrongJson(path, "two tokens", value);
}

absl::Status ReadMerges(const json::array& merges, TokenizerSpec& spec) {
  absl::flat_hash_map<std::string, int32_t> ids;
  for (size_t id = 0; id < spec.vocab.size(); ++id) {
    if (!spec.vocab[id].empty()) ids.emplace(spec.vocab[id], static_cast<int32_t>(id));
  }
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string path = At("model.merges", rank);
    ASSIGN_OR_RETURN(const auto pair, ReadMerge(merges[rank], path));
    const auto left = ids.find(pair.first), right = ids.find(pair.second);
    if (left == ids.end() || right == ids.end()) {
      const std::string& absent = left == ids.end() ? pair.first : pair.second;
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": \"", absent.substr(0, 60), "\" is not in model.vocab"));
    }
    spec.merges.emplace_back(left->second, right->second);
  }
  return absl::OkStatus();
}

absl::Status ReadModel(const json::value& value, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(Fields model, Fields::Of(value, "model"));
  ASSIGN_OR_RETURN(const std::string type, model.String("type"));
  if (type != "BPE") return UnsupportedJson("model.type", "BPE", json::value(type));
  for (const char* key :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"}) {
    RETURN_IF_ERROR(model.MustBeOff(key));
  }
  // They say what to do with bytes that have no token, and Create demands a token for each.
  model.Find("unk_token");
  model.Find("fuse_unk");
  ASSIGN_OR_RETURN(spec.ignore_merges, model.Bool("ignore_merges", false));
  ASSIGN_OR_RETURN(const json::value* const vocab, model.Get("vocab"));
  RETURN_IF_ERROR(ReadVocab(*vocab, spec));
  ASSIGN_OR_RETURN(const json::array* const merges, model.Array("merges"));
  RETURN_IF_ERROR(ReadMerges(*merges, spec));
  return model.Done();
}

absl::Status ReadByteLevel(Fields& step, bool alone, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(spec.add_prefix_space, step.Bool("add_prefix_space"));
  ASSIGN_OR_RETURN(spec.gpt2_pattern, step.Bool("use_regex", true));
  step.Find("trim_offsets");  // concerns character offsets, which we do not give
  if (spec.add_prefix_space && !alone) {
    return UnsupportedJson(step.PathOf("add_prefix_space"), "false within a Sequence",
                           json::value(true));
  }
  return step.Done();
}

absl::Status ReadSplit(Fields& step, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(const json::value* const pattern_value, step.Get("pattern"));
  ASSIGN_OR_RETURN(Fields pattern, Fields::Of(*pattern_value, step.PathOf("pattern")));
  ASSIGN_OR_RETURN(std::string regex, pattern.String("Regex"));
  RETURN_IF_ERROR(pattern.Done());
  spec.patterns.push_back(std::move(regex));
  ASSIGN_OR_RETURN(const std::string behavior, step.String("behavior"));
  if (behavior != "Isolated") {
    return UnsupportedJson(step.PathOf("behavior"), "Isolated", json::value(behavior));
  }
  RETURN_IF_ERROR(step.MustBeOff("invert"));
  return step.Done();
}

absl::Status ReadPreTokenizer(const json::value& value, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(Fields outer, Fields::Of(value, "pre_tokenizer"));
  ASSIGN_OR_RETURN(const std::string type, outer.String("type"));
  if (type == "ByteLevel") return ReadByteLevel(outer, /*alone=*/true, spec);
  if (type != "Sequence") {
    return UnsupportedJson("pre_tokenizer.type", "ByteLevel or Sequence", json::value(type));
  }
  ASSIGN_OR_RETURN(const json::array* const steps, outer.Array("pretokenizers"));
  RETURN_IF_ERROR(outer.Done());
  bool ends_in_bytes = false;
  for (size_t i = 0; i < steps->size(); ++i) {
    ASSIGN_OR_RETURN(Fields step, Fields::Of((*steps)[i], At("pre_tokenizer.pretokenizers", i)));
    ASSIGN_OR_RETURN(const std::string step_type, step.String("type"));
    const bool last = i + 1 == steps->size();
    if (step_type == "Split" && !last) {
      RETURN_IF_ERROR(ReadSplit(step, spec));
    } else if (step_type == "ByteLevel" && last) {
      RETURN_IF_ERROR(ReadByteLevel(step, steps->size() == 1, spec));
      ends_in_bytes = true;
    } else {
      return UnsupportedJson(step.PathOf("type"), last ? "ByteLevel at the end" : "Split before it",
                             json::value(step_type));
    }
  }
  if (!ends_in_bytes) return WrongJson("pre_tokenizer.pretokenizers", "at least one step", value);
  return absl::OkStatus();
}

absl::Status ReadDecoder(const json::value& value) {
  ASSIGN_OR_RETURN(Fields decoder, Fields::Of(value, "decoder"));
  ASSIGN_OR_RETURN(const std::string type, decoder.String("type"));
  if (type != "ByteLevel") return UnsupportedJson("decoder.type", "ByteLevel", json::value(type));
  for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) decoder.Find(key);
  return decoder.Done();
}

// NFC, or a Sequence of nothing else; form C of form C is form C.
absl::Status ReadNormalizer(const json::value& value, const std::string& path,
                            TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(Fields normalizer, Fields::Of(value, path));
  ASSIGN_OR_RETURN(const std::string type, normalizer.String("type"));
  if (type == "Sequence" && path == "normalizer") {
    ASSIGN_OR_RETURN(const json::array* const steps, normalizer.Array("normalizers"));
    for (size_t i = 0; i < steps->size(); ++i) {
      RETURN_IF_ERROR(ReadNormalizer((*steps)[i], At("normalizer.normalizers", i), spec));
    }
  } else if (type == "NFC") {
    spec.nfc = true;
  } else {
    return UnsupportedJson(normalizer.PathOf("type"), "NFC", json::value(type));
  }
  return normalizer.Done();
}

absl::Status ReadAddedTokens(const json::array& tokens, TokenizerSpec& spec) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    ASSIGN_OR_RETURN(Fields token, Fields::Of(tokens[i], At("added_tokens", i)));
    AddedToken added;
    ASSIGN_OR_RETURN(added.id, token.Integer("id", 0, kMaxTokenId));
    ASSIGN_OR_RETURN(added.content, token.String("content"));
    ASSIGN_OR_RETURN(added.special, token.Bool("special"));
    ASSIGN_OR_RETURN(added.normalized, token.Bool("normalized", !added.special));
    ASSIGN_OR_RETURN(added.lstrip, token.Bool("lstrip", false));
    ASSIGN_OR_RETURN(added.rstrip, token.Bool("rstrip", false));
    ASSIGN_OR_RETURN(added.single_word, token.Bool("single_word", false));
    RETURN_IF_ERROR(token.Done());
    spec.added.push_back(std::move(added));
  }
  return absl::OkStatus();
}

// Ids of one {"SpecialToken": {"id": name}} of a template, from its special_tokens table.
absl::Status AppendTemplateIds(const json::value& table, const std::string& name,
                               std::vector<int32_t>& ids) {
  ASSIGN_OR_RETURN(Fields tokens, Fields::Of(table, "post_processor.special_tokens"));
  ASSIGN_OR_RETURN(const json::value* const entry, tokens.Get(name));
  ASSIGN_OR_RETURN(Fields token, Fields::Of(*entry, tokens.PathOf(name)));
  ASSIGN_OR_RETURN(const json::array* const list, token.Array("ids"));
  for (const json::value& id : *list) {
    if (!id.is_int64() || id.get_int64() < 0 || id.get_int64() > kMaxTokenId) {
      return WrongJson(token.PathOf("ids"), "token ids", id);
    }
    ids.push_back(static_cast<int32_t>(id.get_int64()));
  }
  return absl::OkStatus();
}

absl::Status ReadTemplate(Fields& processor, TokenizerSpec& spec) {
  const std::string path = processor.PathOf("single");
  ASSIGN_OR_RETURN(const json::array* const single, processor.Array("single"));
  ASSIGN_OR_RETURN(const json::value* const table, processor.Get("special_tokens"));
  processor.Find("pair");  // pairs of texts are not offered; kept for Save
  RETURN_IF_ERROR(processor.Done());
  bool text_seen = false;
  for (size_t i = 0; i < single->size(); ++i) {
    ASSIGN_OR_RETURN(Fields part, Fields::Of((*single)[i], At(path, i)));
    if (part.Find("Sequence") != nullptr) {
      if (text_seen) return WrongJson(path, "one Sequence", (*single)[i]);
      text_seen = true;
    } else {
      ASSIGN_OR_RETURN(const json::value* const value, part.Get("SpecialToken"));
      ASSIGN_OR_RETURN(Fields token, Fields::Of(*value, part.PathOf("SpecialToken")));
      ASSIGN_OR_RETURN(const std::string name, token.String("id"));
      RETURN_IF_ERROR(
          AppendTemplateIds(*table, name, text_seen ? spec.suffix_ids : spec.prefix_ids));
    }
    RETURN_IF_ERROR(part.Done());
  }
  if (!text_seen) return absl::InvalidArgumentError(path + ": holds no Sequence");
  return absl::OkStatus();
}

absl::Status ReadPostProcessor(const json::value& value, const std::string& path, bool& templated,
                               TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(Fields processor, Fields::Of(value, path));
  ASSIGN_OR_RETURN(const std::string type, processor.String("type"));
  if (type == "ByteLevel") {  // it moves offsets only
    for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) processor.Find(key);
    return processor.Done();
  }
  if (type == "TemplateProcessing" && !templated) {
    templated = true;
    return ReadTemplate(processor, spec);
  }
  if (type == "Sequence" && path == "post_processor") {
    ASSIGN_OR_RETURN(const json::array* const steps, processor.Array("processors"));
    for (size_t i = 0; i < steps->size(); ++i) {
      RETURN_IF_ERROR(
          ReadPostProcessor((*steps)[i], At("post_processor.processors", i), templated, spec));
    }
    return processor.Done();
  }
  return UnsupportedJson(processor.PathOf("type"), "ByteLevel and one TemplateProcessing",
                         json::value(type));
}

absl::StatusOr<TokenizerSpec> ReadDocument(const json::value& document) {
  TokenizerSpec spec;
  ASSIGN_OR_RETURN(Fields top, Fields::Of(document, ""));
  ASSIGN_OR_RETURN(const std::string version, top.String("version"));
  if (version != "1.0") return UnsupportedJson("version", "1.0", json::value(version));
  for (const char* key : {"truncation", "padding"}) RETURN_IF_ERROR(top.MustBeOff(key));
  if (const json::value* const normalizer = top.Find("normalizer"); normalizer != nullptr) {
    RETURN_IF_ERROR(ReadNormalizer(*normalizer, "normalizer", spec));
  }
  ASSIGN_OR_RETURN(const json::value* const pre_tokenizer, top.Get("pre_tokenizer"));
  RETURN_IF_ERROR(ReadPreTokenizer(*pre_tokenizer, spec));
  ASSIGN_OR_RETURN(const json::value* const decoder, top.Get("decoder"));
  RETURN_IF_ERROR(ReadDecoder(*decoder));
  ASSIGN_OR_RETURN(const json::value* const model, top.Get("model"));
  RETURN_IF_ERROR(ReadModel(*model, spec));
  if (top.Find("added_tokens") != nullptr) {
    ASSIGN_OR_RETURN(const json::array* const added, top.Array("added_tokens"));
    RETURN_IF_ERROR(ReadAddedTokens(*added, spec));
  }
  if (const json::value* const processor = top.Find("post_processor"); processor != nullptr) {
    bool templated = false;
    RETURN_IF_ERROR(ReadPostProcessor(*processor, "post_processor", templated, spec));
    spec.post_processor = json::serialize(*processor);
  }
  RETURN_IF_ERROR(top.Done());
  return spec;
}

json::value ByteLevelJson(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

json::value PreTokenizerJson(const TokenizerSpec& spec) {
  const json::value bytes = ByteLevelJson(spec.add_prefix_space, spec.gpt2_pattern);
  if (spec.patterns.empty()) return bytes;
  json::array steps;
  for (const std::string& pattern : spec.patterns) {
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  }
  steps.push_back(bytes);
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

json::value ModelJson(const TokenizerSpec& spec) {
  json::object vocab;
  for (size_t id = 0; id < spec.vocab.size(); ++id) {
    if (!spec.vocab[id].empty()) vocab[spec.vocab[id]] = static_cast<int64_t>(id);
  }
  json::array merges;
  for (const auto& [left, right] : spec.merges) {
    merges.emplace_back(spec.vocab[left] + " " + spec.vocab[right]);
  }
  json::object model;
  model["type"] = "BPE";
  for (const char* key :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    model[key] = nullptr;
  }
  model["fuse_unk"] = false;
  model["byte_fallback"] = false;
  model["ignore_merges"] = spec.ignore_merges;
  model["vocab"] = std::move(vocab);
  model["merges"] = std::move(merges);
  return model;
}

}  // namespace

absl::StatusOr<TokenizerSpec> ParseTokenizerJson(std::string_view text) {
  if (text.size() > kMaxTokenizerJsonBytes) {
    return absl::InvalidArgumentError(absl::StrCat("tokenizer JSON of ", text.size(),
                                                   " bytes, at most ", kMaxTokenizerJsonBytes));
  }
  json::error_code error;
  const json::value document = json::parse({text.data(), text.size()}, error);
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat("not valid JSON: ", error.message()));
  }
  return ReadDocument(document);
}

std::string TokenizerJson(const TokenizerSpec& spec) {
  json::array added;
  for (const AddedToken& token : spec.added) {
    added.push_back({{"id", token.id},
                     {"content", token.content},
                     {"single_word", token.single_word},
                     {"lstrip", token.lstrip},
                     {"rstrip", token.rstrip},
                     {"normalized", token.normalized},
                     {"special", token.special}});
  }
  json::object top;
  top["version"] = "1.0";
  top["truncation"] = nullptr;
  top["padding"] = nullptr;
  top["added_tokens"] = std::move(added);
  top["normalizer"] = spec.nfc ? json::value{{"type", "NFC"}} : json::value(nullptr);
  top["pre_tokenizer"] = PreTokenizerJson(spec);
  json::error_code error;  // post_processor was valid JSON when it was read
  top["post_processor"] = json::parse(spec.post_processor, error);
  top["decoder"] = ByteLevelJson(true, true);
  top["model"] = ModelJson(spec);
  return json::serialize(top);
}

}  // namespace plinth::models
