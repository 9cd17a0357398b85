package dev.penstock.actors.cluster;

import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameListener;
import dev.penstock.actors.dataplane.Opening;
import dev.penstock.actors.dataplane.PeerAddress;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StageProgramFactory;
import dev.penstock.actors.supervisor.TestPlans;
import dev.penstock.cuda.device.Device;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import javax.crypto.SecretKey;
import org.jspecify.annotations.Nullable;

/** A simulated node's share of a run: who uses which media driver, and whether it was let go. */
final class SimHostedRun implements HostedRun {
    private final SimClusterNode node;
    private final SimRunFiles files;
    private @Nullable Consumer<String> onDriverDeath;
    private String ownDriver = "";
    private String usedDriver = "";
    private int driversStarted;

    SimHostedRun(SimClusterNode node, SimRunFiles files) {
        this.node = node;
        this.files = files;
    }

    int driversStarted() {
        return driversStarted;
    }

    /** Of the driver that its ranks use. */
    String usedDriver() {
        return usedDriver;
    }

    void relink(String directory) {
        usedDriver = directory;
    }

    /** Whether a driver lived here. */
    boolean driverDies(String how) {
        Consumer<String> told = onDriverDeath;
        if (told == null || !node.cluster.endDriver(ownDriver)) {
            return false;
        }
        node.after(0, () -> node.told(() -> told.accept(how)));
        return true;
    }

    @Override
    public String planHash() {
        return files.plan.hash();
    }

    @Override
    public Duration patience() {
        return ClusterRun.patience(files.plan.timeouts());
    }

    @Override
    public Path startDriver(Consumer<String> onDeath) {
        if (node.refusesDriver()) {
            throw new IllegalStateException("no driver starts here now");
        }
        node.cluster.endDriver(ownDriver);
        driversStarted++;
        onDriverDeath = onDeath;
        ownDriver = node.cluster.startDriver();
        return Path.of(ownDriver);
    }

    @Override
    public RankResources resources(Path driverDirectory, Optional<SecretKey> key) {
        if (node.refusesRanks()) {
            throw new IllegalStateException("no ranks can be hosted here now");
        }
        usedDriver = driverDirectory.toString();
        return resources(files.plan, () -> new PeerAddress(node.offer.host(), usedDriver, ""));
    }

    /** Of a process whose ranks are imagined. */
    static RankResources resources(RunPlan plan, Supplier<PeerAddress> address) {
        return RankResources.of(
                plan,
                _ -> {
                    throw unused();
                },
                NO_STAGES,
                dataPlane(address),
                TestPlans.unusedCheckpoints());
    }

    @Override
    public void close() {
        onDriverDeath = null;
        node.cluster.endDriver(ownDriver);
    }

    private static UnsupportedOperationException unused() {
        return new UnsupportedOperationException("ranks are imagined");
    }

    private static final StageProgramFactory NO_STAGES =
            new StageProgramFactory() {
                @Override
                public StageBuilder blank() {
                    throw unused();
                }

                @Override
                public StageBuilder startingAt(long step) {
                    throw unused();
                }

                @Override
                public StageProgram create(int stage, RankPlace place, Device device) {
                    throw unused();
                }

                @Override
                public StageMirror mirror(int stage, RankPlace place, Device device) {
                    throw unused();
                }
            };

    private static DataPlane dataPlane(Supplier<PeerAddress> address) {
        return new DataPlane() {
            @Override
            public Endpoint open(Opening opening, FrameListener listener) {
                throw new DataPlaneException("ranks are imagined");
            }

            @Override
            public PeerAddress address() {
                return address.get();
            }

            @Override
            public boolean keepsSentTensors() {
                return false;
            }

            @Override
            public void close() {}
        };
    }
}
