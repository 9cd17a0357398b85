package dev.penstock.runtime.launch;

import akka.actor.Address;
import akka.actor.typed.ActorSystem;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.Behaviors;
import akka.cluster.typed.Cluster;
import akka.cluster.typed.Join;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.actors.dataplane.aeron.MediaDriverHandle;
import dev.penstock.actors.journal.JournalFile;
import dev.penstock.actors.journal.RunJournal;
import dev.penstock.actors.node.NodeActor;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import dev.penstock.actors.supervisor.PipelineSupervisor.Command;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.actors.supervisor.SupervisorServices;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs an assembly to its end, with all ranks in this process or each in one of its own. */
public final class PipelineRun {
    private static final Logger LOG = LoggerFactory.getLogger(PipelineRun.class);
    private static final Duration TERMINATION = Duration.ofSeconds(10);

    private final RunAssembly assembly;
    private final RunListener listener;
    private final Consumer<Runnable> onInterrupt;
    private final CompletableFuture<RunOutcome> outcome = new CompletableFuture<>();

    /**
     * @param onInterrupt is given what to do when the user wants the run to end early
     */
    public PipelineRun(RunAssembly assembly, RunListener listener, Consumer<Runnable> onInterrupt) {
        this.assembly = assembly;
        this.listener = listener;
        this.onInterrupt = onInterrupt;
    }

    /** Runs and waits for the end; deadlines are the supervisor's. */
    public RunOutcome run() {
        return switch (assembly.config().pipeline().processes()) {
            case SINGLE -> runInThisProcess();
            case PER_STAGE -> runInStageProcesses();
        };
    }

    private RunOutcome runInThisProcess() {
        try (MediaDriverHandle driver =
                        assembly.runningDriver()
                                .orElseGet(() -> EmbeddedDriver.start(assembly.driverSettings()));
                DataPlane dataPlane = assembly.openDataPlane(driver.directory())) {
            var info =
                    new NodeInfo(
                            "this process",
                            ProcessHandle.current().pid(),
                            BuiltVersion.text(),
                            Optional.empty(),
                            false,
                            Optional.empty());
            Behavior<Command> guardian =
                    Behaviors.setup(
                            context -> {
                                context.spawn(
                                        NodeActor.create(info, assembly.resources(dataPlane)),
                                        "node");
                                return supervisor();
                            });
            ActorSystem<Command> system = ActorSystems.local(guardian);
            try {
                return await(system);
            } finally {
                terminate(system);
            }
        }
    }

    private RunOutcome runInStageProcesses() {
        assembly.writeForStageProcesses();
        RunBeginning beginning = EarlierStarts.in(assembly.options().directory()).next();
        try (var processes = new LocalProcesses(assembly);
                var journal =
                        JournalFile.open(
                                assembly.options().directory().resolve(JournalFile.NAME))) {
            var services =
                    new SupervisorServices(
                            assembly.checkpoints(), assembly.recoveryPolicy(), journal, processes);
            ActorSystem<Command> system =
                    ActorSystems.clustered(
                            PipelineSupervisor.create(
                                    assembly.plan(), listener, services, beginning, outcome),
                            List.of());
            Cluster cluster = Cluster.get(system);
            Address self = cluster.selfMember().address();
            cluster.manager().tell(Join.create(self));
            try {
                processes.begin(system, self.toString());
                return await(system);
            } finally {
                processes.close();
                terminate(system);
            }
        }
    }

    private Behavior<Command> supervisor() {
        var services =
                new SupervisorServices(
                        assembly.checkpoints(),
                        ConfiguredRecovery.inOneProcess(assembly.config().recovery()),
                        RunJournal.NONE,
                        ProcessSupply.NONE);
        return PipelineSupervisor.create(assembly.plan(), listener, services, outcome);
    }

    private RunOutcome await(ActorSystem<Command> system) {
        onInterrupt.accept(() -> system.tell(new PipelineSupervisor.Interrupt()));
        system.getWhenTerminated()
                .whenComplete(
                        (_, _) ->
                                outcome.complete(
                                        new RunOutcome.Failed(
                                                0,
                                                "the supervisor ended unexpectedly, see the log")));
        try {
            return outcome.get();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while waiting for the run", e);
        } catch (ExecutionException e) {
            throw new IllegalStateException("the run ended without an outcome", e);
        }
    }

    private static void terminate(ActorSystem<Command> system) {
        system.terminate();
        try {
            system.getWhenTerminated()
                    .toCompletableFuture()
                    .get(TERMINATION.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException | TimeoutException e) {
            LOG.warn("the actor system did not end within {}", TERMINATION, e);
        }
    }
}
