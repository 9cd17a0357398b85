package dev.penstock.runtime.hostile;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.schedules.ir.ScheduleText;
import dev.penstock.schedules.ir.ScheduleTextException;
import dev.penstock.schedules.ir.TorchCsv;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Texts that clients and users give: whatever is in them, a reader takes them or refuses them with
 * its one exception. The seeds are fixed, so what fails here fails again; {@code -Dhostile.seed}
 * and {@code -Dhostile.configurations} try others.
 */
@Timeout(120)
class HostileTextsTest {
    private static final Path SAMPLES = Path.of("..", "sample-configs");
    private static final int DEEP = 200_000;
    private static final int CONFIGURATIONS = Integer.getInteger("hostile.configurations", 300);

    @TempDir Path folder;

    private int refused;

    @Test
    void schedulesAsText() throws IOException {
        String good = Files.readString(SAMPLES.resolve("orders").resolve("hand-written.txt"));

        mutate(20_000, good, ScheduleTextException.class, ScheduleText::read);
    }

    @Test
    void schedulesAsCsv() throws IOException {
        String good =
                TorchCsv.print(
                        ScheduleText.parse(
                                Files.readString(
                                        SAMPLES.resolve("orders").resolve("hand-written.txt"))));

        mutate(20_000, good, ScheduleTextException.class, TorchCsv::read);
    }

    @Test
    void configurations() throws IOException {
        String data = "data/penstock.txt.gz"; // a relative path: the texts are the same anywhere
        Files.createDirectory(folder.resolve("data"));
        Files.copy(SAMPLES.resolve(data), folder.resolve(data));
        String base = Files.readString(SAMPLES.resolve("quickstart.conf"));
        assertThat(base).contains(data);
        for (String sample : List.of("quickstart.conf", "faults.conf", "zero-bubble.conf")) {
            Path file = folder.resolve(sample);
            String more = Files.readString(SAMPLES.resolve(sample)).replaceAll("include .*", "");

            mutate(
                    CONFIGURATIONS,
                    sample.equals("quickstart.conf") ? base : base + more,
                    ConfigException.class,
                    text -> ConfigLoader.load(written(file, text), List.of()));
        }
    }

    /** A parser that calls itself would run out of stack, which ends a node. */
    @ParameterizedTest
    @ValueSource(strings = {"{", "[", "a={", "a.", "a=[", "a:{b:[", "${", "\"", "("})
    void bottomlessNesting(String piece) {
        String text = piece.repeat(DEEP);

        assertThatThrownBy(
                        () ->
                                ConfigLoader.load(
                                        written(folder.resolve("deep.conf"), text), List.of()))
                .isInstanceOf(ConfigException.class);
        assertThatThrownBy(() -> ScheduleText.read(text)).isInstanceOf(ScheduleTextException.class);
        assertThatThrownBy(() -> TorchCsv.read(text)).isInstanceOf(ScheduleTextException.class);
    }

    private void mutate(
            int rounds, String good, Class<? extends Exception> refusal, Consumer<String> reader) {
        Mutations mutations = new Mutations(Long.getLong("hostile.seed", 20261121));
        refused = 0;
        for (int round = 0; round < rounds; round++) {
            String text = mutations.of(good);
            try {
                reader.accept(text);
            } catch (RuntimeException | Error e) {
                if (!refusal.isInstance(e)) {
                    throw new AssertionError("round %d:%n%s".formatted(round, text), e);
                }
                refused++;
            }
        }
        assertThat(refused).isBetween(rounds / 10, rounds - 1);
    }

    private static Path written(Path file, String text) {
        try {
            return Files.write(file, text.getBytes(UTF_8)); // what is no text becomes '?'
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
