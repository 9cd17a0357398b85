package dev.penstock.runtime.cli;

import dev.penstock.runtime.cluster.ClusterClient;
import java.util.List;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/** Which run of which cluster. */
final class ClusterRunArguments {
    @Parameters(index = "0", paramLabel = "RUN", description = "See penstock runs.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private String run;

    @Mixin private SeedArguments seeds = new SeedArguments();

    String run() {
        return run;
    }

    List<String> seeds() {
        return seeds.seeds();
    }

    /** See {@link SeedArguments#connect}. */
    ClusterClient connect() {
        return seeds.connect();
    }
}
