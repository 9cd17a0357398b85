package dev.penstock.runtime.cluster;

import dev.penstock.actors.cluster.ClusterRun;
import dev.penstock.actors.cluster.HostedRun;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.aeron.MediaDriverProcess;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.runtime.launch.NodeInterface;
import dev.penstock.runtime.launch.RunAssembly;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import javax.crypto.SecretKey;
import org.jspecify.annotations.Nullable;

/** A node's share of a run. */
final class JoinedRun implements HostedRun {
    private final RunAssembly assembly;
    private final NodeInterface here;
    private final boolean spared;
    private @Nullable MediaDriverProcess driver;
    private @Nullable DataPlane dataPlane;

    /**
     * @param assembly closed with this share
     * @param here where this node takes tensors of other hosts
     * @param spared whether this process may end when a rank's device is lost
     */
    JoinedRun(RunAssembly assembly, NodeInterface here, boolean spared) {
        this.assembly = assembly;
        this.here = here;
        this.spared = spared;
    }

    @Override
    public String planHash() {
        return assembly.plan().hash();
    }

    @Override
    public Duration patience() {
        return ClusterRun.patience(assembly.plan().timeouts());
    }

    @Override
    public Path startDriver(Consumer<String> onDeath) {
        if (driver != null) {
            driver.close();
        }
        MediaDriverProcess started =
                MediaDriverProcess.start(
                        assembly.driverSettingsOfHost(),
                        assembly.plan().timeouts().start(),
                        onDeath);
        driver = started;
        return started.directory();
    }

    @Override
    public RankResources resources(Path driverDirectory, Optional<SecretKey> key) {
        DataPlane joined =
                assembly.mayCrossHosts()
                        ? assembly.openDataPlaneBetweenHosts(driverDirectory, here, key)
                        : assembly.openDataPlane(driverDirectory, key);
        dataPlane = joined;
        return spared ? assembly.resourcesToEndWith(joined) : assembly.resources(joined);
    }

    @Override
    public void close() {
        if (dataPlane != null) {
            dataPlane.close();
        }
        if (driver != null) {
            driver.close();
        }
        assembly.close();
    }
}
