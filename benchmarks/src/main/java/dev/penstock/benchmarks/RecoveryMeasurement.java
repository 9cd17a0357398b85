package dev.penstock.benchmarks;

import java.util.ArrayList;
import java.util.List;
import java.util.random.RandomGenerator;

/**
 * The cost of one killed process.
 *
 * @param seconds from the kill to the next committed step
 * @param stepsLost committed steps that were done again
 */
record RecoveryMeasurement(
        double seconds, double detectSeconds, double resumeSeconds, long stepsLost) {
    /** Steps before a kill, in which the code is compiled and checkpoints are written. */
    private static final int STEADY_STEPS = 30;

    /** Runs as many trainings as the given number of kills needs. */
    static List<RecoveryMeasurement> of(RecoveryBenchmark.Row row, int kills) {
        List<RecoveryMeasurement> found = new ArrayList<>();
        var random = RandomGenerator.of("L64X128MixRandom");
        while (found.size() < kills) {
            int now = Math.min(KilledTraining.MOST_KILLS, kills - found.size());
            try (KilledTraining training = KilledTraining.start(row)) {
                RecoverySteps steps = training.steps();
                for (int kill = 0; kill < now; kill++) {
                    steps.awaitSpares(row.spares());
                    steps.awaitMore(STEADY_STEPS);
                    steps.pause(random.nextDouble() * steps.medianStepNanos() / 1e9);
                    found.add(kill(training));
                }
            }
        }
        return found;
    }

    private static RecoveryMeasurement kill(KilledTraining training) {
        RecoverySteps steps = training.steps();
        long recoveries = steps.recoveries();
        long killed = System.nanoTime();
        training.kill();
        RecoverySteps.Recovery back = steps.awaitRecovery(recoveries);
        return new RecoveryMeasurement(
                (back.nextStepNanos() - killed) / 1e9,
                back.report().detectNanos() / 1e9,
                back.report().resumeNanos() / 1e9,
                back.report().stepsLost());
    }
}
