package dev.penstock.runtime.launch;

import akka.actor.typed.ActorRef;
import akka.actor.typed.ActorRefResolver;
import akka.actor.typed.ActorSystem;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.Behaviors;
import dev.penstock.actors.node.NodeActor;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import dev.penstock.runtime.certificates.LocalCertificate;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The main class of a process that holds one rank. Builds its own assembly from the run's
 * directory, connects to the supervisor, and ends when its standard input does.
 */
public final class StageProcess {
    private static final Logger LOG = LoggerFactory.getLogger(StageProcess.class);

    /** In the place of a rank: wait for one whose process dies. */
    static final String SPARE = "spare";

    /** Last argument of a process that starts while the others of its run already compute. */
    static final String WARM_UP = "warm-up";

    private static final int FENCED = 4;
    private static final Duration PATIENCE = Duration.ofSeconds(3);

    private StageProcess() {}

    /**
     * Arguments: run directory, rank or {@value #SPARE}, directory of the media driver, address of
     * the supervisor, and {@value #WARM_UP} or nothing.
     */
    public static void main(String[] args) throws IOException {
        Interrupts.leaveToParent();
        Path directory = Path.of(args[0]);
        Optional<Integer> rank =
                args[1].equals(SPARE) ? Optional.empty() : Optional.of(Integer.parseInt(args[1]));
        Path driverDirectory = Path.of(args[2]);
        String address = args[3];
        boolean warmsUp = args.length > 4 && args[4].equals(WARM_UP);
        var info =
                new NodeInfo(
                        rank.map(r -> "stage process " + r).orElse("spare process"),
                        ProcessHandle.current().pid(),
                        0,
                        BuiltVersion.text(),
                        rank,
                        rank.isEmpty(),
                        Optional.empty());

        // somebody may wait for this process: it connects while it reads its data
        CompletableFuture<RankResources> resources =
                CompletableFuture.supplyAsync(
                        () -> resources(directory, driverDirectory, warmsUp),
                        task -> Thread.ofPlatform().name("resources").start(task));
        ActorSystem<RankResources> system;
        try {
            system =
                    ActorSystems.remote(
                            hosting(info, address),
                            LocalCertificate.in(directory.resolve(RunAssembly.KEY_FOLDER)));
            LOG.info("{} works for {}", info.name(), address);
            system.tell(resources.join());
        } catch (RuntimeException | Error e) {
            Throwable why =
                    e instanceof CompletionException && e.getCause() != null ? e.getCause() : e;
            LOG.error("{} cannot start: {}", info.name(), why.getMessage(), e);
            Runtime.getRuntime().halt(1); // other threads would keep the process alive
            throw e;
        }
        awaitEndOfInput();
        // without its driver a data plane takes long to close, and nobody needs that any more
        CompletableFuture.delayedExecutor(PATIENCE.toMillis(), TimeUnit.MILLISECONDS)
                .execute(() -> Runtime.getRuntime().halt(0));
        resources.join().dataPlane().close();
        system.terminate();
        // the supervisor sees this process end, and waits for no farewell
        Runtime.getRuntime().halt(0);
    }

    private static RankResources resources(Path directory, Path driverDirectory, boolean warmsUp) {
        LoadedConfig config =
                ConfigLoader.loadOfRun(directory.resolve(RunAssembly.LAUNCH_CONFIG), List.of());
        Runnable endWarmUp = warmsUp ? WarmUp.start(config.config().device())::close : () -> {};
        RunAssembly assembly = RunAssembly.of(config, RunOptions.read(directory));
        return assembly.resourcesToEndWith(assembly.openDataPlane(driverDirectory))
                .whenFenced(StageProcess::endFenced)
                .beforeDevices(endWarmUp);
    }

    /** Hosts ranks from when it has the resources for them. */
    private static Behavior<RankResources> hosting(NodeInfo info, String address) {
        return Behaviors.receive(
                (context, resources) -> {
                    ActorRef<NodeActor.Introduction> supervisor =
                            ActorRefResolver.get(context.getSystem())
                                    .resolveActorRef(
                                            address + "/user/" + PipelineSupervisor.INTRODUCTIONS);
                    context.spawn(NodeActor.create(info, resources, supervisor), "node");
                    return Behaviors.same();
                });
    }

    /** The run continues without this process, which nobody waits for any more. */
    private static void endFenced(String reason) {
        LOG.error("this process ends: {}", reason);
        Runtime.getRuntime().halt(FENCED);
    }

    private static void awaitEndOfInput() throws IOException {
        while (System.in.read() >= 0) {
            // nobody writes; the end of the stream is the parent's end
        }
    }
}
