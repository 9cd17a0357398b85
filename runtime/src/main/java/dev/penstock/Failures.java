package dev.penstock;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.data.DataException;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/** What the classes below throw, as the one exception of this package, in its words. */
final class Failures {
    /**
     * {@code --set key=value}, as the command line has it, up to the colon of what is said of it.
     */
    private static final Pattern SET =
            Pattern.compile("--set ([\\w.-]+)=([^\\s;]+?)(?=:?(?:[\\s;]|$))");

    private static final Map<String, String> WORDS =
            Map.of(
                    "--run-dir", "in(directory)",
                    "--resume", "resume()",
                    "--init", "startingWith(weights)",
                    "--tokenizer", "the tokenizer",
                    "--device", "the device");

    private Failures() {}

    /** Does it; throws nothing but a {@link PenstockException}. */
    static <T> T telling(Supplier<T> action) {
        try {
            return action.get();
        } catch (RuntimeException e) {
            throw told(e);
        }
    }

    /** The same of another thread: whoever waits for it gets a trace of its own. */
    static PenstockException elsewhere(Throwable failure) {
        return new PenstockException(told(failure).problems(), failure);
    }

    /** The exception to throw instead of this one. */
    static PenstockException told(Throwable failure) {
        return switch (failure) {
            case PenstockException e -> e;
            case ConfigException e ->
                    new PenstockException(
                            e.problems().stream()
                                    .map(Problem::toString)
                                    .map(Failures::inOwnWords)
                                    .toList(),
                            e);
            case DataException e ->
                    new PenstockException(
                            e.problems().stream().map(p -> inOwnWords(p.toString())).toList(), e);
            default -> of(failure);
        };
    }

    private static PenstockException of(Throwable failure) {
        String message = failure.getMessage();
        return new PenstockException(
                List.of(
                        message == null || message.isBlank()
                                ? failure.getClass().getSimpleName()
                                : inOwnWords(message)),
                failure);
    }

    /** A program has no options: it calls methods. */
    private static String inOwnWords(String text) {
        String words = SET.matcher(text).replaceAll("with(\"$1\", $2)");
        for (Map.Entry<String, String> word : WORDS.entrySet()) {
            words = words.replace(word.getKey(), word.getValue());
        }
        return words;
    }
}
