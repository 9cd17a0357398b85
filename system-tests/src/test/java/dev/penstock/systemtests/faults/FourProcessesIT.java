package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.launch.RanksInOneJvm;
import dev.penstock.systemtests.support.CalmRuns;
import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.RunningTraining;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Four stages in separate processes compute the same as one process, whatever the network does. */
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class FourProcessesIT {
    private static final Logger LOG = LoggerFactory.getLogger(FourProcessesIT.class);
    private static final Duration LIMIT = Duration.ofSeconds(180);
    private static final Pattern SENT_AGAIN =
            Pattern.compile("(\\d+) times what had been lost was sent again");

    @TempDir Path folder;

    private static final String[] FOUR_STAGES = {"model.layers=4", "pipeline.stages=4"};
    private static final String[] FOUR_PLAIN_STAGES = {
        "model.layers=4", "pipeline.stages=4", ForkedCli.PLAIN_CODE
    };

    /** Those of the device that users have; the last one computes with plain code. */
    @Test
    void fourProcessesGiveTheSameBitsOverSharedMemory() {
        expectTheSame(processes().complete(), FOUR_STAGES);
    }

    /** The processes of this one live in the test's JVM; those of the next one are real. */
    @Test
    void fourProcessesGiveTheSameBitsOverUdp() throws Exception {
        Trained ended = RanksInOneJvm.complete(processes().set("data-plane.transport=udp"));

        expectTheSame(ended, FOUR_STAGES);

        assertThat(sentAgain(ended)).isZero();
    }

    /**
     * Each datagram, both data and control messages, is lost with a probability of one in twenty.
     */
    @Test
    void fourProcessesGiveTheSameBitsOverUdpThatLosesFivePercentOfItsDatagrams() throws Exception {
        long seed = 17;
        LOG.warn("5 % loss by seed {}", seed);
        String driver =
                "-Daeron.%sChannelEndpoint.supplier=io.aeron.driver.ext.Debug%1$sChannelEndpointSupplier";
        Training training =
                processes()
                        .set(FOUR_PLAIN_STAGES)
                        .set("data-plane={transport=udp, udp-mtu=1408, udp-term-length=256 KiB}");

        Trained ended =
                runWith(
                        training,
                        driver.formatted("Send"),
                        driver.formatted("Receive"),
                        "-Daeron.debug.send.data.loss.rate=0.05",
                        "-Daeron.debug.send.data.loss.seed=" + seed,
                        "-Daeron.debug.receive.control.loss.rate=0.05",
                        "-Daeron.debug.receive.control.loss.seed=" + (seed + 1));

        assertThat(ended.exitCode()).as(ended.out()).isEqualTo(ExitCode.OK);
        expectTheSame(ended, FOUR_PLAIN_STAGES);
        assertThat(sentAgain(ended)).isPositive();
    }

    private Training processes() {
        return Training.onText(folder).set(FOUR_STAGES).set("pipeline.processes=per-stage");
    }

    private static void expectTheSame(Trained ended, String... settings) {
        CalmRuns.CalmRun calm = CalmRuns.onText(settings);
        assertThat(ended.lossBits()).isEqualTo(calm.lossBits());
        assertThat(ended.validationBits()).isEqualTo(calm.validationBits());
    }

    private static Trained runWith(Training training, String... flags) throws Exception {
        try (RunningTraining run = RunningTraining.start(training, flags)) {
            return run.awaitEnd(LIMIT);
        }
    }

    private static int sentAgain(Trained ended) throws Exception {
        String log = Files.readString(ended.directory().resolve("log.txt"));
        Matcher said = SENT_AGAIN.matcher(log);
        assertThat(said.find()).as(log).isTrue();
        return Integer.parseInt(said.group(1));
    }
}
