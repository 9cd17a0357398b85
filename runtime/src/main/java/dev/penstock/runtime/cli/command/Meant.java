package dev.penstock.runtime.cli.command;

import dev.penstock.runtime.config.reading.NearWord;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;

/** What was probably meant by a word of a command line that is none of those known. */
public final class Meant {
    private Meant() {}

    /** The end of a message about the word: {@code ; did you mean gpipe?}, or nothing. */
    public static String hint(Collection<String> known, String word) {
        return NearWord.among(known, word)
                .map(nearest -> "; did you mean %s?".formatted(nearest))
                .orElse("");
    }

    /**
     * Says what is wrong where an option that takes one of some words was given another: all such
     * options name their words for completion.
     */
    static Optional<String> problem(ParameterException misuse) {
        ArgSpec argument = misuse.getArgSpec();
        if (argument == null
                || misuse.getValue() == null
                || argument.completionCandidates() == null) {
            return Optional.empty();
        }
        List<String> known = new ArrayList<>();
        argument.completionCandidates().forEach(word -> known.add(word.toLowerCase(Locale.ROOT)));
        String word = misuse.getValue();
        if (known.isEmpty() || known.contains(word.toLowerCase(Locale.ROOT))) {
            return Optional.empty();
        }
        String name =
                argument instanceof OptionSpec option
                        ? option.longestName()
                        : argument.paramLabel();
        return Optional.of(
                "%s: expected %s, got %s%s".formatted(name, words(known), word, hint(known, word)));
    }

    private static String words(List<String> known) {
        return known.size() <= 2
                ? String.join(" or ", known)
                : "one of " + String.join(", ", known);
    }
}
