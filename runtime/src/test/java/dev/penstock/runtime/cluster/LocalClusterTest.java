package dev.penstock.runtime.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.launch.LinuxVitals;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

class LocalClusterTest {
    /** It would not notice that its input ends, and the others' patience is not for it. */
    @Test
    @Timeout(60)
    @EnabledOnOs(OS.LINUX)
    void aSuspendedNodeIsNotWaitedFor() throws Exception {
        Process suspended = new ProcessBuilder("cat").start();
        Process polite = new ProcessBuilder("cat").start();
        try {
            String pid = Long.toString(suspended.pid());
            assertThat(new ProcessBuilder("kill", "-STOP", pid).start().waitFor()).isZero();
            await().until(() -> LinuxVitals.ofThisHost().isSuspended(suspended.pid()));

            LocalCluster.end(List.of(suspended, polite), Duration.ofHours(1));

            assertThat(suspended.exitValue()).isEqualTo(137);
            assertThat(polite.exitValue()).isZero();
        } finally {
            suspended.destroyForcibly();
            polite.destroyForcibly();
        }
    }
}
