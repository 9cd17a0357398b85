package dev.penstock.runtime.cli.train;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cli.command.WholeNumber;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.DeviceKind;
import dev.penstock.runtime.inference.Continuation;
import dev.penstock.runtime.inference.InferenceRequest;
import dev.penstock.runtime.inference.PipelineInference;
import dev.penstock.runtime.inference.TokenListener;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.launch.Interrupts;
import dev.penstock.runtime.launch.devices.ConfiguredDevices;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Continues texts with a trained model. */
@Command(
        name = "generate",
        description = {
            "Continues a text, or several side by side, with a trained model.",
            "Tokens stream through the pipeline's stages, which keep keys and values of earlier"
                    + " ones. A text that outgrows the model's context goes on from the younger"
                    + " half of it. It ends after --tokens, or where the model ends it"
                    + " (any tokenizer but bytes)."
        },
        footer = {
            "  penstock generate runs/quickstart-1 --prompt \"public final \" --tokens 200",
            "  penstock generate runs/quickstart-1 --stages 2 \\",
            "      --prompt \"int \" --prompt \"long \" --seed 7",
            "  penstock generate gpt/model.safetensors --temperature 0.8 --top-k 40",
        })
public final class GenerateCommand extends PenstockCommand {
    /** The answer for programs: one, or a list of them for several prompts. */
    record Answer(String prompt, String text, List<Integer> tokens, String end) {}

    @Parameters(
            paramLabel = "CHECKPOINT|RUN_DIR|WEIGHTS",
            description =
                    "A checkpoint, a run's folder (its newest whole checkpoint), or weights in the"
                            + " Hugging Face format (a file or folder with config.json beside).")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path path;

    @Option(
            names = "--prompt",
            paramLabel = "TEXT",
            description = "The text to go on from; may be repeated. Without: as a document begins.")
    private List<String> prompts = new ArrayList<>();

    @Option(
            names = "--tokens",
            paramLabel = "N",
            defaultValue = "200",
            description = "Maximum tokens to generate per prompt (default: ${DEFAULT-VALUE}).")
    @WholeNumber(from = 1)
    private int count;

    @Mixin private ModelArguments usage = new ModelArguments();

    @Mixin private WeightArguments weights = new WeightArguments();

    @Mixin private SamplingArguments sampling = new SamplingArguments();

    @Option(names = "--json", description = "Print one JSON document when all is generated.")
    private boolean json;

    private final AtomicBoolean interrupted = new AtomicBoolean();

    @Override
    public Integer call() {
        List<Problem> problems = new ArrayList<>(sampling.problems());
        checkOptions(problems);
        problems.addAll(usage.problems());
        problems.addAll(weights.problems(usage.device().orElse(DeviceKind.AUTO)));
        try (TrainedModel model = open(problems)) {
            err().flush();
            if (model != null) {
                int stages = usage.stagesOf(model, model.stagesOfRun(), problems);
                problems.addAll(usage.problemsOfDevice(model, DeviceKind.AUTO));
                Tokenizer tokenizer = usage.tokenizerOf(model, model.tokenizer(), problems);
                List<int[]> tokens = encode(tokenizer, model.config(), problems);
                if (problems.isEmpty()) {
                    return generate(model, tokenizer, stages, tokens);
                }
            }
            throw new ConfigException(problems);
        }
    }

    private void checkOptions(List<Problem> problems) {
        if (count < 1) {
            problems.add(Problem.atOption("--tokens", "1 or more", "" + count, ""));
        }
        if (prompts.stream().anyMatch(String::isEmpty)) {
            problems.add(
                    Problem.atOption(
                            "--prompt",
                            "a text",
                            "an empty one",
                            "leave the option out to begin as a document begins"));
        }
    }

    private @Nullable TrainedModel open(List<Problem> problems) {
        try {
            return TrainedModel.openForText(path, err()::println);
        } catch (StoredFileException e) {
            problems.add(
                    Problem.atOption(
                            "RUN_DIR",
                            "a run, a checkpoint or weights",
                            String.valueOf(e.getMessage()),
                            ""));
            return null;
        }
    }

    /** Tokens of all prompts; a document begins after the separator of the one before. */
    private List<int[]> encode(Tokenizer tokenizer, ModelConfig config, List<Problem> problems) {
        if (prompts.isEmpty()) {
            prompts = List.of("");
        }
        List<int[]> encoded = new ArrayList<>();
        for (int i = 0; i < prompts.size(); i++) {
            String text = prompts.get(i);
            int[] tokens =
                    text.isEmpty()
                            ? new int[] {tokenizer.documentSeparator()}
                            : tokenizer.encode(text);
            String option = prompts.size() == 1 ? "--prompt" : "--prompt " + (i + 1);
            check(option, tokens, config, problems);
            encoded.add(tokens);
        }
        return encoded;
    }

    private static void check(
            String option, int[] tokens, ModelConfig config, List<Problem> problems) {
        if (tokens.length > config.shape().context()) {
            problems.add(
                    Problem.atOption(
                            option,
                            "at most %d tokens, the model's context"
                                    .formatted(config.shape().context()),
                            "%d".formatted(tokens.length),
                            "give its last part"));
        }
        List<Integer> unknown =
                IntStream.of(tokens).filter(t -> t >= config.shape().vocabulary()).boxed().toList();
        if (!unknown.isEmpty()) {
            problems.add(
                    Problem.atOption(
                            option,
                            "tokens from 0 to %d, which the model knows"
                                    .formatted(config.shape().vocabulary() - 1),
                            unknown.toString(),
                            "try the --tokenizer it was trained with"));
        }
    }

    private int generate(TrainedModel model, Tokenizer tokenizer, int stages, List<int[]> tokens) {
        ModelShape shape = model.shape();
        var pipeline =
                new PipelineInference(
                        shape,
                        StagePartition.byFlops(shape, stages),
                        weights.held(),
                        model.tensors()::fill,
                        ConfiguredDevices.of(usage.device().orElse(DeviceKind.AUTO), stages));
        var request =
                new InferenceRequest(
                        tokens, count, sampling.sampling(), tokenizer.endOfText(), true);
        return json
                ? answer(run(pipeline, request, (_, _) -> true), tokenizer)
                : print(pipeline, request, tokenizer);
    }

    private PipelineInference.Result run(
            PipelineInference pipeline, InferenceRequest request, TokenListener listener) {
        // not before there is a text to end: a long one's order takes its time to be proved
        return pipeline.run(
                request,
                listener,
                stop ->
                        Interrupts.install()
                                .onInterrupt(
                                        () -> {
                                            interrupted.set(true);
                                            stop.run();
                                        }));
    }

    private int print(PipelineInference pipeline, InferenceRequest request, Tokenizer tokenizer) {
        var printer = new TextPrinter(prompts, tokenizer, out());
        RunOutcome outcome = run(pipeline, request, printer).outcome();
        printer.finish();
        return exitCode(outcome);
    }

    private int answer(PipelineInference.Result result, Tokenizer tokenizer) {
        List<Answer> answers = new ArrayList<>();
        for (int i = 0; i < prompts.size(); i++) {
            Continuation text = result.texts().get(i);
            answers.add(
                    new Answer(
                            prompts.get(i),
                            tokenizer.decode(text.tokens()),
                            Arrays.stream(text.tokens()).boxed().toList(),
                            text.end().name().toLowerCase(Locale.ROOT).replace('_', '-')));
        }
        int exitCode = exitCode(result.outcome());
        if (exitCode != ExitCode.FAILURE) {
            printJson(answers.size() == 1 ? answers.getFirst() : answers);
        }
        return exitCode;
    }

    private int exitCode(RunOutcome outcome) {
        int exitCode = ExitCode.of(outcome, err());
        return exitCode == ExitCode.OK && interrupted.get() ? ExitCode.INTERRUPTED : exitCode;
    }
}
