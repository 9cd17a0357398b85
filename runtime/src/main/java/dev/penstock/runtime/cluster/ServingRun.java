package dev.penstock.runtime.cluster;

import dev.penstock.actors.cluster.ClusterRun;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalFile;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.spi.PlanReaction;
import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.actors.supervisor.SupervisorServices;
import dev.penstock.runtime.inference.ApartPipeline;
import dev.penstock.runtime.launch.EarlierStarts;
import dev.penstock.runtime.launch.LinuxVitals;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.RunLock;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A model that is served, as the seed has it: a run that never trains. Its directory is there for
 * as long as it is.
 */
final class ServingRun implements ClusterRun {
    private static final Logger LOG = LoggerFactory.getLogger(ServingRun.class);

    private final RunDirectory directory;
    private final ServingParts parts;
    private final RunLock lock;
    private final RunBeginning beginning;
    private @Nullable JournalFile journal;
    private boolean isOver;

    /**
     * @param lock of the directory; closed with this run, as are the parts
     * @param known what the journal says of one that a seed kept which is gone
     */
    ServingRun(
            RunDirectory directory,
            ServingParts parts,
            RunLock lock,
            Optional<JournalledRun> known) {
        this.directory = directory;
        this.parts = parts;
        this.lock = lock;
        beginning =
                known.<RunBeginning>map(run -> new RunBeginning.TakenUp(run, true))
                        .orElse(RunBeginning.FIRST);
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
        return parts.plan();
    }

    @Override
    public List<Long> plannedBytes(List<Integer> homes) {
        return parts.pipeline().plannedBytes();
    }

    @Override
    public Optional<Integer> ranksPerNode() {
        return parts.order().ranksPerNode();
    }

    @Override
    public List<String> banner() {
        ServeOrder order = parts.order();
        return List.of(
                "model %s, weights in %s, on %d ranks of two stages each"
                        .formatted(order.model(), order.held().word(), order.ranks()));
    }

    @Override
    public StepTokens tokens() {
        return StepTokens.always(1);
    }

    @Override
    public RunListener listener(RunListener next) {
        return next;
    }

    @Override
    public boolean crossesHosts() {
        return parts.dataPlane().mayCrossHosts();
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
                ApartPipeline.NO_CHECKPOINTS,
                RecoveryPolicy.DEFAULT,
                opened,
                processes,
                LinuxVitals.ofThisHost(),
                PlanReaction.NONE);
    }

    @Override
    public String finish(RunOutcome outcome, Duration took) {
        JournalFile own = journal;
        if (!lock.isMine() || (own != null && own.isTaken())) {
            return "another supervisor goes on with " + name();
        }
        isOver = true;
        writeEnding(outcome);
        return outcome instanceof RunOutcome.Failed(_, String reason)
                ? "%s is served no more: %s".formatted(parts.order().name(), reason)
                : "%s was served for %d s".formatted(parts.order().name(), took.toSeconds());
    }

    /** Of one that its supervisor did not end. */
    private void writeEnding(RunOutcome outcome) {
        if (EarlierStarts.in(directory.path()).unfinished().isEmpty()) {
            return;
        }
        try (JournalFile written = JournalFile.open(journalFile())) {
            written.append(
                    outcome instanceof RunOutcome.Failed(_, String reason)
                            ? new JournalRecord.Failed(0, reason)
                            : new JournalRecord.Ended(0));
        } catch (UncheckedIOException e) {
            LOG.warn("{} may be taken up again, though it has ended", name(), e);
        }
    }

    private Path journalFile() {
        return directory.path().resolve(JournalFile.NAME);
    }

    @Override
    public void close() {
        try {
            if (journal != null) {
                journal.close();
            }
            parts.close();
        } finally {
            lock.close(); // whatever failed: this process could never open it again
        }
        if (isOver) {
            remove(directory.path());
        }
    }

    /** Removes a directory in which nothing is that anybody wants to keep. */
    static void remove(Path directory) {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(file);
            }
        } catch (IOException | UncheckedIOException e) {
            LOG.warn("{} stays, though nobody needs it", directory, e);
        }
    }
}
