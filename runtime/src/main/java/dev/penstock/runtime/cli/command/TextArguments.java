package dev.penstock.runtime.cli.command;

import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.data.Corpus;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.data.DataFormat;
import dev.penstock.runtime.data.DataProblem;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** The texts that a command reads, and with how many threads. */
public final class TextArguments {
    private static final int MOST_THREADS = 1024;

    /** A key of a configuration, as advice sets it. */
    private static final Pattern KEY = Pattern.compile("data\\.(format|field|tokenizer) = ");

    @Parameters(
            arity = "1..*",
            paramLabel = "FILE",
            description =
                    "Files, folders or globs of text, JSON lines (.gz too) or Parquet; read in this"
                            + " order.")
    private List<Path> sources = new ArrayList<>();

    @Option(
            names = "--format",
            paramLabel = "FORMAT",
            description =
                    "What all files hold: text, jsonl or parquet (default: each by its name,"
                            + " .jsonl, .parquet or else text).")
    private @Nullable String format;

    @Option(
            names = "--field",
            paramLabel = "NAME",
            defaultValue = "text",
            description =
                    "Member of a JSON line, or column, that holds the text (default:"
                            + " ${DEFAULT-VALUE}).")
    private String field = "text";

    @Option(
            names = "--threads",
            paramLabel = "N",
            description = "Threads that encode (default: one for each processor).")
    @WholeNumber(from = 1, to = MOST_THREADS)
    private @Nullable Integer threads;

    /** What is wrong with the options. */
    public List<Problem> problems() {
        List<Problem> problems = new ArrayList<>();
        if (format != null && formatNamed(format).isEmpty()) {
            List<String> known = formats().stream().map(TextArguments::word).toList();
            problems.add(
                    Problem.atOption("--format", words(), format + Meant.hint(known, format), ""));
        }
        if (threads != null && (threads < 1 || threads > MOST_THREADS)) {
            problems.add(Problem.atOption("--threads", "1 to " + MOST_THREADS, "" + threads, ""));
        }
        return problems;
    }

    private static List<DataFormat> formats() {
        return List.of(DataFormat.TEXT, DataFormat.JSONL, DataFormat.PARQUET);
    }

    private static String words() {
        return "one of " + String.join(", ", formats().stream().map(TextArguments::word).toList());
    }

    private static String word(DataFormat format) {
        return format.name().toLowerCase(Locale.ROOT);
    }

    private static Optional<DataFormat> formatNamed(String name) {
        return formats().stream().filter(known -> word(known).equals(name)).findFirst();
    }

    /**
     * Finds the texts.
     *
     * @throws dev.penstock.runtime.data.DataException if there are none
     */
    public Corpus corpus() {
        return Corpus.find(
                sources, Optional.ofNullable(format).flatMap(TextArguments::formatNamed), field);
    }

    /**
     * What is wrong with the texts, in the words of the command line.
     *
     * @param tokenizer whether the command has {@code --tokenizer}
     */
    public static List<Problem> told(DataException e, boolean tokenizer) {
        return e.problems().stream().map(problem -> told(problem, tokenizer)).toList();
    }

    private static Problem told(DataProblem problem, boolean tokenizer) {
        String place =
                switch (problem.key()) {
                    case "data.source" -> "FILE";
                    case "data.format", "data.field" -> option(problem.key());
                    case "data.tokenizer" -> tokenizer ? option(problem.key()) : "FILE";
                    default -> problem.key();
                };
        String advice =
                tokenizer
                        ? problem.advice()
                        : problem.advice().replaceFirst("( or use|;) data\\.tokenizer = .*", "");
        return Problem.atOption(
                place,
                problem.expected(),
                problem.got(),
                // a path on the command line is relative to no configuration
                advice.startsWith("check the path")
                        ? "check the path"
                        : KEY.matcher(advice).replaceAll("--$1 "));
    }

    private static String option(String key) {
        return key.replace("data.", "--");
    }

    public int threads() {
        return threads == null ? Runtime.getRuntime().availableProcessors() : threads;
    }
}
