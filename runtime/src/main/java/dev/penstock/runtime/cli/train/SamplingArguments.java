package dev.penstock.runtime.cli.train;

import dev.penstock.runtime.cli.command.WholeNumber;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.model.generation.Sampling;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/** How generated tokens are chosen. */
final class SamplingArguments {
    @Option(
            names = "--temperature",
            paramLabel = "T",
            defaultValue = "1.0",
            description =
                    "Above 1 more surprising, below 1 less; 0: the likeliest token always (default:"
                            + " ${DEFAULT-VALUE}).")
    private double temperature;

    @Option(
            names = "--top-k",
            paramLabel = "K",
            defaultValue = "0",
            description = "Only the K likeliest tokens; 0: all (default: ${DEFAULT-VALUE}).")
    @WholeNumber(from = 0)
    private int topK;

    @Option(
            names = "--top-p",
            paramLabel = "P",
            defaultValue = "1.0",
            description =
                    "Only the likeliest tokens that reach this probability together (default:"
                            + " ${DEFAULT-VALUE}).")
    private double topP;

    @Option(
            names = "--seed",
            paramLabel = "SEED",
            defaultValue = "42",
            description = "The same seed gives the same text (default: ${DEFAULT-VALUE}).")
    private long seed;

    /** What is wrong with these options. */
    List<Problem> problems() {
        List<Problem> problems = new ArrayList<>();
        require(temperature >= 0, "--temperature", "0 or more", temperature, problems);
        require(topK >= 0, "--top-k", "0 or more", topK, problems);
        require(topP > 0 && topP <= 1, "--top-p", "more than 0 and at most 1", topP, problems);
        return problems;
    }

    /** Once there are no {@link #problems}. */
    Sampling sampling() {
        return new Sampling(temperature, topK, topP, seed);
    }

    private static void require(
            boolean holds, String option, String expected, Object got, List<Problem> problems) {
        if (!holds) {
            problems.add(Problem.atOption(option, expected, String.valueOf(got), ""));
        }
    }
}
