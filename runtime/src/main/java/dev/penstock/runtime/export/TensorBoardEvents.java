package dev.penstock.runtime.export;

import dev.penstock.runtime.metrics.EvaluationMetrics;
import dev.penstock.runtime.metrics.GrowingLines;
import dev.penstock.runtime.metrics.MetricsFile;
import dev.penstock.runtime.metrics.MetricsLine;
import dev.penstock.runtime.metrics.RecoveryMetrics;
import dev.penstock.runtime.metrics.SkippedMetrics;
import dev.penstock.runtime.metrics.StepMetrics;
import dev.penstock.runtime.metrics.TaskMetrics;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.zip.CRC32C;

/**
 * An event file of TensorBoard: the scalars of every step and evaluation. A record is framed as in
 * a TFRecord file, and holds an {@code Event} message of TensorBoard's event.proto:
 *
 * <pre>
 *   u64 length | u32 masked CRC32C of the length | message | u32 masked CRC32C of the message
 *   Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
 *   Summary { repeated Value value = 1; }     Value { string tag = 1; float simple_value = 2; }
 * </pre>
 */
public final class TensorBoardEvents {
    private static final int MASK = 0xa282ead8;
    private static final int FIXED64 = 1;
    private static final int LENGTH_DELIMITED = 2;
    private static final int FIXED32 = 5;

    private final OutputStream out;

    private TensorBoardEvents(OutputStream out) {
        this.out = out;
    }

    /**
     * Writes the scalars of all lines of a metrics file.
     *
     * @param out stays open
     */
    public static void write(Path metrics, OutputStream out) throws IOException {
        TensorBoardEvents events = begin(out);
        try {
            MetricsFile.forEach(metrics, events::line);
        } catch (UncheckedIOException e) {
            throw e.getCause();
        }
    }

    /**
     * Writes the scalars of all lines of a metrics file, and goes on while it grows. Whole records
     * are written, so that TensorBoard may read at any time.
     *
     * @param out stays open; flushed after each look
     * @param goesOn asked after each look, which it may wait before; once it says no, the file is
     *     looked at a last time
     */
    public static void follow(Path metrics, OutputStream out, BooleanSupplier goesOn)
            throws IOException {
        TensorBoardEvents events = begin(out);
        var lines = new GrowingLines(metrics);
        try {
            boolean last = false;
            while (true) {
                MetricsFile.poll(lines, events::line);
                out.flush();
                if (last) {
                    return;
                }
                last = !goesOn.getAsBoolean();
            }
        } catch (UncheckedIOException e) {
            throw e.getCause();
        }
    }

    private static TensorBoardEvents begin(OutputStream out) throws IOException {
        var events = new TensorBoardEvents(out);
        var version = new ByteArrayOutputStream();
        events.time(version, Instant.EPOCH);
        bytes(version, 3, "brain.Event:2".getBytes(StandardCharsets.UTF_8));
        events.record(version.toByteArray());
        return events;
    }

    private void line(MetricsLine line) {
        Map<String, Double> scalars = new LinkedHashMap<>();
        switch (line) {
            case StepMetrics step -> {
                scalars.put("loss/train", step.loss());
                scalars.put("optimizer/gradient_norm", step.gradientNorm());
                scalars.put("optimizer/learning_rate", step.learningRate());
                scalars.put("speed/tokens_per_second", step.tokensPerSecond());
                scalars.put("pipeline/bubble_measured", step.bubbleMeasured());
                scalars.put("pipeline/bubble_predicted", step.bubblePredicted());
            }
            case SkippedMetrics skipped ->
                    scalars.put("optimizer/skipped_at_loss_scale", skipped.overflow().scale());
            case EvaluationMetrics evaluation -> {
                scalars.put("loss/validation", evaluation.validationLoss());
                evaluation
                        .validationAccuracy()
                        .ifPresent(share -> scalars.put("accuracy/validation", share));
            }
            case TaskMetrics task ->
                    task.measures()
                            .forEach(
                                    (name, value) ->
                                            scalars.put(
                                                    "%s/%s/%s"
                                                            .formatted(
                                                                    task.task(),
                                                                    task.protocol(),
                                                                    name),
                                                    value.doubleValue()));
            case RecoveryMetrics recovery ->
                    scalars.put("faults/resume_seconds", recovery.report().resumeNanos() / 1e9);
        }
        var summary = new ByteArrayOutputStream();
        scalars.forEach((tag, value) -> bytes(summary, 1, value(tag, value)));
        var event = new ByteArrayOutputStream();
        time(event, line.time());
        tag(event, 2, 0);
        varint(event, line.step());
        bytes(event, 5, summary.toByteArray());
        try {
            record(event.toByteArray());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void record(byte[] message) throws IOException {
        byte[] length = little(Long.BYTES).putLong(message.length).array();
        out.write(length);
        out.write(crc(length));
        out.write(message);
        out.write(crc(message));
    }

    private void time(ByteArrayOutputStream event, Instant time) {
        tag(event, 1, FIXED64);
        double seconds = time.getEpochSecond() + time.getNano() / 1e9;
        event.writeBytes(little(Double.BYTES).putDouble(seconds).array());
    }

    private static byte[] value(String name, double number) {
        var value = new ByteArrayOutputStream();
        bytes(value, 1, name.getBytes(StandardCharsets.UTF_8));
        tag(value, 2, FIXED32);
        value.writeBytes(little(Float.BYTES).putFloat((float) number).array());
        return value.toByteArray();
    }

    private static void bytes(ByteArrayOutputStream message, int field, byte[] content) {
        tag(message, field, LENGTH_DELIMITED);
        varint(message, content.length);
        message.writeBytes(content);
    }

    private static void tag(ByteArrayOutputStream message, int field, int wireType) {
        varint(message, field << 3 | wireType);
    }

    private static void varint(ByteArrayOutputStream message, long value) {
        long rest = value;
        while (rest >>> 7 != 0) {
            message.write((int) (rest & 0x7f) | 0x80);
            rest >>>= 7;
        }
        message.write((int) rest);
    }

    private static byte[] crc(byte[] content) {
        var crc = new CRC32C();
        crc.update(content);
        int value = (int) crc.getValue();
        return little(Integer.BYTES).putInt((value >>> 15 | value << 17) + MASK).array();
    }

    private static ByteBuffer little(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
}
