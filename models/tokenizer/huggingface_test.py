"""Our ids equal those of Hugging Face's `tokenizers`, file for file.

Usage: huggingface_test.py TRAIN ENCODE   (paths of the two binaries)
Needs the PyPI package `tokenizers` in the interpreter named by PLINTH_PYTHON.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import (
    AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers)
from tokenizers.processors import TemplateProcessing

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"""
    r""" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
]

SAMPLES = [
    "", " ", "a", "Hello, world!  Two  spaces and a trailing one ", "\n\n\n", "x\r\ny\r\n\r\n z",
    "It's we'll I'd THEY'RE you'VE 'ſ K'M", "tabs\tand\x0bvertical\x0cfeeds\x1c\x1d\x1e\x1f",
    "0 1 12 123 1234 12345 1234567890 3.14159 1,000,000 ١٢٣٤ ④Ⅷ½", "\x01\x02\x7f\x80\x85\xa0\xad",
    "naïve café Ünïcödé e\u0301 n\u0303 Å\u030a", "日本語のテキスト、漢字とかな。 中文文本,没有空格。",
    "Русский текст и Ελληνικά κείμενο", "עברית עִם נִקּוּד العربية بِالتَشْكِيل हिन्दी में पाठ ภาษาไทยไม่มีช่องว่าง",
    "한국어 문장입니다. 한", "👨‍👩‍👧‍👦 👩🏽‍💻 🏳️‍🌈 🇩🇪🇫🇷 ❤️ 1️⃣", "a\u200bb\u200cc\u200dd\u2060e\ufefff",
    "space kinds:\u1680x\u2000x\u2003x\u2009x\u200ax\u2028x\u2029x\u202fx\u205fx\u3000x\u180ex\u0085x\u00a0x",
    "  \u00a0\u3000  mixed \u2003\n \u2003", "def f(x):\n    return {'a': [x**2, -1e-9]}  # note\n\n\n",
    "<|endoftext|> user text <|endoftext|>", "<|endof text|> <|endoftext", "https://x.example/a?b=c&d=%20#e",
    "\U0001D54F\U0010FFFD\uFFFD\uE000", "A" * 300, "ab" * 500, " " * 300 + "x", "\n" * 100 + " \t" * 50,
    "!?!?...--==>>  $%^&*()_+", "don't Don'T DON'T ’s ‘quoted’", "ﬁ ǅ ß ẞ İ ı",
]


def corpus():
    words = "the of and to in is that it was for on are as with his they at be this from I have".split()
    rng = random.Random(7)
    text = " ".join(rng.choice(words) for _ in range(20000))
    return text + "\n" + ("\n".join(SAMPLES[:-3]) + "\n") * 40


def random_texts(count):
    rng = random.Random(11)
    pools = [
        range(0x20, 0x7F), range(1, 0x20), range(0xA0, 0x250), range(0x300, 0x370), range(0x391, 0x530),
        range(0x600, 0x6FF), range(0x900, 0x97F), range(0x2000, 0x2070), range(0x3040, 0x30FF),
        range(0x4E00, 0x4E80), range(0x1F600, 0x1F650), [0x20], [0x0A], [0x0D, 0x0A, 0x20, 0x09],
    ]
    return [
        "".join(chr(rng.choice(rng.choice(pools))) for _ in range(rng.randrange(1, 80))) for _ in range(count)
    ]


class Binaries:
    def __init__(self, train, encode, folder):
        self.train_path, self.encode_path, self.folder = train, encode, folder

    def train(self, *flags):
        return subprocess.run([self.train_path, *flags], capture_output=True, text=True)

    def encode(self, tokenizer, texts, *flags):
        data = b"".join(t.encode() + b"\0" for t in texts)
        done = subprocess.run(
            [self.encode_path, f"--tokenizer={tokenizer}", "--null_separated", "--json", *flags],
            input=data, capture_output=True)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def fails(self, tokenizer, message):
        done = subprocess.run([self.encode_path, f"--tokenizer={tokenizer}"], input=b"x", capture_output=True)
        text = done.stderr.decode()
        assert done.returncode == 1 and message in text and text.count("\n") == 1, (message, text)


def compare(binaries, path, texts, what):
    """The same file in both; user text first, then with special tokens and template."""
    oracle = Tokenizer.from_file(path)
    oracle.encode_special_tokens = True
    for text, ids in zip(texts, binaries.encode(path, texts), strict=True):
        want = oracle.encode(text, add_special_tokens=False).ids
        assert ids == want, f"{what}: {text!r}\n ours {ids}\n want {want}"
    oracle.encode_special_tokens = False
    flags = ("--allow_special", "--add_template")
    for text, ids in zip(texts, binaries.encode(path, texts, *flags), strict=True):
        want = oracle.encode(text).ids
        assert ids == want, f"{what}, special: {text!r}\n ours {ids}\n want {want}"


def compare_with_saved(binaries, path, texts, what):
    compare(binaries, path, texts, what)
    saved = path + ".saved.json"
    binaries.encode(path, [], f"--save={saved}")
    compare(binaries, saved, texts, what + ", saved")


def hugging_face_file(folder, name, pre_tokenizer, text, normalizer=None, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1500, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>", "<|im"])
    tokenizer.add_tokens([AddedToken("plain added", normalized=True), AddedToken("ab ab", normalized=False)])
    tokenizer.add_tokens([AddedToken("[L]", lstrip=True, normalized=False),
                          AddedToken("[R]", rstrip=True, normalized=True),
                          AddedToken("[e\u0301]", lstrip=True, rstrip=True, normalized=True)])
    tokenizer.add_special_tokens([AddedToken("<|fim|>", lstrip=True, rstrip=True, normalized=False)])
    tokenizer.post_processor = TemplateProcessing(
        single="<|im_start|> $A <|im_end|>", pair="$A $B",
        special_tokens=[(t, tokenizer.token_to_id(t)) for t in ("<|im_start|>", "<|im_end|>")])
    path = os.path.join(folder, name)
    tokenizer.save(path)
    return path


def check_normal_form(binaries, folder):
    """Every character that this Python knows, and random texts full of marks, in form C."""
    byte_vocab = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=byte_vocab, merges=[]))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    path = os.path.join(folder, "nfc_bytes.json")
    tokenizer.save(path)
    known = [chr(c) for c in range(1, 0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
    marks = [c for c in known if unicodedata.combining(c)]
    bases = [c for c in known if unicodedata.decomposition(c) or c in "aeiouAEIOU\u1100\u1161\u11a8"]
    rng = random.Random(3)
    texts = ["\n".join(known), "".join(known)]
    for _ in range(2000):
        texts.append("".join(rng.choice(rng.choice((marks, bases, bases, known)))
                             for _ in range(rng.randrange(1, 12))))
    for text, ids in zip(texts, binaries.encode(path, texts), strict=True):
        assert tokenizer.decode(ids) == unicodedata.normalize("NFC", text), ascii(text)[:200]


def check_single_words(binaries, folder):
    """Tokens that stand alone, beside characters of every category."""
    byte_vocab = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=byte_vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([AddedToken("word", single_word=True, normalized=False),
                          AddedToken("wor", normalized=False), AddedToken("d", normalized=True),
                          AddedToken("two words", single_word=True, lstrip=True, normalized=True),
                          AddedToken("\u00e9!", single_word=True, rstrip=True, normalized=True)])
    tokenizer.add_special_tokens([AddedToken("<|alone|>", single_word=True)])
    path = os.path.join(folder, "single_word.json")
    tokenizer.save(path)
    known = [c for c in map(chr, range(1, 0x110000))
             if (kind := unicodedata.category(c)) not in ("Cn", "Cs", "Co")
             and (kind != "Lo" or ord(c) % 16 == 0)]
    texts = ["", "word", " word ", "words", "a word", "wordword word", "a worda word",
             "two words, two wordsword", "two  words  two words", "x two words", "wordtwo words",
             "<|alone|>", "a<|alone|>", "<|alone|><|alone|>", " <|alone|>_", "word<|alone|>",
             "\u00e9! e\u0301!x x\u00e9! (e\u0301!  e\u0301!)", "\u00e9! \n\u0301\u00e9! ", "wor word"]
    texts += [c + "word" for c in known[::3]] + ["word" + c for c in known[1::3]]
    compare_with_saved(binaries, path, texts, "single words")


def split_then_bytes(*patterns):
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
        + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def main():
    with tempfile.TemporaryDirectory() as folder:
        binaries = Binaries(sys.argv[1], sys.argv[2], folder)
        text = corpus()
        texts = SAMPLES + random_texts(300) + [
            "<|im_start|>user\nplain added<|im_end|><|im_x ab ab ab",
            "a \n\u3000[L] b [R] \t\u00a0 c", " [R]  [L]  [R] [L][L] [R]", "[L]", "  [L]", "[R]  ",
            "x <|fim|> \n y <|fim|><|fim|>  z", "<|im_end|> \u2003<|fim|>  [L] [R]  <|fim|>",
            "a [e\u0301] b [\u00e9] c[e\u0301 ] e\u0301 a\u0301 \u212b \ufb2c \u1100\u1161\u11a8",
            "\u0301 starts, \u0344 \u0958 \u2adc a\u0323\u0307 a\u0307\u0323 [L]\u0301 [R]\u0301",
        ]
        input_path, ours = os.path.join(folder, "input.txt"), os.path.join(folder, "ours.json")
        with open(input_path, "w", encoding="utf-8", newline="") as file:
            file.write(text)

        done = binaries.train(f"--input={input_path}", "--vocab_size=700", f"--output={ours}", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["vocab_size"] == 700
        compare_with_saved(binaries, ours, texts, "trained by us")

        kinds = {
            "gpt2": (pre_tokenizers.ByteLevel(add_prefix_space=False), {}),
            "gpt2_prefix_space": (pre_tokenizers.ByteLevel(add_prefix_space=True), {}),
            "bytes_only": (pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), {}),
            "llama3": (split_then_bytes(LLAMA3), {"ignore_merges": True}),
            "qwen": (split_then_bytes(QWEN), {}),
            "deepseek": (split_then_bytes(*DEEPSEEK), {}),
        }
        for name in ("gpt2", "qwen"):
            pre_tokenizer, model = kinds[name]
            kinds[name + "_nfc"] = (pre_tokenizer, {"normalizer": normalizers.NFC(), **model})
        check_normal_form(binaries, folder)
        check_single_words(binaries, folder)
        for name, (pre_tokenizer, model) in kinds.items():
            path = hugging_face_file(folder, name + ".json", pre_tokenizer, text, **model)
            compare_with_saved(binaries, path, texts, name)

        raw = bytes(range(256)) * 2 + "é😀".encode()[:-1] + b"\xed\xa0\x80\xc0\xaf ok \xf8\x00<|endoftext|>"
        ids = subprocess.run([binaries.encode_path, f"--tokenizer={ours}"], input=raw, capture_output=True)
        back = subprocess.run(
            [binaries.encode_path, f"--tokenizer={ours}", "--decode"], input=ids.stdout, capture_output=True)
        assert back.stdout == raw, (back.stdout, back.stderr)

        empty = os.path.join(folder, "empty.txt")
        open(empty, "wb").close()
        for flags, message in [
            (["--input=/nonexistent"], "/nonexistent: "),
            ([], "no text file given"),
            (["--input=/dev/zero"], "/dev/zero: is not a regular file"),
            ([f"--input={folder}"], "is not a regular file"),
            ([f"--input={empty}"], "text is empty"),
            ([f"--input={input_path}", "--vocab_size=257"], "vocab_size: expected 258"),
            ([f"--input={input_path}", "--output=/nonexistent/x.json", "--vocab_size=300"], "/nonexistent/x.json"),
        ]:
            done = binaries.train(*flags)
            assert done.returncode == 1 and message in done.stderr and done.stderr.count("\n") == 1, done
        binaries.fails("/nonexistent", "/nonexistent: ")
        binaries.fails(input_path, "not valid JSON")
    print("equal ids:", 2 * len(kinds) + 2, "files,", len(texts), "texts, with and without special tokens")


if __name__ == "__main__":
    main()
