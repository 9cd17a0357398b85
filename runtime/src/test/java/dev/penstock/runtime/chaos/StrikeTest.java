package dev.penstock.runtime.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class StrikeTest {
    private static final List<Strike.Kind> KINDS = List.of(Strike.Kind.values());
    private static final List<String> SEEDS = List.of("seed-1", "seed-2");
    private static final List<String> WORKERS = List.of("worker-1", "worker-2");
    private static final int STEPS = 50;

    private static List<Strike> draw(long seed, int count, List<Strike.Kind> kinds) {
        return Strike.draw(new Random(seed), count, kinds, SEEDS, WORKERS, STEPS);
    }

    @Test
    void theSameSeedGivesTheSameStrikesAndAnotherOneOthers() {
        assertThat(draw(7, 20, KINDS))
                .isEqualTo(draw(7, 20, KINDS))
                .isNotEqualTo(draw(8, 20, KINDS));
    }

    @Test
    void theyComeInTheOrderOfTheirStepsAndLeaveTheEndOfTheRunAlone() {
        assertThat(draw(1, 200, KINDS))
                .extracting(Strike::step)
                .isSorted()
                .allSatisfy(step -> assertThat(step).isBetween(1L, STEPS * 4L / 5));
    }

    @Test
    void onlyKindsThatAreAllowedAreDrawnAndAllOfThem() {
        assertThat(draw(1, 200, KINDS))
                .extracting(Strike::kind)
                .containsAll(Arrays.asList(Strike.Kind.values()));
        assertThat(draw(1, 200, List.of(Strike.Kind.RESET)))
                .allSatisfy(strike -> assertThat(strike.kind()).isEqualTo(Strike.Kind.RESET));
    }

    @Test
    void whoseCheckpointIsDamagedIsMadeToReadIt() {
        assertThat(draw(1, 200, List.of(Strike.Kind.FLIPPED_BIT)))
                .extracting(Strike::node)
                .hasSameElementsAs(WORKERS);
    }

    @Test
    void eachSaysWhatItDoesToWhomAndWhen() {
        assertThat(draw(1, 200, KINDS))
                .allSatisfy(
                        strike ->
                                assertThat(strike.describe())
                                        .contains("after step " + strike.step())
                                        .containsAnyOf("seed", "worker", "driver"));
    }
}
