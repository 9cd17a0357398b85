package dev.penstock.runtime.launch;

import akka.actor.typed.ActorRef;
import dev.penstock.actors.dataplane.DataPlaneException;
import dev.penstock.actors.dataplane.aeron.MediaDriverHandle;
import dev.penstock.actors.dataplane.aeron.MediaDriverProcess;
import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.actors.supervisor.PipelineSupervisor.Command;
import dev.penstock.actors.supervisor.PipelineSupervisor.LinkDied;
import dev.penstock.actors.supervisor.PipelineSupervisor.LinkRestarted;
import dev.penstock.actors.supervisor.PipelineSupervisor.ProcessDied;
import dev.penstock.runtime.config.run.RecoverySection;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * All processes of a run with one process per stage: the media driver and the stages' own. Starts
 * what dies again, when the supervisor asks.
 */
final class LocalProcesses implements ProcessSupply, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(LocalProcesses.class);
    private static final long NO_PROCESS = -1;

    /** Until then the run's own processes need the processors, to start and to compile. */
    private static final int STEPS_BEFORE_SPARES = 10;

    private final RunAssembly assembly;
    private final CompletableFuture<ActorRef<Command>> supervisor = new CompletableFuture<>();
    private final CompletableFuture<String> address = new CompletableFuture<>();

    /** Processes that ranks were placed in. */
    private final Set<Long> taken = ConcurrentHashMap.newKeySet();

    /** What was asked for while there was no driver. */
    private final List<Optional<Integer>> later = new ArrayList<>();

    private final RunDriver driver = new RunDriver(this::startDriver);
    private volatile @Nullable StageProcesses stages;
    private boolean closed;

    LocalProcesses(RunAssembly assembly) {
        this.assembly = assembly;
    }

    /**
     * Starts the driver and a process per rank.
     *
     * @param address of the supervisor
     */
    synchronized void begin(ActorRef<Command> told, String address) {
        supervisor.complete(told);
        this.address.complete(address);
        driver.begin(assembly.runningDriver().orElseGet(this::startDriver));
        stages =
                new StageProcesses(
                        assembly.options(),
                        (pid, rank, how) -> told.tell(new ProcessDied(pid, rank, how)),
                        taken::contains);
        for (int rank = 0; rank < assembly.plan().ranks(); rank++) {
            start(Optional.of(rank));
        }
    }

    /** Watches the run, and starts the spare processes when it has gone some steps. */
    RunListener sparesLater() {
        return new RunListener() {
            private int steps;

            @Override
            public void onStep(StepReport report) {
                steps++;
                if (steps == STEPS_BEFORE_SPARES) {
                    startSpares();
                }
            }
        };
    }

    private void startSpares() {
        RecoverySection recovery = assembly.config().recovery();
        for (int spare = 0; recovery.enabled() && spare < recovery.spares(); spare++) {
            start(Optional.empty());
        }
    }

    private MediaDriverHandle startDriver() {
        return MediaDriverProcess.start(
                assembly.driverSettings(),
                assembly.plan().timeouts().start(),
                how -> supervisor.join().tell(new LinkDied(how)));
    }

    @Override
    public synchronized void start(Optional<Integer> rank) {
        if (closed || stages == null) {
            return;
        }
        Optional<Path> directory = driver.directory();
        if (directory.isEmpty()) {
            later.add(rank);
            return;
        }
        if (rank.flatMap(stages::living).filter(pid -> !taken.contains(pid)).isPresent()) {
            return; // asked for in an earlier epoch, and on its way
        }
        try {
            stages.start(rank, directory.get(), address.join());
        } catch (UncheckedIOException e) {
            supervisor.join().tell(new ProcessDied(NO_PROCESS, rank, "" + e.getMessage()));
        }
    }

    @Override
    public boolean mayLive(long pid) {
        StageProcesses started = stages;
        return started != null && started.hasLiving(pid);
    }

    @Override
    public void placed(int rank, String process, long pid) {
        taken.add(pid);
    }

    @Override
    public void restartLink(Set<String> gone) {
        driver.restart(this::onDriver, this::onNoDriver);
    }

    private void onDriver(Path directory) {
        startLater();
        supervisor.join().tell(new LinkRestarted("", directory.toString()));
    }

    private synchronized void startLater() {
        List<Optional<Integer>> asked = List.copyOf(later);
        later.clear();
        asked.forEach(this::start);
    }

    private void onNoDriver(DataPlaneException e) {
        LOG.error("no other media driver", e);
        supervisor.join().tell(new LinkDied("" + e.getMessage()));
    }

    @Override
    public void close() {
        synchronized (this) {
            closed = true;
            if (stages != null) {
                stages.close();
            }
        }
        driver.close();
    }
}
