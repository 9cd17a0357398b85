package dev.penstock.systemtests.support;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Stream;

/**
 * The results of undisturbed runs. Each is trained once per test JVM, however many tests compare
 * with it.
 */
public final class CalmRuns {
    private static final Map<List<String>, CalmRun> RUNS = new HashMap<>();
    private static final Map<List<String>, List<String>> STEADY = new HashMap<>();
    private static final int AT_ONCE = 50;

    private CalmRuns() {}

    /**
     * The results of a run.
     *
     * @param lossBits step and exact loss of every step
     * @param validationBits step and exact loss of every evaluation
     */
    public record CalmRun(List<String> lossBits, List<String> validationBits) {}

    /** The results of {@link Training#onText} with these settings. */
    public static CalmRun onText(String... settings) {
        return run("text", Training::onText, settings);
    }

    /** The results of {@link Training#golden} with these settings. */
    public static CalmRun golden(boolean tied, String... settings) {
        return run("golden " + tied, folder -> Training.golden(folder, tied), settings);
    }

    private static synchronized CalmRun run(
            String kind, Function<Path, Training> training, String... settings) {
        List<String> key = Stream.concat(Stream.of(kind), Stream.of(settings)).toList();
        CalmRun known = RUNS.get(key);
        if (known == null) {
            known = train(folder -> training.apply(folder).set(settings));
            RUNS.put(key, known);
        }
        return known;
    }

    /**
     * The losses of the first steps of a {@link SteadyTraining}, which are the same however many
     * steps follow: a longer run serves for a shorter one.
     */
    static synchronized List<String> steady(int steps, String... settings) {
        List<String> key = List.of(settings);
        List<String> known = STEADY.getOrDefault(key, List.of());
        if (known.size() < steps) {
            int enough = (steps + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
            known = train(folder -> SteadyTraining.calm(folder, enough).set(settings)).lossBits();
            STEADY.put(key, known);
        }
        return known.subList(0, steps);
    }

    private static CalmRun train(Function<Path, Training> training) {
        try {
            Path folder = Files.createTempDirectory("penstock-calm-");
            try {
                Trained trained = training.apply(folder).complete();
                return new CalmRun(trained.lossBits(), trained.validationBits());
            } finally {
                delete(folder);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> entries = Files.walk(folder)) {
            for (Path entry : entries.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(entry);
            }
        }
    }
}
