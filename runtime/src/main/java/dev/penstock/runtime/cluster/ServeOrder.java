package dev.penstock.runtime.cluster;

import dev.penstock.actors.cluster.RunRefusedException;
import dev.penstock.runtime.inference.JoiningTexts;
import dev.penstock.runtime.model.shape.HeldWeights;
import dev.penstock.runtime.safetensors.Sha256;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.Properties;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * A model that a cluster is to serve, on its way to a seed and in the directory where nodes find
 * it.
 *
 * @param name by which requests name the model
 * @param model a run, a checkpoint or weights, absolute: all nodes see it under this path
 * @param tokenizer a name, or the absolute path of its files
 * @param template the name of the chat template
 * @param ranks of the pipeline
 * @param device the kind of each rank's device
 * @param host where the node with the first rank listens for requests
 * @param port where it listens, not 0
 * @param keyHash SHA-256 of the key that requests must show
 * @param ranksPerNode most ranks on a node
 * @param dataPort the UDP port of tensors between hosts; 0: any
 */
public record ServeOrder(
        String name,
        Path model,
        String tokenizer,
        String template,
        int ranks,
        HeldWeights held,
        JoiningTexts.Limits limits,
        String device,
        String host,
        int port,
        Optional<String> keyHash,
        Optional<Integer> ranksPerNode,
        int dataPort) {
    private static final String MARK = "serve";

    /** Whether a submission is of a model to be served, not of a run to be trained. */
    static boolean is(String submission) {
        return properties(submission).getProperty(MARK) != null;
    }

    /** As it travels; {@link #parse} is the inverse. */
    public String text() {
        var properties = new Properties();
        properties.setProperty(MARK, name);
        properties.setProperty("model", model.toString());
        properties.setProperty("tokenizer", tokenizer);
        properties.setProperty("template", template);
        properties.setProperty("ranks", "" + ranks);
        properties.setProperty("weights", held.word());
        properties.setProperty("together", "" + limits.together());
        properties.setProperty("waiting", "" + limits.waiting());
        properties.setProperty("length", "" + limits.tokens());
        properties.setProperty("kept", "" + limits.kept());
        properties.setProperty("device", device);
        properties.setProperty("host", host);
        properties.setProperty("port", "" + port);
        keyHash.ifPresent(hash -> properties.setProperty("key-sha256", hash));
        ranksPerNode.ifPresent(most -> properties.setProperty("ranks-per-node", "" + most));
        properties.setProperty("data-port", "" + dataPort);
        var text = new StringWriter();
        try {
            properties.store(text, "a model to serve");
        } catch (IOException e) {
            throw new UncheckedIOException("a text takes everything", e);
        }
        return text.toString();
    }

    /**
     * Reads what came from a client, or from a directory.
     *
     * @throws RunRefusedException if it is no such order
     */
    static ServeOrder parse(String text) {
        Properties properties = properties(text);
        try {
            return new ServeOrder(
                    needed(properties, MARK),
                    Path.of(needed(properties, "model")),
                    needed(properties, "tokenizer"),
                    needed(properties, "template"),
                    Integer.parseInt(needed(properties, "ranks")),
                    HeldWeights.of(needed(properties, "weights")).orElseThrow(),
                    new JoiningTexts.Limits(
                            Integer.parseInt(needed(properties, "together")),
                            Integer.parseInt(needed(properties, "waiting")),
                            Integer.parseInt(needed(properties, "length")),
                            Integer.parseInt(needed(properties, "kept"))),
                    needed(properties, "device"),
                    needed(properties, "host"),
                    Integer.parseInt(needed(properties, "port")),
                    found(properties, "key-sha256", hash -> hash),
                    found(properties, "ranks-per-node", Integer::valueOf),
                    Integer.parseInt(needed(properties, "data-port")));
        } catch (IllegalArgumentException | NoSuchElementException e) {
            throw new RunRefusedException(
                    "expected an order to serve a model, got: " + e.getMessage(), e);
        }
    }

    private static Properties properties(String text) {
        var properties = new Properties();
        try {
            properties.load(new StringReader(text));
        } catch (IOException | IllegalArgumentException e) {
            throw new RunRefusedException("expected a submission, got: " + e.getMessage(), e);
        }
        return properties;
    }

    private static String needed(Properties properties, String key) {
        String value = properties.getProperty(key);
        if (value == null) {
            throw new IllegalArgumentException("no " + key);
        }
        return value;
    }

    private static <T> Optional<T> found(
            Properties properties, String key, Function<String, T> reader) {
        return Optional.ofNullable(properties.getProperty(key)).map(reader);
    }

    /** Returns what nodes compare: their plans are the same if this and their models are. */
    String hash() {
        Properties properties = properties(text());
        return Sha256.of(
                properties.stringPropertyNames().stream()
                        .sorted()
                        .map(key -> key + "=" + properties.getProperty(key))
                        .collect(Collectors.joining("\n")));
    }
}
