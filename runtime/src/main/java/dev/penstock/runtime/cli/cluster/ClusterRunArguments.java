package dev.penstock.runtime.cli.cluster;

import dev.penstock.runtime.cluster.ClusterClient;
import java.util.List;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/** Which run of which cluster. */
final class ClusterRunArguments {
    @Parameters(index = "0", paramLabel = "RUN", description = "See penstock runs.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private String run;

    @Mixin private ClusterArguments seeds = new ClusterArguments();

    boolean isOfCluster() {
        return seeds.isGiven();
    }

    String run() {
        return run;
    }

    List<String> seeds() {
        return seeds.seeds();
    }

    /** See {@link ClusterArguments#connect}. */
    ClusterClient connect() {
        return seeds.connect();
    }
}
