package dev.penstock.actors.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What a seed says of runs that it does not keep. */
class UnkeptRunsTest {
    private static final String RUN = "run-1";

    private final UnkeptRuns runs = new UnkeptRuns("10.0.0.1:2551", _ -> {});

    @Test
    void anyRunMayBeThereUntilAllWereLookedFor() {
        runs.looksForAll(0);

        assertThat(runs.why(RUN, Duration.ofSeconds(7).toNanos()))
                .hasValueSatisfying(
                        run -> {
                            assertThat(run.why()).isEqualTo(ClusterRuns.WhyUnkept.LOOKS);
                            assertThat(run.line()).contains("10.0.0.1:2551", "7 s");
                        });

        runs.looked(List.of(), 0);
        assertThat(runs.why(RUN, 0)).isEmpty();
        assertThat(runs.isLooking()).isFalse();
    }

    @Test
    void aRunWhoseLockIsHeldSaysByWhomAndSinceWhenUntilItIsFree() {
        runs.held(RUN, " (process 7 on east)");
        long later = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        runs.looked(List.of(RUN), later);
        runs.held(RUN, " (process 7 on east)");

        assertThat(runs.why(RUN, later))
                .hasValueSatisfying(
                        run -> {
                            assertThat(run.why()).isEqualTo(ClusterRuns.WhyUnkept.HELD);
                            assertThat(run.line())
                                    .contains(
                                            "no seed keeps run-1", "(process 7 on east) for 60 s");
                        });

        runs.looked(List.of(), later);
        assertThat(runs.why(RUN, later)).isEmpty();
    }

    @Test
    void aRunThatCannotBeOpenedSaysWhyUntilItIsKept() {
        runs.opens(RUN);
        runs.cannotOpen(RUN, "launch.conf is gone");
        runs.looked(List.of(), 0);

        assertThat(runs.why(RUN, 0))
                .hasValueSatisfying(
                        run -> {
                            assertThat(run.why()).isEqualTo(ClusterRuns.WhyUnkept.BROKEN);
                            assertThat(run.line()).contains("launch.conf is gone");
                        });

        runs.kept(RUN);
        assertThat(runs.all(0)).isEmpty();
    }
}
