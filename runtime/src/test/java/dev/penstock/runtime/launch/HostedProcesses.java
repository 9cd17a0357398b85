package dev.penstock.runtime.launch;

import akka.actor.typed.ActorSystem;
import dev.penstock.actors.dataplane.aeron.EmbeddedDriver;
import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.ProcessVitals;
import dev.penstock.actors.spi.VitalSigns;
import dev.penstock.actors.supervisor.PipelineSupervisor.Command;
import dev.penstock.actors.supervisor.PipelineSupervisor.ProcessDied;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;

/**
 * All processes of a run, in this JVM: what {@link LocalProcesses} and {@link StageProcesses} do
 * with real ones, and what the system tells of them.
 */
final class HostedProcesses implements ProcessSupply, ProcessVitals, AutoCloseable {
    /** Linux gives no process a number of so many digits. */
    private static final long FIRST_PID = 10_000_000;

    /** A parent hears of its child's death a little later. */
    private static final Duration NOTICE = Duration.ofMillis(5);

    private final RunAssembly assembly;
    private final ExecutorService starters =
            Executors.newThreadPerTaskExecutor(
                    Thread.ofPlatform().name("hosted-start-", 0).factory());
    private final List<HostedProcess> processes = new ArrayList<>();
    private final Map<Integer, HostedProcess> latest = new HashMap<>();

    /** Processes that ranks were placed in. */
    private final Set<Long> taken = new HashSet<>();

    private @Nullable EmbeddedDriver driver;
    private @Nullable ActorSystem<Command> system;
    private boolean ending;

    HostedProcesses(RunAssembly assembly) {
        this.assembly = assembly;
    }

    /** Starts the driver, a process per rank and the spare ones. */
    synchronized void begin(ActorSystem<Command> supervisor) {
        system = supervisor;
        driver = EmbeddedDriver.start(assembly.driverSettings());
        for (int rank = 0; rank < assembly.plan().ranks(); rank++) {
            start(Optional.of(rank));
        }
        for (int spare = 0; spare < assembly.config().recovery().spares(); spare++) {
            start(Optional.empty());
        }
    }

    @Override
    public synchronized void start(Optional<Integer> rank) {
        EmbeddedDriver joined = driver;
        ActorSystem<Command> told = system;
        if (ending || joined == null || told == null) {
            return;
        }
        if (rank.map(latest::get)
                .filter(HostedProcess::isAlive)
                .filter(process -> !taken.contains(process.pid()))
                .isPresent()) {
            return; // asked for in an earlier epoch, and on its way
        }
        var process = new HostedProcess(FIRST_PID + processes.size(), rank, this::onDeath);
        processes.add(process);
        rank.ifPresent(r -> latest.put(r, process));
        starters.execute(
                () -> process.start(assembly.options().directory(), joined.directory(), told));
    }

    @Override
    public synchronized boolean mayLive(long pid) {
        return processes.stream().anyMatch(process -> process.pid() == pid && process.isAlive());
    }

    @Override
    public synchronized void placed(int rank, String node, long pid) {
        taken.add(pid);
    }

    @Override
    public void restartLink(Set<String> gone) {
        throw new UnsupportedOperationException("the media driver of these processes never dies");
    }

    /** A process that lives here is as starved as this one is. */
    @Override
    public Optional<VitalSigns> of(long pid, Optional<String> host) {
        return mayLive(pid) ? ofThisProcess() : Optional.empty();
    }

    @Override
    public Optional<VitalSigns> ofThisProcess() {
        return LinuxVitals.ofThisHost().ofThisProcess();
    }

    private synchronized void onDeath(HostedProcess process, String how) {
        ActorSystem<Command> told = system;
        if (!ending && told != null) {
            var _ =
                    told.scheduler()
                            .scheduleOnce(
                                    NOTICE, () -> report(process, how), told.executionContext());
        }
    }

    private synchronized void report(HostedProcess process, String how) {
        boolean superseded =
                process.rank().filter(rank -> !process.equals(latest.get(rank))).isPresent();
        if (!ending && !superseded && system != null) {
            system.tell(new ProcessDied(process.pid(), process.rank(), how));
        }
    }

    /** Nothing dies and nothing starts any more; dead threads may end. */
    synchronized void end() {
        ending = true;
        processes.forEach(HostedProcess::bury);
    }

    /** Closes everything; call it when the actors have ended. */
    @Override
    public void close() {
        end();
        starters.close();
        List<HostedProcess> started;
        synchronized (this) {
            started = List.copyOf(processes);
        }
        started.forEach(HostedProcess::close);
        if (driver != null) {
            driver.close();
        }
    }
}
