package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;
import java.util.Optional;

/**
 * Section {@code model}: the shape of the GPT.
 *
 * @param context tokens of a sequence
 * @param width size of a token's vector, a multiple of {@code heads}
 * @param layers transformer blocks
 * @param heads attention heads of a block
 * @param tied whether the head uses the token embedding's weights
 * @param vocabulary rows of the token embedding; empty: as many as the tokenizer has
 */
public record ModelSection(
        @Setting(is = "256", range = "[1, 16777216]", doc = "tokens of a sequence") int context,
        @Setting(
                        is = "256",
                        range = "[1, 1048576]",
                        doc = "size of a token's vector, a multiple of model.heads")
                int width,
        @Setting(is = "4", range = "[1, 10000]", doc = "transformer blocks") int layers,
        @Setting(is = "4", range = "[1, 65536]", doc = "attention heads of a block") int heads,
        @Setting(is = "true", doc = "the head uses the token embedding's weights") boolean tied,
        @Setting(
                        is = "tokenizer",
                        word = "tokenizer",
                        range = "[2, 100000000]",
                        doc = "rows of the token embedding; tokenizer: as many as it has tokens")
                Optional<Integer> vocabulary) {

    /** Rows of the token embedding when the tokenizer has {@code tokens} tokens. */
    public int vocabularyOr(int tokens) {
        return vocabulary.orElse(tokens);
    }
}
