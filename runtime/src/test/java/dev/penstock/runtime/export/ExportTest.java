package dev.penstock.runtime.export;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.runtime.metrics.ConfiguredSteps;
import dev.penstock.runtime.metrics.MetricsWriter;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.SimulatedRun;
import dev.penstock.schedules.ir.PipelineShape;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * What other tools are given, read as their formats are defined, and by TensorBoard itself where it
 * is installed.
 */
class ExportTest {
    private static final Instant TIME = Instant.parse("2026-03-01T12:00:00.500Z");
    private static final int STEPS = 200;

    @TempDir private Path folder;
    private Path metrics;
    private List<Double> losses;

    private final SimulatedRun run = SimulatedRun.of("1f1b", PipelineShape.of(2, 4));

    @BeforeEach
    void writeMetrics() {
        metrics = folder.resolve("metrics.jsonl");
        losses = new ArrayList<>();
        try (var writer = writer(0)) {
            for (int step = 1; step <= STEPS; step++) {
                var report = run.noisy(step);
                losses.add(report.loss());
                writer.onStep(report);
            }
            writer.onEvaluation(STEPS, 2.5, OptionalDouble.empty());
        }
    }

    @Test
    void tensorBoardsRecordsHoldTheScalars() throws IOException {
        List<byte[]> records = records(tensorBoard());

        assertThat(records).hasSize(1 + STEPS + 1);
        assertThat(text(first(fields(records.getFirst()), 3))).isEqualTo("brain.Event:2");
        for (int step = 1; step <= STEPS; step++) {
            Map<Integer, List<Object>> event = fields(records.get(step));
            assertThat(event.get(2)).containsExactly((long) step);
            assertThat(Double.longBitsToDouble((long) first(event, 1)))
                    .isEqualTo(TIME.toEpochMilli() / 1e3);
            assertThat(scalars(event).get("loss/train"))
                    .isCloseTo(losses.get(step - 1).floatValue(), within(0f));
        }
        assertThat(scalars(fields(records.getLast()))).isEqualTo(Map.of("loss/validation", 2.5f));
    }

    /** As a training writes it, and a look comes in the middle of a line. */
    @Test
    void aRunIsFollowedWhileItWritesAndTheRecordsAreTheSame() throws IOException {
        byte[] all = Files.readAllBytes(metrics);
        Path growing = folder.resolve("growing.jsonl");
        Path file = folder.resolve("events.out.tfevents.2");
        int piece = all.length / 7 + 1;
        List<Integer> seen = new ArrayList<>();
        try (var out = Files.newOutputStream(file)) {
            TensorBoardEvents.follow(
                    growing,
                    out,
                    () -> {
                        try {
                            seen.add(records(file).size());
                            int from = Math.min(all.length, (seen.size() - 1) * piece);
                            int to = Math.min(all.length, from + piece);
                            Files.write(
                                    growing,
                                    Arrays.copyOfRange(all, from, to),
                                    StandardOpenOption.CREATE,
                                    StandardOpenOption.APPEND);
                            return to < all.length;
                        } catch (IOException e) {
                            throw new UncheckedIOException(e);
                        }
                    });
        }

        assertThat(seen).hasSize(7).isSorted().doesNotHaveDuplicates();
        assertThat(file).hasSameBinaryContentAs(tensorBoard());
    }

    @Test
    @Timeout(value = 2, unit = TimeUnit.MINUTES)
    void tensorBoardItselfReadsThem() throws Exception {
        Path file = tensorBoard();
        String script =
                """
                import sys
                from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
                events = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0})
                events.Reload()
                for tag in sorted(events.Tags()['scalars']):
                    values = events.Scalars(tag)
                    print(tag, len(values), values[-1].step, '%.6f' % values[-1].value)
                """;
        Process python =
                new ProcessBuilder(
                                System.getProperty("penstock.python", "python3"),
                                "-c",
                                script,
                                file.toString())
                        .redirectError(folder.resolve("errors").toFile())
                        .start();
        String said = new String(python.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        int code = python.waitFor();
        Assumptions.assumeFalse(
                Files.readString(folder.resolve("errors"))
                        .contains("No module named 'tensorboard'"),
                "TensorBoard is not installed here: its reader is not asked");

        assertThat(code).as(Files.readString(folder.resolve("errors"))).isZero();
        assertThat(said)
                .contains("loss/validation 1 200 2.500000")
                .contains("loss/train 200 200 %.6f".formatted(losses.getLast().floatValue()))
                .contains("pipeline/bubble_predicted 200 200");
    }

    @Test
    void theTableHasARowPerStepAndEvaluation() throws IOException {
        var out = new StringWriter();
        CsvTable.write(metrics, out);
        String[] lines = out.toString().split("\r\n", -1);

        assertThat(lines).hasSize(1 + STEPS + 1 + 1);
        List<String> header = List.of(lines[0].split(","));
        for (int step = 1; step <= STEPS; step++) {
            String[] cells = lines[step].split(",", -1);
            assertThat(cells).hasSameSizeAs(header);
            assertThat(cells[0]).isEqualTo(String.valueOf(step));
            assertThat(Double.parseDouble(cells[header.indexOf("loss")]))
                    .isEqualTo(losses.get(step - 1));
        }
        assertThat(lines[STEPS + 1].split(",", -1)[header.indexOf("validation_loss")])
                .isEqualTo("2.5");
    }

    @Test
    void aSkippedStepIsMarked() throws IOException {
        try (var writer = writer(STEPS)) {
            writer.onOverflow(new Overflow(STEPS + 1, 0, 1, 256, 128));
        }
        var out = new StringWriter();
        CsvTable.write(metrics, out);
        String[] lines = out.toString().split("\r\n", -1);
        List<String> header = List.of(lines[0].split(","));

        String[] cells = lines[lines.length - 2].split(",", -1);

        assertThat(cells).hasSameSizeAs(header).startsWith(String.valueOf(STEPS + 1));
        assertThat(cells[header.indexOf("clip_factor")]).isEqualTo("0");
        assertThat(cells[header.indexOf("loss")]).isEmpty();
        assertThat(scalars(fields(records(tensorBoard()).getLast())))
                .isEqualTo(Map.of("optimizer/skipped_at_loss_scale", 256f));
    }

    private MetricsWriter writer(long resumedStep) {
        return new MetricsWriter(
                metrics,
                resumedStep,
                new PipelineMeter(run.schedule()),
                new ConfiguredSteps(StepTokens.always(64), _ -> 1e-3, ""),
                InstantSource.fixed(TIME));
    }

    private Path tensorBoard() throws IOException {
        Path file = folder.resolve("events.out.tfevents.1");
        try (var out = Files.newOutputStream(file)) {
            TensorBoardEvents.write(metrics, out);
        }
        return file;
    }

    // ---- a reader, from the definitions of TFRecord and protobuf ------------------------------

    private static List<byte[]> records(Path file) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        List<byte[]> records = new ArrayList<>();
        while (bytes.hasRemaining()) {
            byte[] length = new byte[8];
            bytes.duplicate().get(length);
            int size = Math.toIntExact(bytes.getLong());
            assertThat(unmasked(bytes.getInt())).isEqualTo(crc(length));
            byte[] record = new byte[size];
            bytes.get(record);
            assertThat(unmasked(bytes.getInt())).isEqualTo(crc(record));
            records.add(record);
        }
        return records;
    }

    private static int unmasked(int masked) {
        int rotated = masked - 0xa282ead8;
        return rotated >>> 17 | rotated << 15;
    }

    private static int crc(byte[] bytes) {
        var crc = new CRC32C();
        crc.update(bytes);
        return (int) crc.getValue();
    }

    private static Map<String, Float> scalars(Map<Integer, List<Object>> event) {
        Map<String, Float> scalars = new TreeMap<>();
        for (Object each : fields((byte[]) first(event, 5)).getOrDefault(1, List.of())) {
            Map<Integer, List<Object>> value = fields((byte[]) each);
            scalars.put(text(first(value, 1)), Float.intBitsToFloat((int) (long) first(value, 2)));
        }
        return scalars;
    }

    private static Object first(Map<Integer, List<Object>> message, int field) {
        return message.getOrDefault(field, List.of()).getFirst();
    }

    private static String text(Object bytes) {
        return new String((byte[]) bytes, StandardCharsets.UTF_8);
    }

    private static Map<Integer, List<Object>> fields(byte[] message) {
        ByteBuffer bytes = ByteBuffer.wrap(message).order(ByteOrder.LITTLE_ENDIAN);
        Map<Integer, List<Object>> fields = new TreeMap<>();
        while (bytes.hasRemaining()) {
            long tag = varint(bytes);
            Object value =
                    switch ((int) (tag & 7)) {
                        case 0 -> varint(bytes);
                        case 1 -> bytes.getLong();
                        case 2 -> {
                            byte[] content = new byte[(int) varint(bytes)];
                            bytes.get(content);
                            yield content;
                        }
                        case 5 -> (long) bytes.getInt();
                        default -> throw new AssertionError("wire type of tag " + tag);
                    };
            fields.computeIfAbsent((int) (tag >>> 3), _ -> new ArrayList<>()).add(value);
        }
        return fields;
    }

    private static long varint(ByteBuffer bytes) {
        long value = 0;
        for (int shift = 0; ; shift += 7) {
            byte next = bytes.get();
            value |= (long) (next & 0x7f) << shift;
            if (next >= 0) {
                return value;
            }
        }
    }
}
