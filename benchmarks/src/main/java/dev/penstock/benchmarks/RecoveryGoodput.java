package dev.penstock.benchmarks;

/**
 * A training's speed with and without kills at a steady rate.
 *
 * @param calm steps per second without any kill
 * @param killed steps per second under kills; steps that are done again count once
 */
record RecoveryGoodput(double calm, double killed) {
    /** Steps before the clock starts, in which the code is compiled. */
    private static final int WARM_UP_STEPS = 30;

    /**
     * Measures one training: a calm period, then the periods with a kill at the beginning of each.
     *
     * @param seconds length of a period
     */
    static RecoveryGoodput of(RecoveryBenchmark.Row row, int seconds) {
        try (KilledTraining training = KilledTraining.start(row)) {
            RecoverySteps steps = training.steps();
            steps.awaitMore(WARM_UP_STEPS);
            double calm = stepsPerSecond(steps, seconds, () -> {});
            double killed = 0;
            for (int kill = 0; kill < KilledTraining.MOST_KILLS; kill++) {
                killed += stepsPerSecond(steps, seconds, training::kill);
            }
            return new RecoveryGoodput(calm, killed / KilledTraining.MOST_KILLS);
        }
    }

    private static double stepsPerSecond(RecoverySteps steps, int seconds, Runnable first) {
        long before = steps.newest();
        first.run();
        steps.pause(seconds);
        return (double) (steps.newest() - before) / seconds;
    }

    /** The share of the calm speed that is left under kills. */
    double share() {
        return killed / calm;
    }
}
