package dev.penstock.runtime.metrics;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.spi.MemoryUse;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.StepTraffic;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;

/**
 * Both directions of the line format. Numbers that JSON does not have (NaN, infinities) become
 * null; readers ignore fields and types that they do not know.
 */
final class MetricsJson {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final double NANOS_PER_MILLI = 1e6;

    private MetricsJson() {}

    /** Returns the line without its line break. */
    static String write(MetricsLine line) {
        ObjectNode object = JSON.createObjectNode();
        switch (line) {
            case StepMetrics step -> writeStep(object, step);
            case SkippedMetrics skipped -> writeSkipped(object, skipped);
            case EvaluationMetrics evaluation -> {
                begin(object, "evaluation", evaluation);
                put(object, "validationLoss", evaluation.validationLoss());
                object.put("validationLossBits", bits(evaluation.validationLoss()));
                evaluation
                        .validationAccuracy()
                        .ifPresent(share -> put(object, "validationAccuracy", share));
            }
            case TaskMetrics task -> writeTask(object, task);
            case RecoveryMetrics recovery -> writeRecovery(object, recovery);
        }
        return object.toString();
    }

    /** Reads a line; empty if it is cut off, or of a type that this version does not know. */
    static Optional<MetricsLine> read(String line) {
        try {
            JsonNode object = JSON.readTree(line);
            Instant time = Instant.parse(object.path("time").asText());
            return switch (object.path("type").asText()) {
                case "step" -> Optional.of(readStep(object, time));
                case "skipped" -> Optional.of(readSkipped(object, time));
                case "evaluation" ->
                        Optional.of(
                                new EvaluationMetrics(
                                        object.path("step").asLong(),
                                        time,
                                        exact(object, "validationLoss"),
                                        object.has("validationAccuracy")
                                                ? OptionalDouble.of(
                                                        object.path("validationAccuracy")
                                                                .asDouble())
                                                : OptionalDouble.empty()));
                case "task" -> Optional.of(readTask(object, time));
                case "recovery" -> Optional.of(readRecovery(object, time));
                default -> Optional.empty();
            };
        } catch (JsonProcessingException | DateTimeException | IllegalArgumentException e) {
            return Optional.empty();
        }
    }

    private static void writeStep(ObjectNode object, StepMetrics step) {
        begin(object, "step", step);
        object.put("layout", step.layout());
        put(object, "loss", step.loss());
        object.put("lossBits", bits(step.loss()));
        put(object, "gradientNorm", step.gradientNorm());
        object.put("gradientNormBits", bits(step.gradientNorm()));
        put(object, "clipFactor", step.clipFactor());
        put(object, "learningRate", step.learningRate());
        object.put("tokens", step.tokens());
        put(object, "tokensPerSecond", rounded(step.tokensPerSecond(), 10));
        put(object, "stepMillis", step.stepMillis());
        put(object, "bubbleMeasured", rounded(step.bubbleMeasured(), 1e6));
        put(object, "bubblePredicted", rounded(step.bubblePredicted(), 1e6));
        put(object, "pipelineEfficiency", rounded(step.pipelineEfficiency(), 1e6));
        ObjectNode activities = object.putObject("rankMillis");
        step.rankMillis()
                .forEach(
                        (activity, millis) -> {
                            ArrayNode ranks = activities.putArray(activity.label());
                            millis.forEach(ranks::add);
                        });
        ArrayNode peaks = object.putArray("peakBytes");
        step.peakBytes().forEach(peaks::add);
        ArrayNode uses = object.putArray("peakBytesByUse");
        for (List<MemoryUse> rank : step.usesOfMemory()) {
            ObjectNode bytes = uses.addObject();
            rank.forEach(use -> bytes.put(use.use(), use.peakBytes()));
        }
        ArrayNode sent = object.putArray("sentBytesByUse");
        for (StepTraffic rank : step.traffic()) {
            ObjectNode bytes = sent.addObject();
            rank.byUse().entrySet().stream()
                    .filter(use -> use.getValue() != 0)
                    .forEach(use -> bytes.put(use.getKey(), use.getValue()));
        }
        ArrayNode heap = object.putArray("heapBytesPerOp");
        step.heapBytesPerOp().forEach(bytes -> heap.add(rounded(bytes, 10)));
    }

    private static StepMetrics readStep(JsonNode object, Instant time) {
        Map<Activity, List<Double>> rankMillis = new EnumMap<>(Activity.class);
        for (Activity activity : Activity.values()) {
            JsonNode ranks = object.path("rankMillis").path(activity.label());
            if (ranks.isArray()) {
                rankMillis.put(activity, doubles(ranks));
            }
        }
        List<Long> peaks = new ArrayList<>();
        object.path("peakBytes").forEach(bytes -> peaks.add(bytes.asLong()));
        List<List<MemoryUse>> uses = new ArrayList<>();
        for (JsonNode rank : object.path("peakBytesByUse")) {
            uses.add(
                    rank.properties().stream()
                            .map(use -> new MemoryUse(use.getKey(), use.getValue().asLong()))
                            .toList());
        }
        List<StepTraffic> traffic = new ArrayList<>();
        for (JsonNode rank : object.path("sentBytesByUse")) {
            Map<String, Long> bytes = new HashMap<>();
            rank.properties().forEach(use -> bytes.put(use.getKey(), use.getValue().asLong()));
            traffic.add(StepTraffic.of(bytes));
        }
        return new StepMetrics(
                object.path("step").asLong(),
                time,
                object.path("layout").asText(),
                exact(object, "loss"),
                exact(object, "gradientNorm"),
                number(object, "clipFactor"),
                number(object, "learningRate"),
                object.path("tokens").asLong(),
                number(object, "stepMillis"),
                number(object, "bubbleMeasured"),
                number(object, "bubblePredicted"),
                number(object, "pipelineEfficiency"),
                rankMillis,
                peaks,
                uses,
                traffic,
                doubles(object.path("heapBytesPerOp")));
    }

    private static void writeSkipped(ObjectNode object, SkippedMetrics line) {
        Overflow overflow = line.overflow();
        begin(object, "skipped", line);
        object.put("rank", overflow.rank());
        object.put("stage", overflow.stage());
        put(object, "lossScale", overflow.scale());
        put(object, "nextLossScale", overflow.next());
    }

    private static SkippedMetrics readSkipped(JsonNode object, Instant time) {
        return new SkippedMetrics(
                time,
                new Overflow(
                        object.path("step").asLong(),
                        object.path("rank").asInt(),
                        object.path("stage").asInt(),
                        number(object, "lossScale"),
                        number(object, "nextLossScale")));
    }

    private static void writeTask(ObjectNode object, TaskMetrics task) {
        begin(object, "task", task);
        object.put("task", task.task());
        object.put("protocol", task.protocol());
        object.put("context", task.context());
        object.put("data", task.data());
        ObjectNode measures = object.putObject("measures");
        task.measures()
                .forEach(
                        (name, value) -> {
                            if (value instanceof Long count) {
                                measures.put(name, count);
                            } else {
                                put(measures, name, value.doubleValue());
                            }
                        });
    }

    private static TaskMetrics readTask(JsonNode object, Instant time) {
        Map<String, Number> measures = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> measure : object.path("measures").properties()) {
            JsonNode value = measure.getValue();
            measures.put(
                    measure.getKey(),
                    value.isIntegralNumber()
                            ? (Number) value.asLong()
                            : (Number) value.asDouble(Double.NaN));
        }
        return new TaskMetrics(
                object.path("step").asLong(),
                time,
                object.path("task").asText(),
                object.path("protocol").asText(),
                object.path("context").asInt(),
                object.path("data").asText(),
                measures);
    }

    private static void writeRecovery(ObjectNode object, RecoveryMetrics line) {
        RecoveryReport report = line.report();
        begin(object, "recovery", line);
        object.put("cause", report.cause());
        object.put("epoch", report.epoch());
        ArrayNode replaced = object.putArray("replaced");
        report.replaced().forEach(replaced::add);
        object.put("restart", report.restart().name().toLowerCase(Locale.ROOT));
        put(object, "detectMillis", millis(report.detectNanos()));
        put(object, "resumeMillis", millis(report.resumeNanos()));
        object.put("stepsLost", report.stepsLost());
    }

    private static RecoveryMetrics readRecovery(JsonNode object, Instant time) {
        List<Integer> replaced = new ArrayList<>();
        object.path("replaced").forEach(rank -> replaced.add(rank.asInt()));
        String restart = object.path("restart").asText().toUpperCase(Locale.ROOT);
        var report =
                new RecoveryReport(
                        object.path("cause").asText(),
                        object.path("epoch").asInt(),
                        replaced,
                        RecoveryReport.Restart.valueOf(restart),
                        Math.round(number(object, "detectMillis") * NANOS_PER_MILLI),
                        Math.round(number(object, "resumeMillis") * NANOS_PER_MILLI),
                        object.path("stepsLost").asLong(),
                        object.path("step").asLong());
        return new RecoveryMetrics(time, report);
    }

    static double millis(long nanos) {
        return nanos / NANOS_PER_MILLI;
    }

    /** A line that says how many before it could not be written. */
    static String gap(long step, Instant time, long missing) {
        ObjectNode object = JSON.createObjectNode();
        begin(object, "gap", step, time);
        object.put("missing", missing);
        return object.toString();
    }

    private static void begin(ObjectNode object, String type, MetricsLine line) {
        begin(object, type, line.step(), line.time());
    }

    /** {@link MetricsFile} finds type and step here without reading the line. */
    private static void begin(ObjectNode object, String type, long step, Instant time) {
        object.put("type", type);
        object.put("step", step);
        object.put("time", time.toString());
    }

    private static void put(ObjectNode object, String field, double value) {
        if (Double.isFinite(value)) {
            object.put(field, value);
        } else {
            object.putNull(field);
        }
    }

    private static double rounded(double value, double parts) {
        return Double.isFinite(value) ? Math.round(value * parts) / parts : value;
    }

    private static String bits(double value) {
        return "%016x".formatted(Double.doubleToRawLongBits(value));
    }

    /**
     * Returns a value whose bits are in a second field: exact even where it is not a JSON number.
     */
    private static double exact(JsonNode object, String field) {
        JsonNode bits = object.path(field + "Bits");
        return bits.isTextual()
                ? Double.longBitsToDouble(Long.parseUnsignedLong(bits.asText(), 16))
                : number(object, field);
    }

    private static double number(JsonNode object, String field) {
        return object.path(field).asDouble(Double.NaN);
    }

    private static List<Double> doubles(JsonNode array) {
        List<Double> values = new ArrayList<>();
        array.forEach(value -> values.add(value.asDouble()));
        return values;
    }
}
