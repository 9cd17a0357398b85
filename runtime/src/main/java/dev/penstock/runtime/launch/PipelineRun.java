package dev.penstock.runtime.launch;

import akka.actor.typed.ActorSystem;
import akka.actor.typed.Behavior;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.actors.journal.JournalFile;
import dev.penstock.actors.journal.RunJournal;
import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import dev.penstock.actors.supervisor.PipelineSupervisor.Command;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.actors.supervisor.SupervisorServices;
import dev.penstock.runtime.certificates.LocalCertificate;
import dev.penstock.runtime.certificates.NodeFiles;
import dev.penstock.runtime.metrics.CommittedStep;
import dev.penstock.runtime.metrics.ListenerFanOut;
import dev.penstock.runtime.metrics.RunDirectory;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Runs an assembly to its end, with all ranks in this process or each in one of its own. */
public final class PipelineRun {
    private static final Logger LOG = LoggerFactory.getLogger(PipelineRun.class);

    private final RunAssembly assembly;
    private final RunListener listener;
    private final Consumer<Runnable> onInterrupt;

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
        return new InProcessRun(
                        () ->
                                assembly.runningDriver()
                                        .orElseGet(
                                                () ->
                                                        EmbeddedDriver.start(
                                                                assembly.driverSettings())),
                        assembly::openDataPlane,
                        assembly::resources)
                .run(this::supervisor, onInterrupt);
    }

    @SuppressWarnings("try") // the processes end before the system that hears of their ends
    private RunOutcome runInStageProcesses() {
        assembly.writeForStageProcesses();
        Path keyFolder = assembly.options().directory().resolve(RunAssembly.KEY_FOLDER);
        NodeFiles key = LocalCertificate.fresh(keyFolder);
        var lastResort = new Thread(() -> LocalCertificate.remove(keyFolder), "key-clean-up");
        Runtime.getRuntime().addShutdownHook(lastResort);
        var outcome = new CompletableFuture<RunOutcome>();
        RunBeginning beginning = EarlierStarts.in(assembly.options().directory()).next();
        try (var processes = new LocalProcesses(assembly);
                var journal =
                        JournalFile.open(
                                assembly.options().directory().resolve(JournalFile.NAME))) {
            var listeners = new ListenerFanOut(List.of(listener, processes.sparesLater()));
            var services =
                    new SupervisorServices(
                            assembly.checkpoints(),
                            assembly.recoveryPolicy(),
                            journal,
                            processes,
                            LinuxVitals.ofThisHost(),
                            assembly.reaction(),
                            assembly.degradedPlans());
            ActorSystem<Command> system =
                    ActorSystems.remote(
                            PipelineSupervisor.create(
                                    assembly.plan(), listeners, services, beginning, outcome),
                            key);
            try {
                processes.begin(system, ActorSystems.address(system));
                return SupervisorSystem.await(system, outcome, onInterrupt);
            } finally {
                processes.close();
                SupervisorSystem.terminate(system);
            }
        } finally {
            LocalCertificate.remove(keyFolder);
            forget(lastResort);
        }
    }

    private static void forget(Thread lastResort) {
        try {
            Runtime.getRuntime().removeShutdownHook(lastResort);
        } catch (IllegalStateException e) {
            LOG.debug("closed while the process ends", e);
        }
    }

    private Behavior<Command> supervisor(CompletableFuture<RunOutcome> outcome) {
        var services =
                new SupervisorServices(
                        assembly.checkpoints(),
                        ConfiguredRecovery.inOneProcess(assembly.config().recovery()),
                        assembly.config().device().swap().isPresent()
                                ? CommittedStep.journal(
                                        new RunDirectory(assembly.options().directory())
                                                .committedStep())
                                : RunJournal.NONE,
                        ProcessSupply.NONE,
                        LinuxVitals.ofThisHost(),
                        assembly.reaction(),
                        assembly.degradedPlans());
        return PipelineSupervisor.create(assembly.plan(), listener, services, outcome);
    }
}
