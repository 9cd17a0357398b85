package dev.penstock.runtime.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.StepReport;
import java.util.List;
import org.junit.jupiter.api.Test;

class LossBookTest {
    private final LossBook truth = book(3.0, 2.5, 2.25);

    @Test
    void equalLossesDifferInNothingAlsoWhereStepsAreDoneAgain() {
        LossBook harmed = book(3.0, 2.5);
        add(harmed, 2, 2.5);
        add(harmed, 3, 2.25);

        assertThat(truth.differences(harmed)).isEmpty();
        assertThat(harmed.again()).isEqualTo(1);
        assertThat(harmed.steps()).isEqualTo(3);
    }

    @Test
    void oneBitIsADifference() {
        assertThat(truth.differences(book(3.0, Math.nextUp(2.5), 2.25)))
                .containsExactly(
                        "step 2: loss 2.5000000000000004 (4004000000000001) instead of 2.5 (4004000000000000)");
    }

    @Test
    void aStepThatIsDoneAgainWithOtherBitsIsADifference() {
        LossBook harmed = book(3.0, 2.0);
        add(harmed, 2, 2.5);
        add(harmed, 3, 2.25);

        assertThat(truth.differences(harmed)).hasSize(1).first().asString().contains("step 2");
    }

    @Test
    void aStepThatIsMissingOrTooManyIsADifference() {
        assertThat(truth.differences(book(3.0, 2.5))).containsExactly("step 3: never committed");
        assertThat(truth.differences(book(3.0, 2.5, 2.25, 2.0)))
                .singleElement()
                .asString()
                .contains("step 4", "instead of none");
    }

    private static LossBook book(double... losses) {
        var book = new LossBook();
        for (int i = 0; i < losses.length; i++) {
            add(book, i + 1, losses[i]);
        }
        return book;
    }

    private static void add(LossBook book, long step, double loss) {
        book.onStep(new StepReport(step, loss, 1, 1, 0, 1, List.of()));
    }
}
