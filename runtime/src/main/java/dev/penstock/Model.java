package dev.penstock;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.DeviceKind;
import dev.penstock.runtime.data.DataProblem;
import dev.penstock.runtime.evaluation.PreparedTask;
import dev.penstock.runtime.evaluation.TaskData;
import dev.penstock.runtime.evaluation.TaskRequest;
import dev.penstock.runtime.inference.Continuation;
import dev.penstock.runtime.inference.InferenceRequest;
import dev.penstock.runtime.inference.PipelineInference;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.launch.devices.ConfiguredDevices;
import dev.penstock.runtime.model.generation.Sampling;
import dev.penstock.runtime.model.shape.HeldWeights;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.serve.ServeAddress;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.runtime.training.RunFailedException;
import java.net.InetAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A trained model: continues texts, is measured and serves. Safe to use from any thread; close it
 * when nothing of it is under way.
 *
 * {@snippet file="dev/penstock/examples/GenerateExample.java" region="example"}
 */
public final class Model implements AutoCloseable {
    private static final int MOST_PORT = 65_535;

    private final Path place;
    private final TrainedModel trained;
    private final @Nullable Tokenizer tokenizer;
    private final Optional<String> tokenizerName;
    private final PipelineInference pipeline;
    private final AtomicBoolean closed = new AtomicBoolean();

    private Model(
            Path place,
            TrainedModel trained,
            Optional<String> tokenizerName,
            PipelineInference pipeline) {
        this.place = place;
        this.trained = trained;
        this.tokenizerName = tokenizerName;
        this.tokenizer = tokenizerName.map(Tokenizer::open).orElse(null);
        this.pipeline = pipeline;
    }

    static Model at(Path place, String device, Weights weights) {
        if (!DeviceKind.isKind(device)) {
            throw new BadInputException(
                    "the device: expected auto, cpu, reference, cuda or cuda:N, got " + device);
        }
        if (weights != Weights.FLOAT32 && new DeviceKind(device).isCuda()) {
            throw new BadInputException(
                    "the weights: expected FLOAT32 with %s, got %s; try cpu"
                            .formatted(device, weights));
        }
        TrainedModel trained = TrainedModel.openForText(place, _ -> {});
        try {
            ModelShape shape = trained.shape();
            int stages = Math.min(trained.stagesOfRun(), shape.layers() + 2);
            var pipeline =
                    new PipelineInference(
                            shape,
                            StagePartition.byFlops(shape, stages),
                            held(weights),
                            trained.tensors()::fill,
                            ConfiguredDevices.of(new DeviceKind(device), stages));
            return new Model(
                    place, trained, trained.tokenizer().or(trained::tokenizerOfItsSize), pipeline);
        } catch (RuntimeException e) {
            trained.close();
            throw e;
        }
    }

    private static HeldWeights held(Weights weights) {
        return switch (weights) {
            case FLOAT32 -> HeldWeights.FLOAT32;
            case BF16 -> HeldWeights.BF16;
            case INT8 -> HeldWeights.INT8;
        };
    }

    /** Returns the training step of its checkpoint; empty for weights that are of no run. */
    public OptionalLong step() {
        return trained.checkpoint().stream().mapToLong(SavedCheckpoint::step).findFirst();
    }

    /** Returns the most tokens that it sees at once. */
    public int context() {
        return trained.shape().context();
    }

    /** Returns how many tokens it knows. */
    public int vocabulary() {
        return trained.shape().vocabulary();
    }

    /**
     * Continues a text.
     *
     * @param prompt empty: as a document begins
     * @throws PenstockException if the prompt is longer than the context or has tokens that the
     *     model does not know, or the model has no tokenizer
     */
    public Generated generate(String prompt, Generation how) {
        requireNonNull(prompt, "prompt");
        return generate(List.of(prompt), how).getFirst();
    }

    /**
     * Continues several texts side by side, in the order of the prompts. The texts of one seed
     * continue differently.
     *
     * @throws PenstockException as of one text
     */
    public List<Generated> generate(List<String> prompts, Generation how) {
        requireNonNull(prompts, "prompts");
        requireNonNull(how, "how");
        return Failures.telling(
                () -> {
                    Tokenizer known = tokenizer();
                    List<int[]> encoded =
                            prompts.stream().map(prompt -> encoded(known, prompt)).toList();
                    return continued(encoded, how, known.endOfText(), token -> true).stream()
                            .map(text -> told(known, text))
                            .toList();
                });
    }

    /**
     * Continues a text and hands on each token when it is chosen.
     *
     * @param onToken gets the text so far, without the prompt; returns false to end it. On a thread
     *     of the pipeline: must return quickly
     * @throws PenstockException as of one text
     */
    public Generated generate(String prompt, Generation how, Predicate<String> onToken) {
        requireNonNull(prompt, "prompt");
        requireNonNull(how, "how");
        requireNonNull(onToken, "onToken");
        return Failures.telling(
                () -> {
                    Tokenizer known = tokenizer();
                    List<Integer> sofar = new ArrayList<>();
                    Predicate<Integer> each =
                            token -> {
                                sofar.add(token);
                                return onToken.test(
                                        known.decode(sofar.stream().mapToInt(t -> t).toArray()));
                            };
                    List<int[]> encoded = List.of(encoded(known, prompt));
                    return told(known, continued(encoded, how, known.endOfText(), each).getFirst());
                });
    }

    /**
     * Continues a row of tokens.
     *
     * @param prompt at least one token
     * @return the tokens that were chosen
     * @throws PenstockException as of a text, but for the tokenizer
     */
    public int[] generate(int[] prompt, Generation how) {
        requireNonNull(prompt, "prompt");
        requireNonNull(how, "how");
        return Failures.telling(
                () -> {
                    check(prompt);
                    return continued(List.of(prompt), how, OptionalInt.empty(), token -> true)
                            .getFirst()
                            .tokens();
                });
    }

    private List<Continuation> continued(
            List<int[]> prompts, Generation how, OptionalInt end, Predicate<Integer> onToken) {
        var sampling = new Sampling(how.temperature(), how.topK(), how.topP(), how.seed());
        var request = new InferenceRequest(prompts, how.tokens(), sampling, end, true);
        PipelineInference.Result result =
                pipeline.run(request, (_, token) -> onToken.test(token), _ -> {});
        if (result.outcome() instanceof RunOutcome.Failed(_, String reason)) {
            throw new RunFailedException(reason);
        }
        return result.texts();
    }

    private static Generated told(Tokenizer tokenizer, Continuation text) {
        return new Generated(
                tokenizer.decode(text.tokens()),
                Arrays.stream(text.tokens()).boxed().toList(),
                text.end() == Continuation.End.END_OF_TEXT);
    }

    /** A document begins after the separator of the one before. */
    private int[] encoded(Tokenizer known, String prompt) {
        int[] tokens =
                prompt.isEmpty() ? new int[] {known.documentSeparator()} : known.encode(prompt);
        check(tokens);
        return tokens;
    }

    private void check(int[] tokens) {
        List<Problem> problems = new ArrayList<>();
        if (tokens.length == 0 || tokens.length > context()) {
            problems.add(
                    Problem.atOption(
                            "the prompt",
                            "1 to %d tokens, the model's context".formatted(context()),
                            "" + tokens.length,
                            "give its last part"));
        }
        List<Integer> unknown =
                IntStream.of(tokens).filter(t -> t < 0 || t >= vocabulary()).boxed().toList();
        if (!unknown.isEmpty()) {
            problems.add(
                    Problem.atOption(
                            "the prompt",
                            "tokens from 0 to %d, which the model knows"
                                    .formatted(vocabulary() - 1),
                            unknown.toString(),
                            "use the tokenizer that it was trained with"));
        }
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
    }

    /**
     * Measures it on texts, in windows that do not overlap.
     *
     * @param source a file, a folder or a glob; {@code .jsonl} are JSON lines, {@code .parquet}
     *     tables
     * @throws PenstockException if they cannot be read, or the model has no tokenizer
     */
    public Measured evaluate(Path source) {
        requireNonNull(source, "source");
        return measure(source, TaskRequest.PLAIN_TEXT);
    }

    /**
     * Measures it on a task by a published protocol.
     *
     * @param task {@code text}, {@code wikitext}, {@code lambada} or {@code choices}
     * @param protocol {@code plain}, {@code megatron} or {@code lm-eval}
     * @throws PenstockException also if the task has no such protocol
     */
    public Measured evaluate(Path source, String task, String protocol) {
        requireNonNull(source, "source");
        requireNonNull(task, "task");
        requireNonNull(protocol, "protocol");
        List<DataProblem> problems = new ArrayList<>();
        Optional<TaskRequest> request =
                TaskRequest.read(task, protocol, null, name -> name, problems);
        return measure(
                source,
                request.orElseThrow(
                        () ->
                                new PenstockException(
                                        problems.stream().map(DataProblem::toString).toList(),
                                        null)));
    }

    private Measured measure(Path source, TaskRequest request) {
        return Failures.telling(
                () -> {
                    int window = trained.contextOfRun().orElse(context());
                    PreparedTask task =
                            TaskData.of(source.toAbsolutePath(), false)
                                    .prepare(request, tokenizer(), Math.min(window, context()));
                    if (task.largestToken() >= vocabulary()) {
                        check(new int[] {task.largestToken()});
                    }
                    PipelineInference.Scores scores =
                            pipeline.score(task.windows(), _ -> {}, _ -> {});
                    if (scores.outcome() instanceof RunOutcome.Failed(_, String reason)) {
                        throw new RunFailedException(reason);
                    }
                    return new Measured(
                            request.task().word(),
                            request.protocol().word(),
                            task.total(scores.scores()).measures());
                });
    }

    private Tokenizer tokenizer() {
        if (tokenizer == null) {
            throw new BadInputException(
                    "%s: expected the files of a tokenizer beside the weights, got none; give tokens instead of text"
                            .formatted(place));
        }
        return tokenizer;
    }

    /**
     * Serves it in OpenAI's protocol to programs of this machine, until the server is closed. Texts
     * of all clients share every pass. Returns when the weights are loaded.
     *
     * @param port 0 for any that is free
     * @throws PenstockException if the port is taken, or the model has no tokenizer
     */
    public ModelServer serve(int port) {
        return serve(new ServeAddress(InetAddress.getLoopbackAddress(), port, Optional.empty()));
    }

    /**
     * The same to everybody who reaches an address and shows a key.
     *
     * @param key of 1 to 1000 visible ASCII characters
     */
    public ModelServer serve(InetAddress address, int port, String key) {
        requireNonNull(address, "address");
        requireNonNull(key, "key");
        return serve(ServeAddress.of(address, port, Optional.of(key)));
    }

    private ModelServer serve(ServeAddress address) {
        return Failures.telling(
                () -> {
                    if (address.port() < 0 || address.port() > MOST_PORT) {
                        throw new BadInputException(
                                "port: expected 0 to %d, got %d; try 0 for any that is free"
                                        .formatted(MOST_PORT, address.port()));
                    }
                    return ModelServer.start(
                            address, place, trained, tokenizerName, tokenizer(), pipeline);
                });
    }

    /** Lets go of the weights; once more does nothing. */
    @Override
    public void close() {
        if (!closed.getAndSet(true)) {
            trained.close();
        }
    }
}
