package dev.penstock.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class RunLockTest {
    private static final RunLock.Timing QUICK =
            new RunLock.Timing(Duration.ofMillis(20), Duration.ofMillis(400));

    /** Whoever waited for a lease like this to stand still would not be done in time. */
    private static final RunLock.Timing LONG =
            new RunLock.Timing(Duration.ofMillis(20), Duration.ofMinutes(3));

    @TempDir private Path folder;
    private RunDirectory directory;

    @BeforeEach
    void makeDirectory() {
        directory = RunDirectory.createUnder(folder, "run");
    }

    private Path lease() {
        return directory.path().resolve("run.lease");
    }

    private static LeaseHolder onAnotherHost(String id) {
        return new LeaseHolder(id, "another-boot/pid:[1]", "far-away", 1, 7);
    }

    /** The system drops a process's lock of a file when any of its channels to that file closes. */
    @Test
    void aRefusedSecondAttemptDoesNotGiveTheDirectoryToOtherProcesses() throws Exception {
        try (RunLock _ = directory.lock()) {
            assertThatThrownBy(directory::lock).hasMessageContaining("is in use by another run");
            Files.delete(lease()); // what is asked here is the system's lock

            try (LockedElsewhere other = LockedElsewhere.start(directory.path())) {
                assertThat(other.answer()).contains("is in use by another run");
            }
        }
        try (LockedElsewhere other = LockedElsewhere.start(directory.path())) {
            assertThat(other.answer()).isEqualTo("taken");
        }
    }

    @Test
    void aKilledProcessLeavesADirectoryThatTheNextTakesAtOnce() throws Exception {
        try (LockedElsewhere other = LockedElsewhere.start(directory.path())) {
            assertThat(other.answer()).isEqualTo("taken");
            assertThatThrownBy(directory::lock).hasMessageContaining("(process ");
            other.kill();
        }
        assertThat(lease()).exists();

        RunLock.take(directory.path(), LeaseHolder.thisProcess(), LONG).orElseThrow().close();

        assertThat(lease()).doesNotExist();
    }

    /** As where a file system has no locks, or where something dropped one. */
    @Test
    void aProcessOfThisHostThatLivesKeepsItsDirectoryWithoutTheSystemsLock() throws Exception {
        Files.writeString(lease(), LeaseHolder.thisProcess().text(3));

        assertThatThrownBy(directory::lock).hasMessageContaining("in use");
    }

    @Test
    void aNumberThatAnotherProcessHasByNowIsNotTakenForTheHolder() throws Exception {
        LeaseHolder me = LeaseHolder.thisProcess();
        var former = new LeaseHolder("former", me.hostId(), me.host(), me.pid(), me.started() - 1);
        Files.writeString(lease(), former.text(3));

        directory.lock().close();
    }

    @Test
    void aHolderOnAnotherHostThatRenewsItsLeaseKeepsIt() throws Exception {
        LeaseHolder holder = onAnotherHost("holder");
        Files.writeString(lease(), holder.text(0));
        var over = new CountDownLatch(1);
        Thread renewing =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    for (long beat = 1; !isOver(over); beat++) {
                                        write(holder.text(beat));
                                    }
                                });
        try {
            assertThat(RunLock.take(directory.path(), LeaseHolder.thisProcess(), LONG)).isEmpty();
        } finally {
            over.countDown();
            renewing.join();
        }
    }

    private void write(String text) {
        try {
            Files.writeString(lease(), text, StandardOpenOption.WRITE);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Waits for it between two beats. */
    private static boolean isOver(CountDownLatch latch) {
        try {
            return latch.await(50, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** As after the loss of a host whose locks a file server keeps. */
    @Test
    void aLeaseThatStandsStillIsTakenOverAlthoughTheSystemsLockRemains() throws Exception {
        Files.writeString(lease(), onAnotherHost("dead").text(41));
        try (LockedElsewhere stillLocked = holdingTheSystemsLockOnly()) {
            assertThat(stillLocked.answer()).isEqualTo("taken");
            Files.writeString(lease(), onAnotherHost("dead").text(41));

            Optional<RunLock> taken =
                    RunLock.take(directory.path(), LeaseHolder.thisProcess(), QUICK);

            assertThat(taken).isPresent();
            assertThat(taken.get().isMine()).isTrue();
            taken.get().close();
        }
    }

    private LockedElsewhere holdingTheSystemsLockOnly() throws IOException {
        Files.delete(lease());
        return LockedElsewhere.start(directory.path());
    }

    @Test
    void whoeverWasTakenForDeadIsToldOnceItMovesAgain() throws Exception {
        var told = new CompletableFuture<Boolean>();
        try (RunLock lock =
                RunLock.take(directory.path(), onAnotherHost("stopped"), QUICK).orElseThrow()) {
            lock.onLost(() -> told.complete(true));
            assertThat(lock.isMine()).isTrue();

            Files.writeString(lease(), onAnotherHost("successor").text(0));

            await().until(told::isDone);
            assertThat(lock.isMine()).isFalse();
        }
        assertThat(lease()).as("the successor's lease").content().contains("successor");
    }
}
