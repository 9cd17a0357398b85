package dev.penstock.schedules.ir;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.schedules.generate.Generators;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ScheduleFormatTest {
    @ParameterizedTest
    @EnumSource
    void readsWhatItPrints(ScheduleFormat format) {
        Schedule schedule = Generators.generate("1f1b", PipelineShape.of(2, 3));

        assertThat(format.read(format.print(schedule)).schedule().programs())
                .isEqualTo(schedule.programs());
        assertThat(ScheduleFormat.named(format.label())).isEqualTo(format);
    }

    @Test
    void theNameOfAFileSaysItsFormat() {
        assertThat(ScheduleFormat.ofFile("orders/my.CSV")).isEqualTo(ScheduleFormat.TORCH_CSV);
        assertThat(ScheduleFormat.ofFile("my.csv.txt")).isEqualTo(ScheduleFormat.TEXT);
    }

    @Test
    void anUnknownFormatIsRefusedWithThoseThatThereAre() {
        assertThatThrownBy(() -> ScheduleFormat.named("json"))
                .hasMessage("unknown format 'json', expected text or torch-csv");
    }
}
