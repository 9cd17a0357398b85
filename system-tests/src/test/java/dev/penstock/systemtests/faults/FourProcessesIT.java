package dev.penstock.systemtests.faults;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.launch.RanksInOneJvm;
import dev.penstock.systemtests.support.CalmRuns;
import dev.penstock.systemtests.support.TinyFamily;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
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
    private static final Pattern SENT_AGAIN =
            Pattern.compile("(\\d+) times what had been lost was sent again");

    @TempDir Path folder;

    private static final String[] FOUR_STAGES = {"model.layers=4", "pipeline.stages=4"};
    private static final int SEED = 17;

    /** What a media driver reads when it starts. */
    private static final Map<String, String> LOSS =
            Map.of(
                    "aeron.SendChannelEndpoint.supplier",
                    "io.aeron.driver.ext.DebugSendChannelEndpointSupplier",
                    "aeron.ReceiveChannelEndpoint.supplier",
                    "io.aeron.driver.ext.DebugReceiveChannelEndpointSupplier",
                    "aeron.debug.send.data.loss.rate",
                    "0.05",
                    "aeron.debug.send.data.loss.seed",
                    "" + SEED,
                    "aeron.debug.receive.control.loss.rate",
                    "0.05",
                    "aeron.debug.receive.control.loss.seed",
                    "" + (SEED + 1));

    /** Those of the device that users have, with a model as they are built today. */
    @Test
    void fourProcessesGiveTheSameBitsOverSharedMemory() {
        String llama = "model={" + TinyFamily.of("llama") + "}";

        Trained ended = processes().set(llama).set("pipeline.processes=per-stage").complete();

        expectTheSame(ended, FOUR_STAGES[0], FOUR_STAGES[1], llama);
    }

    /** The processes of this one and of the next one live in the test's JVM. */
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
        LOG.warn("5 % loss by seed {}", SEED);
        LOSS.forEach(System::setProperty);
        Trained ended;
        try {
            ended =
                    RanksInOneJvm.complete(
                            processes()
                                    .set(
                                            "data-plane={transport=udp, udp-mtu=1408,"
                                                    + " udp-term-length=256 KiB}"));
        } finally {
            LOSS.keySet().forEach(System::clearProperty);
        }

        expectTheSame(ended, FOUR_STAGES);
        assertThat(sentAgain(ended)).isPositive();
    }

    private Training processes() {
        return Training.onText(folder).set(FOUR_STAGES);
    }

    private static void expectTheSame(Trained ended, String... settings) {
        CalmRuns.CalmRun calm = CalmRuns.onText(settings);
        assertThat(ended.lossBits()).isEqualTo(calm.lossBits());
        assertThat(ended.validationBits()).isEqualTo(calm.validationBits());
    }

    private static int sentAgain(Trained ended) throws Exception {
        String log = Files.readString(ended.directory().resolve("log.txt"));
        Matcher said = SENT_AGAIN.matcher(log);
        assertThat(said.find()).as(log).isTrue();
        return Integer.parseInt(said.group(1));
    }
}
