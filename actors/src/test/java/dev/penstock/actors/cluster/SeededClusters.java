package dev.penstock.actors.cluster;

import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** Clusters that seeds draw. */
final class SeededClusters {
    private SeededClusters() {}

    static ClusterSimulation of(long seed) {
        return new ClusterSimulation(ClusterScenario.of(seed), seed).run();
    }

    /**
     * Returns what the first of some seeds violates that violates something.
     *
     * @param first of the seeds
     * @param end the first that is none of them
     * @param kinds names of the kinds of harm that happen; any if empty
     */
    static Optional<String> firstFailure(long first, long end, String kinds) {
        List<ClusterScenario.Kind> harms =
                Stream.of(kinds.split(" "))
                        .filter(kind -> !kind.isEmpty())
                        .map(ClusterScenario.Kind::valueOf)
                        .toList();
        for (long seed = first; seed < end; seed++) {
            ClusterScenario any = ClusterScenario.of(seed);
            ClusterScenario scenario = harms.isEmpty() ? any : any.with(harms, seed);
            var violations = new ClusterSimulation(scenario, seed).run().world.violations();
            if (!violations.isEmpty()) {
                return Optional.of("seed %d: %s".formatted(seed, violations));
            }
        }
        return Optional.empty();
    }
}
