package dev.penstock.runtime.cli;

import dev.penstock.cuda.Devices;
import dev.penstock.cuda.device.Device;
import dev.penstock.cuda.device.DeviceSettings;
import dev.penstock.runtime.checkpoint.Gpt2Config;
import dev.penstock.runtime.config.DataSection;
import dev.penstock.runtime.model.GptGenerator;
import dev.penstock.runtime.model.GptShape;
import dev.penstock.runtime.model.Precision;
import dev.penstock.runtime.model.Sampling;
import dev.penstock.runtime.tokenizer.StreamingDecoder;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntPredicate;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Lets a trained model continue a text. */
@Command(
        name = "generate",
        description = "Lets a trained model continue a text.",
        footer = {
            "  penstock generate runs/quickstart-1 --prompt \"public final \" --tokens 200",
            "  penstock generate gpt/model.safetensors --temperature 0.8 --top-k 40",
        })
final class GenerateCommand extends PenstockCommand {
    /** The answer for programs. */
    record Answer(String prompt, String text, List<Integer> tokens) {}

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
            defaultValue = "",
            description = "The text to go on from; nothing: as a document begins.")
    private String prompt = "";

    @Option(
            names = "--tokens",
            paramLabel = "N",
            defaultValue = "200",
            description = "Tokens to generate (default: ${DEFAULT-VALUE}).")
    private int count;

    @Option(
            names = "--tokenizer",
            paramLabel = "NAME",
            description = "bytes or gpt2 (default: what fits the model's vocabulary).")
    private @Nullable String tokenizerName;

    @Mixin private SamplingArguments sampling = new SamplingArguments();

    @Option(names = "--json", description = "Print one JSON document when all is generated.")
    private boolean json;

    @Override
    public Integer call() {
        Sampling choice = sampling.read(count);
        try (TrainedModel model = TrainedModel.open(path, err()::println)) {
            err().flush();
            Tokenizer tokenizer = tokenizerFor(model.config());
            generate(model, tokenizer, choice);
        }
        return ExitCode.OK;
    }

    private void generate(TrainedModel model, Tokenizer tokenizer, Sampling choice) {
        Gpt2Config config = model.config();
        GptShape shape =
                new GptShape(
                        config.vocabulary(),
                        config.context(),
                        config.width(),
                        config.layers(),
                        config.heads(),
                        config.tied());
        int[] start =
                prompt.isEmpty()
                        ? new int[] {tokenizer.documentSeparator()}
                        : tokenizer.encode(prompt);
        requireKnown(start, config.vocabulary());
        try (Device device = Devices.open(DeviceSettings.DEFAULTS);
                GptGenerator generator =
                        new GptGenerator(device, shape, Precision.FLOAT32, model.tensors()::fill)) {
            if (json) {
                int[] tokens = generator.generate(start, count, choice, _ -> true);
                printJson(
                        new Answer(
                                prompt,
                                tokenizer.decode(tokens),
                                Arrays.stream(tokens).boxed().toList()));
            } else {
                stream(tokenizer, watch -> generator.generate(start, count, choice, watch));
            }
        }
    }

    private interface Generation {
        int[] run(IntPredicate watch);
    }

    /** Prints the text as it comes. */
    private void stream(Tokenizer tokenizer, Generation generation) {
        StreamingDecoder decoder = new StreamingDecoder(tokenizer);
        PrintWriter out = out();
        out.print(prompt);
        int[] tokens =
                generation.run(
                        token -> {
                            out.print(decoder.next(token));
                            out.flush();
                            return !out.checkError();
                        });
        out.println(tokens.length == 0 ? "" : decoder.end());
        out.flush();
    }

    private Tokenizer tokenizerFor(Gpt2Config config) {
        int gpt2 = DataSection.Tokenizer.GPT2.vocabulary();
        String fitting = config.vocabulary() < gpt2 ? "bytes" : "gpt2";
        try {
            return Tokenizer.named(tokenizerName == null ? fitting : tokenizerName);
        } catch (IllegalArgumentException e) {
            throw new BadInputException(String.valueOf(e.getMessage()));
        }
    }

    private static void requireKnown(int[] tokens, int vocabulary) {
        List<Integer> unknown = new ArrayList<>();
        for (int token : tokens) {
            if (token >= vocabulary) {
                unknown.add(token);
            }
        }
        if (!unknown.isEmpty()) {
            throw new BadInputException(
                    "the model knows tokens 0 to %d, but the prompt has %s; try the --tokenizer it was trained with"
                            .formatted(vocabulary - 1, unknown));
        }
    }
}
