package dev.penstock;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.data.DataProblem;
import java.util.ArrayList;
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

    /**
     * Does it; throws nothing but a {@link PenstockException}. An interrupt closes files under the
     * hands of whoever reads them, so a thread that was interrupted begins nothing, and what fails
     * on one that is interrupted meanwhile is told as that.
     */
    static <T> T telling(Supplier<T> action) {
        if (Thread.currentThread().isInterrupted()) {
            throw new PenstockException(
                    List.of(
                            "the thread was interrupted before this call, so nothing was begun; clear its interrupt (Thread.interrupted()) to go on"),
                    null);
        }
        try {
            return action.get();
        } catch (RuntimeException e) {
            throw Thread.currentThread().isInterrupted() ? interrupted(told(e)) : told(e);
        }
    }

    private static PenstockException interrupted(PenstockException e) {
        List<String> problems = new ArrayList<>();
        problems.add("the thread was interrupted during this call, which then failed:");
        problems.addAll(e.problems());
        return new PenstockException(problems, e.getCause());
    }

    /** The same of another thread: whoever waits for it gets a trace of its own. */
    static PenstockException elsewhere(Throwable failure) {
        PenstockException told = told(failure);
        return new PenstockException(told.problems(), told);
    }

    /** The exception to throw instead of this one. */
    static PenstockException told(Throwable failure) {
        return switch (failure) {
            case PenstockException e -> e;
            case ConfigException e -> of(e.problems().stream().map(Problem::toString).toList(), e);
            case DataException e ->
                    of(e.problems().stream().map(DataProblem::toString).toList(), e);
            default -> {
                String message = failure.getMessage();
                yield of(
                        List.of(
                                message == null || message.isBlank()
                                        ? failure.getClass().getSimpleName()
                                        : message),
                        failure);
            }
        };
    }

    /** A cause in the words of the command line says nothing that the problems do not say. */
    private static PenstockException of(List<String> problems, Throwable cause) {
        List<String> own = problems.stream().map(Failures::inOwnWords).toList();
        return new PenstockException(own, own.equals(problems) ? cause : cause.getCause());
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
