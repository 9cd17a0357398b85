package dev.penstock.runtime.launch;

import akka.actor.typed.ActorRef;
import akka.actor.typed.ActorRefResolver;
import akka.actor.typed.ActorSystem;
import akka.actor.typed.Props;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.fault.ProcessHarm;
import dev.penstock.actors.node.NodeActor;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import dev.penstock.actors.supervisor.PipelineSupervisor.Command;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.LoadedConfig;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A stage process that is no process: an assembly, a data plane and a node of its own, as {@link
 * StageProcess} has them, but in this JVM. It dies as a killed process does, at once and silently.
 */
final class HostedProcess implements ProcessHarm, AutoCloseable {
    /** Told how a process died, by the thread that died. */
    @FunctionalInterface
    interface DeathListener {
        void onDeath(HostedProcess process, String how);
    }

    private final long pid;
    private final Optional<Integer> rank;
    private final DeathListener listener;
    private final ProcessLife life = new ProcessLife();
    private @Nullable RunAssembly assembly;
    private @Nullable DataPlane plane;
    private @Nullable ActorRef<NodeActor.Command> node;

    /**
     * @param rank that it is for; empty for a spare
     */
    HostedProcess(long pid, Optional<Integer> rank, DeathListener listener) {
        this.pid = pid;
        this.rank = rank;
        this.listener = listener;
    }

    long pid() {
        return pid;
    }

    Optional<Integer> rank() {
        return rank;
    }

    boolean isAlive() {
        return !life.isOver();
    }

    /** Does what {@link StageProcess#main} does. One that cannot start dies of it. */
    void start(Path runDirectory, Path driverDirectory, ActorSystem<Command> system) {
        try {
            RankResources resources = resources(runDirectory, driverDirectory);
            var info =
                    new NodeInfo(
                            rank.map(r -> "stage process " + r).orElse("spare process"),
                            pid,
                            0,
                            BuiltVersion.text(),
                            rank,
                            rank.isEmpty(),
                            Optional.empty());
            ActorRef<NodeActor.Introduction> supervisor =
                    ActorRefResolver.get(system)
                            .resolveActorRef(
                                    "akka://%s/user/%s"
                                            .formatted(
                                                    ActorSystems.NAME,
                                                    PipelineSupervisor.INTRODUCTIONS));
            synchronized (this) {
                if (isAlive()) {
                    node =
                            system.systemActorOf(
                                    NodeActor.create(info, resources, supervisor),
                                    "process-" + pid,
                                    Props.empty());
                }
            }
        } catch (RuntimeException e) {
            end("exit code 1, saying: " + e);
        }
    }

    private RankResources resources(Path runDirectory, Path driverDirectory) {
        LoadedConfig config =
                ConfigLoader.loadWithOrigins(
                        runDirectory.resolve(RunAssembly.LAUNCH_CONFIG), List.of());
        RunOptions options = RunOptions.read(runDirectory);
        RunParts parts = RunParts.prepare(config.asDraft(), options.start(), List.of());
        RunAssembly built = new RunAssembly(parts, options, this);
        DataPlane joined = built.openDataPlane(driverDirectory);
        synchronized (this) {
            assembly = built;
            plane = joined;
        }
        return mortal(
                built.resources(new MortalDataPlane(joined, life))
                        .whenFenced(reason -> end("exit code 4, fenced: " + reason)));
    }

    private RankResources mortal(RankResources given) {
        return new RankResources(
                given.plan(),
                given.devices(),
                new DecoratedStages(given.programs(), (stage, _) -> new MortalStage(stage, life)),
                given.dataPlane(),
                new MortalStore(given.checkpoints(), life),
                given.faults(),
                given.mirrors(),
                given.collectives(),
                given.library(),
                given.transfers(),
                given.fenced(),
                given.losses(),
                given.revisions());
    }

    @Override
    public void kill() {
        end("exit code %d (signal 9)".formatted(KILLED));
        life.requireAlive();
    }

    /** Only the rank's thread pauses: this JVM has other processes. */
    @Override
    public void pause(Duration length) {
        ONE_THREAD.pause(length);
    }

    /** The ranks of the node end with it, except that their threads stay where they are. */
    private void end(String how) {
        if (!life.end()) {
            return;
        }
        synchronized (this) {
            if (node != null) {
                node.tell(new NodeActor.Leave());
            }
        }
        listener.onDeath(this, "its process %d ended with %s".formatted(pid, how));
    }

    /** Lets a dead process's threads go, so that everything can be closed. */
    void bury() {
        life.bury();
    }

    /** Closes what the process had; call it when its actors have ended. */
    @Override
    public synchronized void close() {
        if (plane != null) {
            plane.close();
        }
        if (assembly != null) {
            assembly.close();
        }
    }
}
