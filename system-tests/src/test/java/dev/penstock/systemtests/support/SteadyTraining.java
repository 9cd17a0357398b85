package dev.penstock.systemtests.support;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import java.nio.file.Path;
import java.util.List;

/**
 * A training that goes on until it is interrupted, and whose losses do not depend on when: its
 * learning rate does not know the last step.
 */
public final class SteadyTraining {
    private SteadyTraining() {}

    /**
     * Steps take longer than they must, such that a pause of some seconds is not thousands of them;
     * which changes no loss. By what each frame between processes waits, and not by times of what
     * an op takes: in a Java machine that has just started that is a hundred times as long.
     */
    public static Training on(Path folder) {
        return plain(folder)
                .set("run.steps=1000000", "checkpoint.every=20")
                .set("fault=[{ delay-frames = 1, for = 4 ms, from-step = 20 }]");
    }

    /** The losses of as many steps as the run did, without any fault and in one process. */
    public static List<String> calmBits(Trained harmed, String... settings) {
        return CalmRuns.steady(harmed.lossBits().size(), settings);
    }

    /** The same training, as fast as it can. */
    static Training calm(Path folder, int steps) {
        return plain(folder).set("run.steps=" + steps, "checkpoint.every=0");
    }

    private static Training plain(Path folder) {
        return Training.onText(folder)
                .set("optimizer={learning-rate=3e-3, min-learning-rate=3e-3, warmup-steps=3}")
                .set("evaluation.every=0");
    }
}
