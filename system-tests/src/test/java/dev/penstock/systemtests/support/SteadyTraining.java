package dev.penstock.systemtests.support;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import java.nio.file.Path;
import java.util.List;

/**
 * A training that runs until it is interrupted, and whose losses do not depend on when: its
 * learning rate does not depend on the last step.
 */
public final class SteadyTraining {
    private SteadyTraining() {}

    /**
     * Steps take longer than necessary, so that a pause of some seconds does not span thousands of
     * them; this changes no loss. What takes longer is each frame between processes, not an op: in
     * a JVM that has just started an op takes a hundred times as long.
     */
    public static Training on(Path folder) {
        return plain(folder)
                .set("run.steps=1000000", "checkpoint.every=10")
                .set("fault=[{ delay-frames = 1, for = 20 ms, from-step = 10 }]");
    }

    /** Returns the losses of as many steps as the run did, without any fault and in one process. */
    public static List<String> calmBits(Trained harmed, String... settings) {
        return CalmRuns.steady(harmed.lossBits().size(), settings);
    }

    /** Returns the same training at full speed. */
    static Training calm(Path folder, int steps) {
        return plain(folder).set("run.steps=" + steps, "checkpoint.every=0");
    }

    /**
     * What computes is not the point, and plain code is ready sooner in a process that is young.
     */
    private static Training plain(Path folder) {
        return Training.onText(folder)
                .set(ForkedCli.PLAIN_CODE)
                .set("optimizer={learning-rate=3e-3, min-learning-rate=3e-3, warmup-steps=3}")
                .set("evaluation.every=0");
    }
}
