package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;
import java.nio.file.Path;

/**
 * Section {@code data}: what the model reads.
 *
 * @param source a file, a folder or a glob, absolute; files may be compressed ({@code .gz})
 * @param field the member of a JSON line that holds the text (format jsonl)
 * @param validationFraction share of the text that is held out, 0 for none, 1 for all of it
 */
public record DataSection(
        @Setting(doc = "a file, a folder or a glob such as \"texts/*.txt\"; .gz is unpacked")
                Path source,
        @Setting(is = "text", doc = "what the files hold") Format format,
        @Setting(is = "text", doc = "member of a JSON line that holds the text (jsonl)")
                String field,
        @Setting(is = "bytes", doc = "bytes (256 tokens) or gpt2 (50,257 tokens)")
                Tokenizer tokenizer,
        @Setting(
                        is = "0.05",
                        range = "[0, 1]",
                        doc =
                                "share of the text held out for validation; 0: none, 1: all, for"
                                        + " evaluations alone")
                double validationFraction) {

    /** What the files hold: plain text, JSON lines, or a safetensors file with {@code tokens}. */
    public enum Format {
        TEXT,
        JSONL,
        TOKENS
    }

    /** How text becomes tokens. */
    public enum Tokenizer {
        BYTES(256),
        GPT2(50_257);

        private final int vocabulary;

        Tokenizer(int vocabulary) {
            this.vocabulary = vocabulary;
        }

        /** How many different tokens there are. */
        public int vocabulary() {
            return vocabulary;
        }
    }
}
