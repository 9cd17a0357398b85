package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Problem;
import java.util.Optional;

/** Tensors that other machines may send need a key, or somebody who trusts all of them. */
public final class ExposedDataPlane {
    private static final String KEY = "data-plane.host";

    private ExposedDataPlane() {}

    /** What is wrong with a run of this machine alone: no TLS carries a key to its processes. */
    public static Optional<Problem> ofLocalRun(LoadedConfig loaded) {
        DataPlaneSection section = loaded.config().dataPlane();
        boolean listens = section.transport() == DataPlaneSection.Transport.UDP;
        return section.isExposed() && listens && !section.insecure()
                ? Optional.of(
                        problem(
                                loaded,
                                "auto, or data-plane.insecure = true where everyone on that network is trusted; a cluster with TLS has a key for its frames"))
                : Optional.empty();
    }

    /**
     * What is wrong with a run of a cluster.
     *
     * @param secured whether this node has TLS, or {@code cluster.insecure = true}
     */
    public static Optional<Problem> ofClusterRun(LoadedConfig loaded, boolean secured) {
        return loaded.config().dataPlane().isExposed() && !secured
                ? Optional.of(
                        problem(
                                loaded,
                                "auto: cluster.data-host of each node; or give all nodes cluster.tls, or cluster.insecure = true where everyone on that network is trusted"))
                : Optional.empty();
    }

    private static Problem problem(LoadedConfig loaded, String advice) {
        String host = loaded.config().dataPlane().host().orElse("");
        return loaded.problem(
                KEY,
                "a loopback address such as 127.0.0.1, or TLS",
                host + ", which other machines can reach",
                "try " + advice);
    }
}
