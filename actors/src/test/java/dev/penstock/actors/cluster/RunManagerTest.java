package dev.penstock.actors.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import akka.actor.testkit.typed.javadsl.ActorTestKit;
import akka.actor.typed.ActorRef;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.journal.RunJournal;
import dev.penstock.actors.spi.PlanReaction;
import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.ProcessVitals;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.actors.supervisor.SupervisorServices;
import dev.penstock.actors.supervisor.TestPlans;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A run whose supervisor cannot begin, or dies: it ends, and says why. */
class RunManagerTest {
    private final ActorTestKit kit = ActorTestKit.create();
    private final BlockingQueue<RunManager.Said> said = new LinkedBlockingQueue<>();

    @AfterEach
    void shutDown() {
        kit.shutdownTestKit();
    }

    /** As after an upgrade between two starts of the only seed. */
    @Test
    void aRunOfAnotherPlanEndsAsFailed() throws Exception {
        var began = new JournalRecord.Began("run", "the hash of another version", 2, 1, 0);
        List<JournalRecord> journal = List.of(began, new JournalRecord.Committed(1, 3, 1, 1, 1));
        JournalledRun known = JournalledRun.of(journal).orElseThrow();
        var run =
                new Supervised(RunJournal.NONE) {
                    @Override
                    public RunBeginning beginning() {
                        return new RunBeginning.TakenUp(known, true);
                    }
                };

        RunOutcome.Failed failed = failureOf(run);

        assertThat(failed.step()).isEqualTo(3);
        assertThat(failed.reason())
                .contains("no supervisor can begin", "the hash of another version");
    }

    @Test
    void aSupervisorThatDiesWithoutAWordEndsTheRunAsFailed() throws Exception {
        RunOutcome.Failed failed =
                failureOf(
                        new Supervised(
                                _ -> {
                                    throw new AssertionError("no exception that anybody catches");
                                }));

        assertThat(failed.reason()).contains("its supervisor died");
    }

    @Test
    void aRunWhoseJournalCannotBeOpenedEndsAsFailed() throws Exception {
        var run =
                new Supervised(RunJournal.NONE) {
                    @Override
                    public SupervisorServices services(ProcessSupply processes) {
                        throw new IllegalStateException("the disk is full");
                    }
                };

        assertThat(failureOf(run).reason()).contains("cannot begin: the disk is full");
    }

    /** Its ranks wait for a supervisor longer than some disks stay full. */
    @Test
    void aSupervisorThatTakesARunUpWaitsForRoomForItsJournal() throws Exception {
        var run = new OnAFullDisk(1);
        ActorRef<RunManager.Command> manager = kit.spawn(RunManager.create(run, said::add));
        manager.tell(new RunManager.Supervise());
        manager.tell(new RunManager.TellSupervisor(new PipelineSupervisor.Nowhere(Set.of(0, 1))));

        await("an answer to what it was told meanwhile")
                .until(() -> said.contains(new RunManager.StartRank(0)));
        assertThat(run.tries).hasValue(2);
    }

    @Test
    void aRunThatWaitsForRoomForItsJournalCanBeStopped() throws Exception {
        ActorRef<RunManager.Command> manager =
                kit.spawn(RunManager.create(new OnAFullDisk(100), said::add));
        manager.tell(new RunManager.Supervise());
        manager.tell(new RunManager.TellSupervisor(new PipelineSupervisor.Interrupt()));

        assertThat(said.poll(10, TimeUnit.SECONDS))
                .isEqualTo(new RunManager.Ended(new RunOutcome.Interrupted(ImaginedRun.COMPLETED)));
    }

    /** A report that cannot be written must not keep the run's directory locked. */
    @Test
    void aRunIsClosedWhateverBecomesOfItsReport() throws Exception {
        var closed = new CompletableFuture<Void>();
        var run =
                new Supervised(RunJournal.NONE) {
                    @Override
                    public String finish(RunOutcome outcome, Duration took) {
                        throw new IllegalStateException("no room for a report");
                    }

                    @Override
                    public void close() {
                        closed.complete(null);
                    }
                };
        kit.spawn(RunManager.create(run, said::add))
                .tell(new RunManager.End(new RunOutcome.Completed(9), Duration.ZERO));

        closed.get(10, TimeUnit.SECONDS);
    }

    private RunOutcome.Failed failureOf(ClusterRun run) throws InterruptedException {
        kit.spawn(RunManager.create(run, said::add)).tell(new RunManager.Supervise());
        var ended = (RunManager.Ended) said.poll(10, TimeUnit.SECONDS);
        assertThat(ended).as("news within ten seconds").isNotNull();
        return (RunOutcome.Failed) ended.outcome();
    }

    private static class Supervised extends ImaginedRun {
        private final RunJournal journal;

        Supervised(RunJournal journal) {
            super("run-1", 2);
            this.journal = journal;
        }

        @Override
        public SupervisorServices services(ProcessSupply processes) {
            return new SupervisorServices(
                    TestPlans.unusedCheckpoints(),
                    RecoveryPolicy.DEFAULT,
                    journal,
                    processes,
                    ProcessVitals.NONE,
                    PlanReaction.NONE);
        }
    }

    /** A run of another seed, whose journal has room after so many tries. */
    private static final class OnAFullDisk extends ImaginedRun {
        private final AtomicInteger tries = new AtomicInteger();
        private final int full;

        OnAFullDisk(int full) {
            super("run-1", 2, Map.of());
            this.full = full;
        }

        @Override
        public SupervisorServices services(ProcessSupply processes) {
            if (tries.incrementAndGet() <= full) {
                throw new UncheckedIOException(
                        "cannot write the journal", new IOException("No space left on device"));
            }
            return new SupervisorServices(
                    TestPlans.unusedCheckpoints(),
                    RecoveryPolicy.DEFAULT,
                    RunJournal.NONE,
                    processes,
                    ProcessVitals.NONE,
                    PlanReaction.NONE);
        }
    }
}
