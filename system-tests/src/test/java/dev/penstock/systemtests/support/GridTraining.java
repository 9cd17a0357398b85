package dev.penstock.systemtests.support;

import dev.penstock.runtime.cli.Training;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** A training of one stage on several ranks, of few tokens: most of its time goes into deaths. */
public final class GridTraining {
    private GridTraining() {}

    /**
     * A training in a folder of its own.
     *
     * @param parallel the keys of {@code parallel}
     */
    public static Training on(Path folder, String parallel) {
        return Training.onText(folder).set(settings(parallel));
    }

    /** The losses of such a training that nothing disturbs, with more settings. */
    public static List<String> calmBits(String parallel, String... more) {
        return CalmRuns.onText(
                        Stream.concat(Stream.of(settings(parallel)), Stream.of(more))
                                .toArray(String[]::new))
                .lossBits();
    }

    private static String[] settings(String parallel) {
        return new String[] {
            "run.steps=7",
            "evaluation.every=0",
            "checkpoint.every=2",
            "model.context=8",
            "pipeline.stages=1",
            "parallel={" + parallel + "}"
        };
    }
}
