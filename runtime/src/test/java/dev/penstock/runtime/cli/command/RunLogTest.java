package dev.penstock.runtime.cli.command;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.MDC;

class RunLogTest {
    private static final Logger LOG = LoggerFactory.getLogger(RunLogTest.class);

    @TempDir Path folder;

    @Test
    void holdsWhatWasLoggedWhileItWasOpenWithRankAndStage() {
        Path file = folder.resolve("penstock.log");

        try (RunLog log = RunLog.to(file);
                MDC.MDCCloseable rank = MDC.putCloseable("rank", "1");
                MDC.MDCCloseable stage = MDC.putCloseable("stage", "3")) {
            assertThat(log).isNotNull();
            assertThat(rank).isNotSameAs(stage);
            LOG.atInfo().addKeyValue("step", 7).log("started");
        }
        LOG.info("too late");

        assertThat(file)
                .content()
                .contains("INFO", "[rank=1 stage=3] started step=\"7\"")
                .doesNotContain("too late");
    }
}
