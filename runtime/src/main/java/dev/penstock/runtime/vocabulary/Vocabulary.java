package dev.penstock.runtime.vocabulary;

import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.tokenizer.ByteSymbols;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * A byte-pair tokenizer, of bytes or of characters.
 *
 * @param splitter llama.cpp's name for how text is cut before it is encoded, such as {@code gpt-2}
 * @param tokens by number; one of bytes writes them as GPT-2's files do, one of characters writes a
 *     space as U+2581 and a byte as {@code <0x0A>}
 * @param kinds of the tokens, by number
 * @param merges in order: two tokens with a blank between
 * @param specials numbers of tokens with a meaning: {@code bos}, {@code eos}, {@code unk}, {@code
 *     pad}
 * @param addsBeginning whether a text begins with the {@code bos} token
 * @param pieces what a tokenizer of characters has beside, as SentencePiece's; one of bytes has
 *     none
 */
public record Vocabulary(
        String splitter,
        List<String> tokens,
        List<Kind> kinds,
        List<String> merges,
        Map<String, Integer> specials,
        boolean addsBeginning,
        Optional<Pieces> pieces) {
    /** How GPT-2 cuts text. */
    public static final String GPT2 = "gpt-2";

    /** Kinds of tokens. */
    public enum Kind {
        NORMAL,
        /** Means something, and stands for no text. */
        CONTROL,
        /** Stands for text that no other token has. */
        UNKNOWN,
        /** Added by a user, and stands for its text. */
        USER_DEFINED,
        UNUSED,
        /** One byte of a character without a token. */
        BYTE
    }

    /**
     * What SentencePiece says of a tokenizer of characters.
     *
     * @param scores by token: of all neighbours that spell a token, those with the highest are
     *     merged first
     * @param addsSpace whether a text gets a space in front
     * @param addsEnd whether a text ends with the {@code eos} token
     */
    public record Pieces(List<Float> scores, boolean addsSpace, boolean addsEnd) {
        public Pieces {
            scores = List.copyOf(scores);
        }

        /** The same for more tokens, which no text becomes. */
        private Pieces padded(int size) {
            List<Float> more = new ArrayList<>(scores);
            float lowest = scores.stream().min(Float::compare).orElse(0f);
            while (more.size() < size) {
                more.add(lowest);
            }
            return new Pieces(more, addsSpace, addsEnd);
        }
    }

    /** A tokenizer of bytes. */
    public Vocabulary(
            String splitter,
            List<String> tokens,
            List<Kind> kinds,
            List<String> merges,
            Map<String, Integer> specials,
            boolean addsBeginning) {
        this(splitter, tokens, kinds, merges, specials, addsBeginning, Optional.empty());
    }

    public Vocabulary {
        tokens = List.copyOf(tokens);
        kinds = List.copyOf(kinds);
        merges = List.copyOf(merges);
        specials = Map.copyOf(specials);
        if (kinds.size() != tokens.size()) {
            throw new IllegalArgumentException(
                    "%d tokens of %d kinds".formatted(tokens.size(), kinds.size()));
        }
    }

    /**
     * Returns the vocabulary of one of Penstock's own tokenizers, which cut text as GPT-2 does.
     *
     * @throws IllegalArgumentException if its tokens are not made by merges of two
     */
    public static Vocabulary of(Tokenizer tokenizer) {
        OptionalInt end = tokenizer.endOfText();
        Map<Integer, byte[]> bytes = new LinkedHashMap<>();
        for (int token = 0; token < tokenizer.vocabulary(); token++) {
            if (end.isEmpty() || token != end.getAsInt()) {
                bytes.put(token, tokenizer.bytes(token));
            }
        }
        MergeOrder order = new MergeOrder(bytes);
        List<String> tokens = new ArrayList<>();
        List<Kind> kinds = new ArrayList<>();
        List<String> merges = new ArrayList<>();
        for (int token = 0; token < tokenizer.vocabulary(); token++) {
            byte[] own = bytes.get(token);
            tokens.add(own == null ? "<|endoftext|>" : ByteSymbols.of(own));
            kinds.add(own == null ? Kind.CONTROL : Kind.NORMAL);
            if (own != null && own.length > 1) {
                int number = token;
                MergeOrder.Parts parts =
                        order.parts(token, own)
                                .orElseThrow(
                                        () ->
                                                new IllegalArgumentException(
                                                        "token %d of %s is no merge of two"
                                                                .formatted(
                                                                        number, tokenizer.name())));
                merges.add(ByteSymbols.of(parts.first()) + " " + ByteSymbols.of(parts.second()));
            }
        }
        Map<String, Integer> specials = new LinkedHashMap<>();
        end.ifPresent(
                token -> {
                    specials.put("bos", token);
                    specials.put("eos", token);
                });
        return new Vocabulary(GPT2, tokens, kinds, merges, specials, false);
    }

    /**
     * Reads the tokenizer of a Hugging Face folder: {@code tokenizer.json}, or the older {@code
     * vocab.json} with {@code merges.txt}.
     *
     * @return empty if the folder has neither
     * @throws StoredFileException if it cannot be read or is of another kind, which is said
     */
    public static Optional<Vocabulary> in(Path folder) {
        return Tokenizer.isIn(folder)
                ? Optional.of(VocabularyFolder.read(folder))
                : Optional.empty();
    }

    /**
     * Returns the texts of the files from which Hugging Face's tokenizers load it, by name.
     *
     * @throws IllegalStateException if text is cut in another way than GPT-2's
     */
    public Map<String, String> files() {
        return VocabularyFiles.of(this);
    }

    /**
     * Returns the same with tokens that stand for nothing, for a model with more rows than the
     * tokenizer has tokens.
     *
     * @param size at least that of this
     */
    public Vocabulary padded(int size) {
        List<String> more = new ArrayList<>(tokens);
        List<Kind> theirs = new ArrayList<>(kinds);
        while (more.size() < size) {
            more.add("[PAD%d]".formatted(more.size()));
            theirs.add(Kind.UNUSED);
        }
        return new Vocabulary(
                splitter,
                more,
                theirs,
                merges,
                specials,
                addsBeginning,
                pieces.map(each -> each.padded(more.size())));
    }
}
