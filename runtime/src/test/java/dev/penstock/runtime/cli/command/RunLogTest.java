package dev.penstock.runtime.cli.command;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.disk.SmallDisk;
import java.nio.file.Files;
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

    /** A line that a full disk took a part of must not run into the next. */
    @Test
    void whatAFullDiskCutsIsNotThereAndWhatFollowsBeginsALine() throws Exception {
        try (SmallDisk disk = SmallDisk.below(folder, "size=8k")) {
            Path file = disk.path().resolve("log.txt");
            Path ballast = Files.writeString(disk.path().resolve("ballast"), "x".repeat(4096));
            try (RunLog _ = RunLog.to(file)) {
                for (int event = 0; event < 100; event++) {
                    LOG.info("event {} of a hundred", event);
                }
                Files.delete(ballast);
                LOG.info("there is room again");
            }

            assertThat(Files.readAllLines(file))
                    .allMatch(
                            line ->
                                    line.endsWith("of a hundred ")
                                            || line.endsWith("there is room again ")
                                            || line.contains(" events are missing here"))
                    .anyMatch(line -> line.contains(" events are missing here"))
                    .anyMatch(line -> line.endsWith("there is room again "));
        }
    }
}
