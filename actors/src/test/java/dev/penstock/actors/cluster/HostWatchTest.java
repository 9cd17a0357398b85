package dev.penstock.actors.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HostWatchTest {
    @TempDir Path folder;

    @Test
    void aClosedConnectionNamesItsHolder() throws Exception {
        BlockingQueue<String> cut = new LinkedBlockingQueue<>();
        try (HostWatch lifeline = HostWatch.open(cut::add);
                HostWatch.Line _ = hold(lifeline, "stays")) {
            hold(lifeline, "goes").close();

            assertThat(cut.poll(10, TimeUnit.SECONDS)).isEqualTo("goes");
            assertThat(cut).isEmpty();
        }
    }

    /** A seed that stood still must not take those for dead who found another one meanwhile. */
    @Test
    void whoeverMovesToAnotherSeedIsNotDead() throws Exception {
        BlockingQueue<String> cut = new LinkedBlockingQueue<>();
        try (HostWatch lifeline = HostWatch.open(cut::add)) {
            hold(lifeline, "moves").move();
            hold(lifeline, "goes").close();

            assertThat(cut.poll(10, TimeUnit.SECONDS)).isEqualTo("goes");
            assertThat(cut.poll(300, TimeUnit.MILLISECONDS)).isNull();
        }
    }

    @Test
    void nothingIsLeftBehind() throws IOException {
        HostWatch lifeline = HostWatch.open(_ -> {});

        lifeline.close();

        assertThat(Files.exists(Path.of(lifeline.address()))).isFalse();
        assertThat(HostWatch.hold(lifeline.address(), "late")).isEmpty();
    }

    @Test
    void aConnectionThatCannotBeTakenDoesNotEndTheWatch() throws Exception {
        BlockingQueue<String> cut = new LinkedBlockingQueue<>();
        var refusals = new AtomicInteger(2);
        try (HostWatch lifeline =
                HostWatch.open(
                        List.of(folder),
                        server ->
                                () -> {
                                    if (refusals.getAndDecrement() > 0) {
                                        throw new IOException("too many open files");
                                    }
                                    return server.accept();
                                },
                        cut::add)) {
            hold(lifeline, "late").close();

            assertThat(cut.poll(10, TimeUnit.SECONDS)).isEqualTo("late");
        }
    }

    @Test
    void aFolderWhosePathIsTooLongIsPassedOver() throws Exception {
        BlockingQueue<String> cut = new LinkedBlockingQueue<>();
        Path deep = Files.createDirectories(folder.resolve("d".repeat(120)));
        try (HostWatch lifeline =
                HostWatch.open(List.of(deep, folder), server -> server::accept, cut::add)) {
            assertThat(Path.of(lifeline.address())).hasParent(folder);
            hold(lifeline, "goes").close();

            assertThat(cut.poll(10, TimeUnit.SECONDS)).isEqualTo("goes");
        }
    }

    private static HostWatch.Line hold(HostWatch lifeline, String name) {
        return HostWatch.hold(lifeline.address(), name).orElseThrow();
    }
}
