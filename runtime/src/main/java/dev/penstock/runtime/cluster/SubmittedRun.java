package dev.penstock.runtime.cluster;

import dev.penstock.actors.cluster.ClusterRun;
import dev.penstock.actors.journal.JournalFile;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.actors.supervisor.SupervisorServices;
import dev.penstock.runtime.inference.TrainingTasks;
import dev.penstock.runtime.launch.ConfiguredRecovery;
import dev.penstock.runtime.launch.EarlierStarts;
import dev.penstock.runtime.launch.LinuxVitals;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunRecord;
import dev.penstock.runtime.metrics.ListenerFanOut;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.RunLock;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A run as the seed has it: its directory, and everything it is checked and recorded with. */
final class SubmittedRun implements ClusterRun {
    private static final Logger LOG = LoggerFactory.getLogger(SubmittedRun.class);

    private final RunDirectory directory;
    private final RunAssembly assembly;
    private final RunLock lock;
    private final RunRecord record;
    private final RunBeginning beginning;
    private @Nullable JournalFile journal;

    /**
     * @param lock of the directory; closed with this run, as is the assembly
     */
    SubmittedRun(RunDirectory directory, RunAssembly assembly, RunLock lock) {
        this.directory = directory;
        this.assembly = assembly;
        this.lock = lock;
        this.beginning = EarlierStarts.in(directory.path()).next();
        this.record = new RunRecord(assembly, directory, true);
    }

    /** A run that a seed kept which is gone, as its journal says. */
    SubmittedRun(RunDirectory directory, RunAssembly assembly, RunLock lock, JournalledRun known) {
        this.directory = directory;
        this.assembly = assembly.following(known.revision());
        this.lock = lock;
        this.beginning = new RunBeginning.TakenUp(known, true);
        this.record = new RunRecord(this.assembly, directory, true, known.completed());
    }

    @Override
    public String name() {
        return String.valueOf(directory.path().getFileName());
    }

    @Override
    public Path directory() {
        return directory.path();
    }

    @Override
    public RunPlan plan() {
        return assembly.plan();
    }

    @Override
    public List<Long> plannedBytes(List<Integer> homes) {
        return assembly.plannedBytes(assembly.mayCrossHosts(), homes);
    }

    @Override
    public Optional<Integer> ranksPerNode() {
        return assembly.config().pipeline().ranksPerNode();
    }

    @Override
    public boolean spreads() {
        return assembly.config().recovery().rebalanceAfter().isPresent();
    }

    @Override
    public List<String> banner() {
        return Stream.concat(
                        record.banner().stream(),
                        ConfiguredRecovery.mirrorNoteOfRanks(assembly.config()).stream()
                                .map(note -> "note: " + note))
                .toList();
    }

    @Override
    public StepTokens tokens() {
        return record.tokens();
    }

    @Override
    public RunListener listener(RunListener next) {
        return record.listener(
                new ListenerFanOut(List.of(next, new TrainingTasks(assembly, record::onTask))));
    }

    @Override
    public boolean crossesHosts() {
        return assembly.mayCrossHosts();
    }

    @Override
    public RunBeginning beginning() {
        return beginning;
    }

    @Override
    public SupervisorServices services(ProcessSupply processes) {
        JournalFile opened = JournalFile.open(journalFile());
        journal = opened;
        return new SupervisorServices(
                assembly.checkpoints(),
                assembly.recoveryPolicy(),
                opened,
                processes,
                LinuxVitals.ofThisHost(),
                assembly.reaction(),
                assembly.degradedPlans());
    }

    @Override
    public String finish(RunOutcome outcome, Duration took) {
        JournalFile own = journal;
        boolean another = !lock.isMine() || (own != null && own.isTaken());
        if (another) { // the run's files, and its ending, are that one's
            return "another supervisor goes on with " + name();
        }
        writeEnding(outcome);
        return record.report(outcome, took, Optional.empty());
    }

    /**
     * Of a run that its supervisor did not end: one that died, could not begin or was not there.
     */
    private void writeEnding(RunOutcome outcome) {
        if (EarlierStarts.in(directory.path()).unfinished().isEmpty()) {
            return;
        }
        try (JournalFile written = JournalFile.open(journalFile())) {
            written.append(
                    switch (outcome) {
                        case RunOutcome.Completed(long last) -> new JournalRecord.Ended(last);
                        case RunOutcome.Interrupted(long last) -> new JournalRecord.Ended(last);
                        case RunOutcome.Failed(long last, String reason) ->
                                new JournalRecord.Failed(last, reason);
                    });
        } catch (UncheckedIOException e) {
            LOG.warn("run {} may be taken up again, though it has ended", name(), e);
        }
    }

    private Path journalFile() {
        return directory.path().resolve(JournalFile.NAME);
    }

    @Override
    public void close() {
        try {
            record.close();
            if (journal != null) {
                journal.close();
            }
            assembly.close();
        } finally {
            lock.close(); // whatever failed: this process could never open the run again
        }
    }
}
