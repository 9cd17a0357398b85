package dev.penstock.runtime.cluster;

import dev.penstock.actors.cluster.ClusterRun;
import dev.penstock.actors.cluster.HostedRun;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.aeron.MediaDriverProcess;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StageBuilder;
import dev.penstock.actors.spi.StageMirror;
import dev.penstock.actors.spi.StageProgram;
import dev.penstock.actors.spi.StageProgramFactory;
import dev.penstock.cuda.device.Device;
import dev.penstock.runtime.config.run.DeviceKind;
import dev.penstock.runtime.inference.ApartPipeline;
import dev.penstock.runtime.inference.JoiningTexts;
import dev.penstock.runtime.launch.NodeInterface;
import dev.penstock.runtime.launch.RestartableDataPlane;
import dev.penstock.runtime.launch.devices.ConfiguredDevices;
import dev.penstock.runtime.serve.InferenceServer;
import dev.penstock.runtime.serve.ServeAddress;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import javax.crypto.SecretKey;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A node's share of a model that is served. The node with the first rank also has the server, from
 * when it loads its stages until it gives its share up: it says that nothing is ready while other
 * ranks are missing.
 */
final class ServingShare implements HostedRun {
    private static final Logger LOG = LoggerFactory.getLogger(ServingShare.class);

    private final ServingParts parts;
    private final NodeInterface here;
    private final JoiningTexts texts;
    private @Nullable MediaDriverProcess driver;
    private @Nullable DataPlane dataPlane;
    private @Nullable InferenceServer server;

    /**
     * @param parts closed with this share
     * @param here where this node takes tensors of other hosts
     */
    ServingShare(ServingParts parts, NodeInterface here) {
        this.parts = parts;
        this.here = here;
        texts = parts.pipeline().texts();
    }

    @Override
    public String planHash() {
        return parts.plan().hash();
    }

    @Override
    public Duration patience() {
        return ClusterRun.LEAST_PATIENCE;
    }

    @Override
    public Path startDriver(Consumer<String> onDeath) {
        if (driver != null) {
            driver.close();
        }
        MediaDriverProcess started =
                MediaDriverProcess.start(
                        parts.dataPlane().driver(2 * parts.plan().ranks(), true),
                        parts.plan().timeouts().start(),
                        onDeath);
        driver = started;
        return started.directory();
    }

    @Override
    public RankResources resources(Path driverDirectory, Optional<SecretKey> key) {
        var joined =
                new RestartableDataPlane(
                        driverDirectory,
                        (directory, former) ->
                                parts.dataPlane().openBetweenHosts(directory, here, key, former));
        dataPlane = joined;
        return RankResources.of(
                parts.plan(),
                ConfiguredDevices.of(new DeviceKind(parts.order().device()), 1),
                new ServedStages(
                        parts.pipeline().stages(texts, parts.model().tensors()::fill), this::serve),
                joined,
                ApartPipeline.NO_CHECKPOINTS);
    }

    /** Serves, if it does not yet. */
    private synchronized void serve() {
        if (server != null) {
            return;
        }
        ServeOrder order = parts.order();
        try {
            server =
                    InferenceServer.start(
                            new ServeAddress(
                                    InetAddress.getByName(order.host()),
                                    order.port(),
                                    order.keyHash()),
                            parts.served(),
                            texts);
            LOG.info("serves {} at {}", order.name(), server.url());
        } catch (IOException e) {
            // without its cause: no other node does better, as it would be the same
            throw new IllegalStateException(
                    "expected port %d of %s to be free on the node of the first rank (%s); try another --port"
                            .formatted(order.port(), order.host(), e.getMessage()));
        }
    }

    /** Stages of which the first one has the server beside it. */
    private record ServedStages(StageProgramFactory stages, Runnable serve)
            implements StageProgramFactory {
        @Override
        public StageProgram create(int stage, RankPlace place, Device device) {
            if (stage == 0) {
                serve.run();
            }
            return stages.create(stage, place, device);
        }

        @Override
        public StageMirror mirror(int stage, RankPlace place, Device device) {
            return stages.mirror(stage, place, device);
        }

        @Override
        public StageBuilder blank() {
            return this;
        }

        @Override
        public StageBuilder startingAt(long step) {
            return this;
        }
    }

    @Override
    public synchronized void close() {
        texts.close();
        if (server != null) {
            server.close();
        }
        if (dataPlane != null) {
            dataPlane.close();
        }
        if (driver != null) {
            driver.close();
        }
        parts.close();
    }
}
