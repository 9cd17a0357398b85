package dev.penstock.runtime.cli.train;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Trained;
import dev.penstock.runtime.cli.Training;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whole runs whose links are made slower than they are. */
class EmulatedLinksRunTest {
    /** 10 Mbit/s. */
    private static final double BYTES_PER_SECOND = 1.25e6;

    @TempDir Path folder;

    private Training slow(String name, String... settings) {
        return Training.onText(folder.resolve(name))
                .set("run.steps=3", "checkpoint.every=0", "evaluation.every=3")
                .set("device.reduction-block=4")
                .set(settings);
    }

    @Test
    void theBitsOfARunStayAndItsStepsTakeWhatItsLinksNeed() {
        Trained fast = slow("fast").complete();
        Trained slow =
                slow(
                                "slow",
                                "data-plane.emulate.bandwidth=10 Mbit/s",
                                "data-plane.emulate.latency=5 ms",
                                "data-plane.emulate.loss=1 %")
                        .complete();

        assertThat(slow.lossBits()).isEqualTo(fast.lossBits());
        assertThat(slow.validationBits()).isEqualTo(fast.validationBits());
        assertThat(slow.sentBytes()).isEqualTo(fast.sentBytes());
        assertThat(slow.out())
                .contains("emulated links: 10 Mbit/s, 5 ms, 1 % lost, between all ranks")
                .containsPattern("sent per step +rank 0 [^(]*\\(as predicted\\)")
                .containsPattern("peak memory +rank 0 (\\S+ \\S+) \\(planned \\1\\)");
        for (int step = 0; step < 3; step++) {
            assertThat(slow.stepSeconds().get(step)).isGreaterThan(needed(slow, step));
        }
        assertThat(simulatedSeconds(slow.out())).isGreaterThan(needed(slow, 2));
    }

    /** The last micro-batch's activations are there before its gradients leave. */
    private static double needed(Trained run, int step) {
        double there = run.sentBytes().get(step).get(0).get("activations").asDouble() / 4;
        double back = run.sentBytes().get(step).get(1).get("activation gradients").asDouble();
        return (there + back) / BYTES_PER_SECOND + 2 * 0.005;
    }

    private static double simulatedSeconds(String summary) {
        Matcher told = Pattern.compile("a simulated step takes (\\S+) (ms|s),").matcher(summary);
        assertThat(told.find()).as(summary).isTrue();
        return Double.parseDouble(told.group(1)) / (told.group(2).equals("ms") ? 1000 : 1);
    }

    @Test
    void whatRanksOfOneProcessSumTravelsOverEmulatedLinksAsWell() {
        List<String> layout = new ArrayList<>();
        layout.addAll(List.of("pipeline.stages=1", "parallel.data=2", "parallel.zero.stage=2"));
        Trained fast = slow("fast", layout.toArray(String[]::new)).complete();
        layout.add("data-plane.emulate.bandwidth=10 Mbit/s");
        Trained slow = slow("slow", layout.toArray(String[]::new)).complete();

        assertThat(slow.lossBits()).isEqualTo(fast.lossBits());
        for (int step = 0; step < 3; step++) {
            double bytes = 0;
            for (var use : slow.sentBytes().get(step).get(0)) {
                bytes += use.asDouble();
            }
            assertThat(bytes).isPositive();
            assertThat(slow.stepSeconds().get(step)).isGreaterThan(bytes / BYTES_PER_SECOND);
        }
    }

    @Test
    void aRankThatWaitsForAnEmulatedLinkIsNotStalled() {
        String[] impatient = {
            "run.steps=1",
            "evaluation.every=0",
            "batch.micro-batches=2",
            "timeouts.stall-report=1 s",
            "timeouts.stall=1 s",
            "data-plane.emulate.latency=1200 ms"
        };

        Trained pipeline = slow("pipeline", impatient).complete();
        Trained replicas =
                slow("replicas", impatient).set("pipeline.stages=1", "parallel.data=2").complete();

        assertThat(pipeline.stepSeconds().getFirst()).isGreaterThan(2.4);
        assertThat(replicas.stepSeconds().getFirst()).isGreaterThan(1.2);
        for (Trained each : List.of(pipeline, replicas)) {
            assertThat(each.recoveries()).isEmpty();
            assertThat(each.out() + each.err()).doesNotContain("nothing has moved");
        }
    }

    @Test
    void aRunChoosesTheCodecOfItsLinksAndSaysWhy() {
        Training open = slow("open", "data-plane.codec=auto", "run.steps=2");
        Trained fast = open.copy().complete();
        Trained chosen =
                slow("chosen", "data-plane.codec=auto", "run.steps=2")
                        .set("data-plane.emulate.bandwidth=10 Mbit/s")
                        .complete();
        Trained given =
                slow("given", "data-plane.codec=int8", "run.steps=2")
                        .set("data-plane.emulate.bandwidth=10 Mbit/s")
                        .complete();

        assertThat(fast.out()).contains("chosen codec: none: a step takes ");
        assertThat(chosen.out())
                .containsPattern("chosen codec: int8: over 10 Mbit/s a step takes .* instead of ")
                .contains("links: activations int8, gradients int8, from stage 0 on")
                .containsPattern("sent per step +rank 0 [^(]*\\(as predicted\\)");
        assertThat(chosen.lossBits()).isEqualTo(given.lossBits()).isNotEqualTo(fast.lossBits());
        assertThat(open.resume().set("run.steps=3").complete().err())
                .doesNotContain("different layout");
    }
}
