package dev.penstock.runtime.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** What a training run left behind. */
public record Trained(Path directory, int exitCode, String out, String err) {
    private static final String STEP = "{\"type\":\"step\",";

    /** Losses of all steps, in order. */
    public List<Double> losses() {
        return lines(directory, "step").stream().map(line -> line.get("loss").asDouble()).toList();
    }

    /** Global gradient norms of all steps before clipping, in order. */
    public List<Double> gradientNorms() {
        return lines(directory, "step").stream()
                .map(line -> line.get("gradientNorm").asDouble())
                .toList();
    }

    /** Learning rates of all steps, in order. */
    public double[] learningRates() {
        return lines(directory, "step").stream()
                .mapToDouble(line -> line.get("learningRate").asDouble())
                .toArray();
    }

    /** Tokens that every step trained on, in order. */
    public List<Long> tokens() {
        return lines(directory, "step").stream().map(line -> line.get("tokens").asLong()).toList();
    }

    /** Step and exact loss of every step. */
    public List<String> lossBits() {
        return lossBits(directory);
    }

    /** Step and exact loss of every step of the run in this directory so far. */
    public static List<String> lossBits(Path directory) {
        return lines(directory, "step").stream()
                .map(line -> line.get("step").asLong() + " " + line.get("lossBits").asText())
                .toList();
    }

    /** Steps that were skipped, in order. */
    public List<Long> skipped() {
        return lines(directory, "skipped").stream().map(line -> line.get("step").asLong()).toList();
    }

    /** How many steps the run in this directory has committed so far. */
    public static int steps(Path directory) {
        return text(directory).lines().filter(line -> line.startsWith(STEP)).mapToInt(_ -> 1).sum();
    }

    /** Step and exact loss of every evaluation. */
    public List<String> validationBits() {
        return lines(directory, "evaluation").stream()
                .map(
                        line ->
                                line.get("step").asLong()
                                        + " "
                                        + line.get("validationLossBits").asText())
                .toList();
    }

    /** How long every step took, in order. */
    public List<Double> stepSeconds() {
        return lines(directory, "step").stream()
                .map(line -> line.get("stepMillis").asDouble() / 1_000)
                .toList();
    }

    /** The recoveries of the run, as its metrics tell of them. */
    public List<JsonNode> recoveries() {
        return recoveries(directory);
    }

    /** The recoveries of the run in this directory so far. */
    public static List<JsonNode> recoveries(Path directory) {
        return lines(directory, "recovery");
    }

    /** What came of the run, for programs. */
    public JsonNode summary() {
        try {
            return new ObjectMapper().readTree(directory.resolve("summary.json").toFile());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** By rank and step: what it sent to others, by use; nothing where a use has no bytes. */
    public List<List<JsonNode>> sentBytes() {
        return lines(directory, "step").stream()
                .map(line -> line.get("sentBytesByUse").valueStream().toList())
                .toList();
    }

    /** Most device memory that each rank ever held. */
    public List<Long> peakBytes() {
        List<Long> peaks = new ArrayList<>();
        lines(directory, "step").getLast().get("peakBytes").forEach(n -> peaks.add(n.asLong()));
        return peaks;
    }

    /** The whole lines of a type; one that is still being written is left out. */
    private static List<JsonNode> lines(Path directory, String type) {
        try {
            ObjectMapper json = new ObjectMapper();
            List<JsonNode> found = new ArrayList<>();
            for (String line : text(directory).lines().toList()) {
                JsonNode node = json.readTree(line);
                if (node.get("type").asText().equals(type)) {
                    found.add(node);
                }
            }
            return found;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The metrics so far, up to the last whole line. */
    private static String text(Path directory) {
        Path metrics = directory.resolve("metrics.jsonl");
        if (!Files.exists(metrics)) {
            return "";
        }
        try {
            String text = Files.readString(metrics);
            return text.substring(0, text.lastIndexOf('\n') + 1);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
