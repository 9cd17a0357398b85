"""Makes the tokenizers of this folder and records what Hugging Face's library does with them.

    python record.py TEXT_FILE..     (tokenizers 0.23, sentencepiece 0.2; the texts only decide which tokens there are)
"""
import json
import os
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers.implementations import ByteLevelBPETokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = [
    "", "Hello, world!", "I'll say: don't, we've, she's, I'm, you're, they'd; IT'S",
    "  two spaces,   three\tand a tab \n\n\n  then lines \r\n and the end   ",
    "Gr\u00fc\u00dfe, \u4e16\u754c! \U0001f6b0\U0001f1e8\U0001f1ed e\u0301 \u00e9",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 family", "12345 3.14159 1,000,000 x2y3 \u0663\u0664 \u00bd \u2167",
    "public static void main(String[] args) { System.out.println(\"a\\n\"); } // ok",
    "a\u00a0b\u0085c\u2028d\u3000e\ufefff", "\u0000\u0001\u007f\u0080", "\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645 \u05e9\u05dc\u05d5\u05dd \u0939\u093f\u0928\u094d\u0926\u0940 \u0e44\u0e17\u0e22",
    "x <|endoftext|> y", "https://example.org/a?b=c&d=%20#e ...!!! ----- ___ \u2014\u2014", "a" * 300, "ab" * 150 + " " * 40 + "\n" * 20,
    "\u01c5 \u0130 \ufb01 \u00b2 \u2460 \U0001d400 \u3131", "line one\nline two.\nline three,\n/four\n\nfive",
]


def record(name, tokenizer, files, end):
    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    files(folder)
    with open(os.path.join(folder, "recorded.json"), "w") as out:
        rows = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in TEXTS]
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        out.write('{"vocabulary":%d,"endOfText":%d,"texts":[\n%s\n]}\n' % (tokenizer.get_vocab_size(), tokenizer.token_to_id(end), lines))


def saved(tokenizer):
    return lambda folder: tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)


def trained(file):
    """What the library learns of one text, to compare with what Penstock learns; files it would take line by line."""
    pair = Tokenizer(models.BPE())
    pair.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pair.train_from_iterator([open(file, newline="").read()], trainers.BpeTrainer(
        vocab_size=900, min_frequency=2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    pair.model.save(os.path.dirname(file))
    os.remove(os.path.join(os.path.dirname(file), "vocab.json"))


def sentencepiece(files):
    """A tokenizer of SentencePiece as transformers writes it: every two tokens that spell a third are a merge, by its score."""
    from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

    folder = os.path.join(HERE, "sentencepiece")
    os.makedirs(folder, exist_ok=True)
    model = os.path.join(folder, "model")
    SentencePieceTrainer.train(
        input=files, model_prefix=model, vocab_size=700, model_type="bpe", byte_fallback=True, split_digits=True,
        allow_whitespace_only_pieces=True, remove_extra_whitespaces=False, normalization_rule_name="identity",
        num_threads=1, user_defined_symbols=["<tool>"])
    trained = SentencePieceProcessor(model_file=model + ".model")
    ids = {trained.id_to_piece(i): i for i in range(trained.get_piece_size())}
    merges = []
    for piece, i in ids.items():
        parts = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece)) if piece[:cut] in ids and piece[cut:] in ids]
        merges += [(-trained.get_score(i), pair) for pair in sorted(parts, key=lambda pair: (ids[pair[0]], ids[pair[1]]))]
    merges.sort(key=lambda merge: merge[0])
    pieces = Tokenizer(models.BPE(ids, [pair for _, pair in merges], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    pieces.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    pieces.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    pieces.add_special_tokens([AddedToken(token, normalized=False) for token in ("<unk>", "<s>", "</s>")])
    pieces.add_tokens([AddedToken("<tool>", normalized=False)])
    pieces.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    saved(pieces)(folder)
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as out:
        json.dump({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}, out)
    for end in (".model", ".vocab"):
        os.remove(model + end)


def main(files):
    sentencepiece(files)
    trained(os.path.join(HERE, "trained", "text.txt"))
    pair = ByteLevelBPETokenizer()
    pair.train(files, vocab_size=700, min_frequency=2, special_tokens=["<|endoftext|>"], show_progress=False)
    pair._tokenizer.encode_special_tokens = True  # text that spells one is text
    record("pair", pair._tokenizer, pair.save_model, "<|endoftext|>")

    split = Tokenizer(models.BPE(ignore_merges=True))
    split.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"),
            "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    split.decoder = decoders.ByteLevel()
    split.train(files, trainers.BpeTrainer(vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    split.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>", "<|endoftext|>"])
    split.post_processor = processors.TemplateProcessing(
        single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", split.token_to_id("<|begin_of_text|>"))])
    split.enable_truncation(8)
    split_end = "<|end_of_text|>"

    def config(folder):
        saved(split)(folder)
        with open(os.path.join(folder, "tokenizer_config.json"), "w") as out:
            json.dump({"eos_token": {"content": split_end, "special": True}}, out)
        split.no_truncation()
    record("split", split, config, split_end)

    pieces = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    pieces.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    pieces.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    small = [line.rstrip("\n")[:80] for file in files for line in open(file)][:400]
    pieces.train_from_iterator(
        small, trainers.BpeTrainer(
            vocab_size=700, special_tokens=["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)], max_token_length=12,
            show_progress=False))
    record("pieces", pieces, saved(pieces), "</s>")

    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.NFKC()
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.decoder = decoders.Metaspace()
    unigram.train_from_iterator(
        small, trainers.UnigramTrainer(vocab_size=400, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False))
    record("unigram", unigram, saved(unigram), "</s>")

    words = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    words.normalizer = normalizers.BertNormalizer(lowercase=True)
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words.decoder = decoders.WordPiece()
    words.train_from_iterator(small, trainers.WordPieceTrainer(vocab_size=500, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    record("words", words, saved(words), "[SEP]")


main(sys.argv[1:])
