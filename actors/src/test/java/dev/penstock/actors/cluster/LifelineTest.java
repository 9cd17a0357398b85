package dev.penstock.actors.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class LifelineTest {
    @Test
    void aClosedConnectionNamesItsHolder() throws Exception {
        BlockingQueue<String> cut = new LinkedBlockingQueue<>();
        try (Lifeline lifeline = Lifeline.open(cut::add);
                Lifeline.Line _ = Lifeline.hold(lifeline.address(), "stays")) {
            Lifeline.hold(lifeline.address(), "goes").close();

            assertThat(cut.poll(10, TimeUnit.SECONDS)).isEqualTo("goes");
            assertThat(cut).isEmpty();
        }
    }

    @Test
    void nothingIsLeftBehind() throws IOException {
        Lifeline lifeline = Lifeline.open(_ -> {});

        lifeline.close();

        assertThat(Files.exists(Path.of(lifeline.address()))).isFalse();
        Lifeline.hold(lifeline.address(), "late").close();
    }
}
