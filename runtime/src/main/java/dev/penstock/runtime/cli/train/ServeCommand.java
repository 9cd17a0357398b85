package dev.penstock.runtime.cli.train;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.chat.ChatTemplate;
import dev.penstock.runtime.chat.TemplateException;
import dev.penstock.runtime.cli.cluster.ClusterServe;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cluster.ServeOrder;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.DeviceKind;
import dev.penstock.runtime.inference.ApartPipeline;
import dev.penstock.runtime.inference.JoiningTexts;
import dev.penstock.runtime.inference.PipelineInference;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.launch.Interrupts;
import dev.penstock.runtime.launch.devices.ConfiguredDevices;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.serve.InferenceServer;
import dev.penstock.runtime.serve.ServeAddress;
import dev.penstock.runtime.serve.ServedModel;
import dev.penstock.runtime.serve.UsualTemplate;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Serves a trained model. */
@Command(
        name = "serve",
        description = {
            "Serves a trained model by HTTP in OpenAI's protocol (/v1/completions,"
                    + " /v1/chat/completions, /v1/models), with a page to talk with it at /.",
            "Texts of all clients share every pass through the pipeline: they join when they come"
                    + " and leave when they end, and each is what generate writes for it. Ctrl-C"
                    + " ends it.",
            "With --cluster, the stages are on the nodes of a cluster, two of them on each rank."
        },
        footer = {
            "  penstock serve runs/quickstart-1",
            "  penstock serve gpt/model.safetensors --port 8080 --together 16",
            "  penstock serve runs/quickstart-1 --host 0.0.0.0 --api-key-file key.txt",
            "  penstock serve runs/quickstart-1 --stages 2 --cluster 127.0.0.1:2551",
        })
public final class ServeCommand extends PenstockCommand {
    @Parameters(
            paramLabel = "CHECKPOINT|RUN_DIR|WEIGHTS",
            description =
                    "A checkpoint, a run's folder (its newest whole checkpoint), or weights in the"
                            + " Hugging Face format (a file or folder with config.json beside).")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path path;

    @Option(
            names = "--name",
            paramLabel = "NAME",
            description = "By which requests name the model (default: that of its folder or file).")
    private @Nullable String name;

    @Option(
            names = "--chat-template",
            paramLabel = "NAME",
            description =
                    "How a conversation is written for the model: tokenizer (by the template in its"
                            + " files), chatml, llama3 or plain (default: as in the chats of its"
                            + " run, else tokenizer if there is one, else chatml if its marks are"
                            + " tokens of the model, else plain).")
    private @Nullable String template;

    @Mixin private ServeArguments serving = new ServeArguments();

    @Mixin private ServeClusterArguments cluster = new ServeClusterArguments();

    @Mixin private ModelArguments usage = new ModelArguments();

    @Mixin private WeightArguments weights = new WeightArguments();

    @Override
    public Integer call() {
        List<Problem> problems = new ArrayList<>();
        serving.check(problems);
        cluster.check(problems);
        problems.addAll(usage.problems());
        problems.addAll(weights.problems(usage.device().orElse(DeviceKind.AUTO)));
        if (template != null && !templates().contains(template)) {
            problems.add(
                    Problem.atOption(
                            "--chat-template",
                            "one of " + String.join(", ", templates()),
                            template,
                            ""));
        }
        if (name != null && name.isBlank()) {
            problems.add(Problem.atOption("--name", "a name", "an empty one", ""));
        }
        Optional<ServeAddress> address = serving.address(problems);
        if (cluster.isGiven() && address.filter(known -> known.port() == 0).isPresent()) {
            problems.add(
                    Problem.atOption(
                            "--port", "1 to 65535 with --cluster, as a node takes it", "0", ""));
        }
        try (TrainedModel model = open(problems)) {
            err().flush();
            if (model != null) {
                int stages = stages(model, problems);
                problems.addAll(usage.problemsOfDevice(model, DeviceKind.AUTO));
                problems.addAll(serving.problems(model.shape()));
                Tokenizer tokenizer = usage.tokenizerOf(model, model.tokenizer(), problems);
                if (problems.isEmpty()) {
                    return cluster.isGiven()
                            ? serveInCluster(model, tokenizer, stages, address.orElseThrow())
                            : serve(model, tokenizer, stages, address.orElseThrow());
                }
            }
            throw new ConfigException(problems);
        }
    }

    /** In a cluster, of ranks that have two of them each. */
    private int stages(TrainedModel model, List<Problem> problems) {
        if (!cluster.isGiven()) {
            return usage.stagesOf(model, model.stagesOfRun(), problems);
        }
        int most = ApartPipeline.mostRanks(model.shape());
        return usage.stagesOf(model, Math.min(most, model.stagesOfRun()), most, problems);
    }

    private int serveInCluster(
            TrainedModel model, Tokenizer tokenizer, int ranks, ServeAddress address) {
        String word =
                new UsualTemplate(model, usage.tokenizerName(model), tokenizer)
                        .word(Optional.ofNullable(template));
        var _ = template(model, tokenizer);
        var order =
                new ServeOrder(
                        name == null ? nameOfFolder() : name,
                        path.toAbsolutePath().normalize(),
                        usage.tokenizerToSay(model).orElseThrow(),
                        word,
                        ranks,
                        weights.held(),
                        serving.limits(model.shape()),
                        usage.device().orElse(DeviceKind.AUTO).word(),
                        serving.host(),
                        address.port(),
                        address.keyHash(),
                        cluster.ranksPerNode(),
                        cluster.dataPort());
        return new ClusterServe(cluster.seeds(serving.isInsecure()), out(), err()).call(order);
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

    private int serve(TrainedModel model, Tokenizer tokenizer, int stages, ServeAddress address) {
        ModelShape shape = model.shape();
        var pipeline =
                new PipelineInference(
                        shape,
                        StagePartition.byFlops(shape, stages),
                        weights.held(),
                        model.tensors()::fill,
                        ConfiguredDevices.of(usage.device().orElse(DeviceKind.AUTO), stages));
        JoiningTexts texts = pipeline.joiningTexts(serving.limits(shape));
        var served =
                new ServedModel(
                        name == null ? nameOfFolder() : name,
                        tokenizer,
                        shape.vocabulary(),
                        shape.context(),
                        texts.limits().tokens(),
                        template(model, tokenizer));
        Interrupts interrupts = Interrupts.install();
        try (InferenceServer server = InferenceServer.start(address, served, texts)) {
            Thread.ofVirtual().start(() -> tellWhenReady(texts, served, server));
            RunOutcome outcome =
                    pipeline.serve(
                            texts,
                            stop ->
                                    interrupts.onInterrupt(
                                            () -> {
                                                texts.close();
                                                stop.run();
                                            }));
            return outcome instanceof RunOutcome.Failed ? ExitCode.of(outcome, err()) : ExitCode.OK;
        } catch (IOException e) {
            throw new ConfigException(List.of(serving.taken(e)));
        }
    }

    /** A failure while the weights are read is no server that serves. */
    private void tellWhenReady(JoiningTexts texts, ServedModel served, InferenceServer server) {
        try {
            if (texts.awaitReady()) {
                out().printf("serving %s: %s%n", served.name(), server.url());
                out().flush();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private String nameOfFolder() {
        Path place = path.toAbsolutePath().normalize();
        Path folder = place.getParent();
        boolean generic =
                requireNonNull(place.getFileName()).toString().equals("model.safetensors");
        return generic && folder != null && folder.getFileName() != null
                ? folder.getFileName().toString()
                : requireNonNull(place.getFileName()).toString();
    }

    private static List<String> templates() {
        return Stream.concat(Stream.of(ChatTemplate.OF_TOKENIZER), ChatTemplate.names().stream())
                .toList();
    }

    private ChatTemplate template(TrainedModel model, Tokenizer tokenizer) {
        Optional<String> word = Optional.ofNullable(template);
        var usual = new UsualTemplate(model, usage.tokenizerName(model), tokenizer);
        try {
            return usual.orAsked(word);
        } catch (TemplateException e) {
            throw new ConfigException(
                    List.of(
                            Problem.atOption(
                                    "--chat-template",
                                    "a template that can be read",
                                    usual.word(word) + ": " + e.getMessage(),
                                    "try --chat-template chatml")));
        }
    }
}
