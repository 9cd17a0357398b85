package dev.penstock.runtime.config.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.config.order.ConfiguredSchedule;
import dev.penstock.runtime.config.order.ScheduleFaults;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class SampleConfigsTest {
    private static final Path SAMPLES = Path.of("..", "sample-configs");

    static List<Path> samples() throws IOException {
        try (Stream<Path> files = Files.list(SAMPLES)) {
            return files.filter(file -> file.toString().endsWith(".conf")).sorted().toList();
        }
    }

    @ParameterizedTest
    @MethodSource("samples")
    void loadsAndItsOrderCanRun(Path sample) {
        LoadedConfig loaded = ConfigLoader.loadWithOrigins(sample, List.of());

        assertThat(loaded.config().data().source()).isReadable();
        assertThat(ScheduleFaults.of(loaded, ConfiguredSchedule.of(loaded))).isEmpty();
    }

    @Test
    void thereIsOneForEveryFamily() throws IOException {
        assertThat(samples())
                .map(sample -> ConfigLoader.load(sample, List.of()).schedule().kind())
                .contains(
                        ScheduleSection.Kind.ONE_FORWARD_ONE_BACKWARD,
                        ScheduleSection.Kind.GPIPE,
                        ScheduleSection.Kind.INTERLEAVED,
                        ScheduleSection.Kind.ZB_V,
                        ScheduleSection.Kind.SEQ1F1B,
                        ScheduleSection.Kind.TERAPIPE);
    }
}
