package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Optional;

/**
 * Section {@code data}: what the model reads.
 *
 * @param source a file, a folder or a glob, absolute; files may be compressed ({@code .gz})
 * @param field the member of a JSON line, or the column of a table, that holds the text
 * @param validationFraction share of the text that is held out, 0 for none, 1 for all of it
 * @param packing what documents that share a row know of each other
 * @param loss which targets it counts
 * @param template how chats are written as text
 * @param maskShare share of the tokens that are to be predicted where words are hidden
 * @param maskToken what stands in the place of a hidden word; empty: the last of the model's tokens
 */
public record DataSection(
        @Setting(doc = "a file, a folder or a glob such as \"texts/*.txt\"; .gz is unpacked")
                Path source,
        @Setting(
                        is = "text",
                        doc =
                                "what the files hold; chat: JSON lines with messages, tokens: made"
                                        + " by penstock data prepare; given: nothing, a Java program"
                                        + " gives the tokens")
                Format format,
        @Setting(
                        is = "text",
                        doc =
                                "member of a JSON line (jsonl) or column (parquet) that holds the"
                                        + " text; where data.loss = labels also two members, such"
                                        + " as \"premise, hypothesis\", beside the member label")
                String field,
        @Setting(
                        is = "bytes",
                        doc =
                                "bytes (256 tokens), gpt2 (50,257 tokens), or a path: a folder with"
                                        + " tokenizer.json or with vocab.json and merges.txt")
                Tokenizer tokenizer,
        @Setting(
                        is = "0.05",
                        range = "[0, 1]",
                        doc =
                                "share of the text held out for validation; 0: none, 1: all, for"
                                        + " evaluations alone")
                double validationFraction,
        @Setting(
                        is = "none",
                        doc =
                                "documents: positions and attention begin anew with each document"
                                        + " of a row; lengths: one document in a row, and"
                                        + " micro-batches as long as their longest; padded: the"
                                        + " same, all as long as model.context; none: rows are"
                                        + " text like any other")
                Packing packing,
        @Setting(
                        is = "all",
                        doc =
                                "targets that count: all, or answers: what the assistant of a"
                                        + " chat says (of a file of tokens, those that are not"
                                        + " -100); masked: words that are hidden, of bert and"
                                        + " megatron-bert (of a file of tokens with labels, those"
                                        + " that are not -100); labels: the class of a text, of"
                                        + " a model with model.labels")
                Loss loss,
        @Setting(
                        is = "tokenizer",
                        doc =
                                "how a chat is written: tokenizer (by the template in its files),"
                                        + " chatml, llama3 or plain")
                Template template,
        @Setting(
                        is = "0.15",
                        range = "(0, 1]",
                        doc =
                                "where words are masked: share of the tokens to predict; 8 in 10 of"
                                        + " them are hidden, 1 in 10 is another token, 1 in 10"
                                        + " stays")
                double maskShare,
        @Setting(
                        is = "last",
                        word = "last",
                        range = "[0, 99999999]",
                        doc =
                                "where words are masked: the token in place of a hidden one; last: of"
                                        + " the model's, if the tokenizer does not have it")
                Optional<Integer> maskToken) {

    /** Returns what is said here and has no effect, for people; empty if nothing is. */
    Optional<String> unusedNote() {
        boolean unused = format != Format.CHAT && template != Template.TOKENIZER;
        return unused
                ? Optional.of(
                        "data.template = %s has no effect: data.format = %s, and templates are for chats"
                                .formatted(template.word(), format.name().toLowerCase(Locale.ROOT)))
                : Optional.empty();
    }

    /**
     * What the files hold: plain text, JSON lines, chats, tables with a column of texts, or
     * prepared tokens: a folder that {@code data prepare} made, or a safetensors file with {@code
     * tokens}; or nothing, where a program gives the tokens.
     */
    public enum Format {
        TEXT,
        JSONL,
        CHAT,
        PARQUET,
        TOKENS,
        GIVEN
    }

    /** Whether documents share a row, and whether they are then trained on each for itself. */
    public enum Packing {
        /** They do, as one text. */
        NONE,
        /** They do, each for itself. */
        DOCUMENTS,
        /** Each has a row of its own, as long as the context. */
        PADDED,
        /** Each has a row of its own, about as long as itself. */
        LENGTHS;

        /** Returns the name as a configuration has it. */
        public String word() {
            return name().toLowerCase(Locale.ROOT);
        }

        /** Returns whether each document has a row of its own. */
        public boolean apart() {
            return this == PADDED || this == LENGTHS;
        }
    }

    /** How a chat is written as text. */
    public enum Template {
        TOKENIZER,
        CHATML,
        LLAMA3,
        PLAIN;

        /** Returns the name as a configuration has it. */
        public String word() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** Which targets the loss counts. */
    public enum Loss {
        ALL,
        ANSWERS,
        MASKED,
        LABELS;

        /** Returns the name as a configuration has it. */
        public String word() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /**
     * How text becomes tokens.
     *
     * @param word {@code bytes}, {@code gpt2}, or the absolute path of a tokenizer's files
     * @param vocabulary how many different tokens there are
     */
    public record Tokenizer(String word, int vocabulary) {
        /** Every byte is a token. */
        public static final Tokenizer BYTES = builtIn("bytes");

        /** GPT-2's. */
        public static final Tokenizer GPT2 = builtIn("gpt2");

        private static Tokenizer builtIn(String word) {
            return new Tokenizer(word, dev.penstock.runtime.tokenizer.Tokenizer.vocabularyOf(word));
        }
    }
}
