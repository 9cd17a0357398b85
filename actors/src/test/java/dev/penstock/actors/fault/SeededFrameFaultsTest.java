package dev.penstock.actors.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.dataplane.ChannelKey;
import dev.penstock.actors.dataplane.FrameFaults;
import dev.penstock.actors.dataplane.FrameFaults.Fate;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.FrameKind;
import dev.penstock.actors.spi.RankPlace;
import dev.penstock.actors.spi.StepKind;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class SeededFrameFaultsTest {
    private static final ChannelKey CHANNEL = new ChannelKey(FrameKind.ACTIVATION, 0, 1);
    private static final int FRAMES = 20_000;

    @Test
    void theRateIsKeptAndTheSeedDecidesWhich() {
        assertThat(lost(0.05, 5).size() / (double) FRAMES).isCloseTo(0.05, within(0.01));
        assertThat(lost(0.05, 5)).isEqualTo(lost(0.05, 5)).isNotEqualTo(lost(0.05, 6));
    }

    @Test
    void onlyTrainingStepsOfTheSpanAreHarmed() {
        var injector = injector(harm(FrameHarm.CORRUPT, 1, Duration.ZERO, new StepSpan(3, 4)));
        RankFaults rank = injector.forRank(0, RankPlace.single(0), List.of(0));
        FrameFaults frames = injector.forFrames();

        rank.beginPass(StepKind.TRAIN, 2);
        assertThat(frames.of(key(1), 0)).isEqualTo(Fate.PASS);
        rank.beginPass(StepKind.TRAIN, 3);
        assertThat(frames.of(key(1), 0)).isEqualTo(Fate.CORRUPT);
        rank.beginPass(StepKind.EVALUATE, 3);
        assertThat(frames.of(key(1), 0)).isEqualTo(Fate.PASS);
    }

    @Test
    void everyHarmHasItsFate() {
        assertThat(fate(FrameHarm.DROP)).isEqualTo(Fate.DROP);
        assertThat(fate(FrameHarm.DUPLICATE)).isEqualTo(Fate.DUPLICATE);
        assertThat(fate(FrameHarm.CORRUPT)).isEqualTo(Fate.CORRUPT);
        assertThat(fate(FrameHarm.DELAY)).isEqualTo(new Fate.Delay(20_000_000));
    }

    @Test
    void withoutSuchFaultsNothingIsAsked() {
        assertThat(FaultInjector.NONE.forFrames()).isSameAs(FrameFaults.NONE);
    }

    private static Fate fate(FrameHarm kind) {
        var injector = injector(harm(kind, 1, Duration.ofMillis(20), StepSpan.only(1)));
        injector.forRank(0, RankPlace.single(0), List.of(0)).beginPass(StepKind.TRAIN, 1);
        return injector.forFrames().of(key(1), 0);
    }

    private static List<Long> lost(double rate, long seed) {
        var injector =
                injector(
                        new Fault.HarmFrames(
                                FrameHarm.DROP, rate, seed, Duration.ZERO, StepSpan.only(1)));
        injector.forRank(0, RankPlace.single(0), List.of(0)).beginPass(StepKind.TRAIN, 1);
        List<Long> lost = new ArrayList<>();
        for (long frame = 0; frame < FRAMES; frame++) {
            if (!injector.forFrames().of(key(1), frame).equals(Fate.PASS)) {
                lost.add(frame);
            }
        }
        return lost;
    }

    private static Fault harm(FrameHarm kind, double rate, Duration delay, StepSpan steps) {
        return new Fault.HarmFrames(kind, rate, 5, delay, steps);
    }

    private static FaultInjector injector(Fault fault) {
        return new FaultInjector(
                new FaultPlan(List.of(fault)), (_, _) -> false, ProcessHarm.ONE_THREAD);
    }

    private static FrameKey key(long pass) {
        return new FrameKey(CHANNEL, pass, 0, 0);
    }
}
