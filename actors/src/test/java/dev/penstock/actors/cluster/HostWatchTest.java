package dev.penstock.actors.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class HostWatchTest {
    @Test
    void aClosedConnectionNamesItsHolder() throws Exception {
        BlockingQueue<String> cut = new LinkedBlockingQueue<>();
        try (HostWatch lifeline = HostWatch.open(cut::add);
                HostWatch.Line _ = HostWatch.hold(lifeline.address(), "stays")) {
            HostWatch.hold(lifeline.address(), "goes").close();

            assertThat(cut.poll(10, TimeUnit.SECONDS)).isEqualTo("goes");
            assertThat(cut).isEmpty();
        }
    }

    @Test
    void nothingIsLeftBehind() throws IOException {
        HostWatch lifeline = HostWatch.open(_ -> {});

        lifeline.close();

        assertThat(Files.exists(Path.of(lifeline.address()))).isFalse();
        HostWatch.hold(lifeline.address(), "late").close();
    }
}
