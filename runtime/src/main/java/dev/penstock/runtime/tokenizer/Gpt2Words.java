package dev.penstock.runtime.tokenizer;

import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Cuts text into words as GPT-2 does: merges never reach over their edges. A word has the space
 * before it; letters, digits and other characters do not mix.
 */
final class Gpt2Words {
    private static final Pattern WORD =
            Pattern.compile(
                    "'(?:[sdmt]|ll|ve|re)"
                            + "| ?\\p{L}+"
                            + "| ?\\p{N}+"
                            + "| ?[^\\s\\p{L}\\p{N}]+"
                            + "|\\s+(?!\\S)"
                            + "|\\s+",
                    Pattern.UNICODE_CHARACTER_CLASS);

    private Gpt2Words() {}

    /** Hands out the words in their order; together they are the text. */
    static void forEach(String text, Consumer<String> word) {
        Matcher matcher = WORD.matcher(text);
        while (matcher.find()) {
            word.accept(matcher.group());
        }
    }
}
