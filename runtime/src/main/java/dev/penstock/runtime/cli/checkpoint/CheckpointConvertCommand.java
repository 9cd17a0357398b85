package dev.penstock.runtime.cli.checkpoint;

import dev.penstock.runtime.checkpoint.CheckpointConversion;
import dev.penstock.runtime.checkpoint.CheckpointIdentity;
import dev.penstock.runtime.checkpoint.HuggingFaceExport;
import dev.penstock.runtime.checkpoint.Manifest;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.checkpoint.WeightsExport;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.StagePartition;
import dev.penstock.runtime.weights.WeightsFiles;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Writes a checkpoint in another layout of files, or in another program's format, and back. */
@Command(
        name = "convert",
        description = {
            "Writes a checkpoint or Hugging Face weights in another form, and reads it back.",
            "A checkpoint goes to TO/checkpoints, where train --run-dir TO --resume goes on with"
                    + " it. Weights without the optimizer's state become a checkpoint of step 0."
        },
        footer = {
            "  penstock checkpoint convert runs/quickstart-1 runs/two --stages 2",
            "  penstock checkpoint convert runs/quickstart-1 gpt --format huggingface",
            "  penstock checkpoint convert gpt half --format huggingface --type bf16",
            "  penstock checkpoint convert gpt runs/tuned --whole",
        })
final class CheckpointConvertCommand extends PenstockCommand {
    /** The answer for programs. */
    record Answer(String from, String to, long step, List<String> files, long bytes) {}

    /** The names of other programs' formats. */
    enum Format {
        huggingface
    }

    /** What is wanted. */
    static final class Form {
        @Option(names = "--whole", description = "One file with all tensors.")
        @SuppressWarnings("unused") // what is written unless another form is asked for
        private boolean whole;

        @Option(
                names = "--stages",
                paramLabel = "N",
                description = "One file for each of N stages.")
        private @Nullable Integer stages;

        @Option(
                names = "--partition",
                split = ",",
                paramLabel = "L",
                description = "One file for each stage; the layers of each, such as 3,4,4,1.")
        private @Nullable List<Integer> partition;

        @Option(
                names = "--format",
                paramLabel = "FORMAT",
                description =
                        "Weights alone, as another program reads them: ${COMPLETION-CANDIDATES}.")
        private @Nullable Format format;
    }

    @Parameters(
            index = "0",
            paramLabel = "FROM",
            description =
                    "A checkpoint, a run's folder (its newest whole checkpoint), or Hugging Face"
                            + " weights with their config.json.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path from;

    @Parameters(
            index = "1",
            paramLabel = "TO",
            description = "A folder; nothing in it is ever replaced.")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path to;

    @ArgGroup(multiplicity = "1")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Form form;

    @Mixin private ExportArguments arguments = new ExportArguments();

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        List<Problem> problems = arguments.problems(false);
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        WeightsExport.Form weightsForm = arguments.form();
        if (form.format == null && !weightsForm.equals(WeightsExport.Form.AS_STORED)) {
            throw new BadInputException(
                    "expected --type and --part-size with --format alone: a checkpoint is f32");
        }
        try (TrainedModel model =
                form.format == null
                        ? TrainedModel.asSaved(from, err()::println)
                        : TrainedModel.open(from, err()::println)) {
            err().flush();
            tell(form.format == null ? toCheckpoint(model) : toWeights(model, weightsForm));
        }
        return ExitCode.OK;
    }

    private Answer toCheckpoint(TrainedModel model) {
        StagePartition partition = partition(model.config());
        Optional<Manifest> manifest = model.checkpoint().map(SavedCheckpoint::manifest);
        var identity =
                new CheckpointIdentity(
                        model.config(),
                        manifest.map(Manifest::configHash).orElse(""),
                        manifest.map(Manifest::seed).orElse(0L));
        var conversion =
                new CheckpointConversion(
                        model.tensors(), identity, manifest.map(Manifest::step).orElse(0L));
        var tokenizer = new KeptTokenizer(to, arguments.keptFiles(model, err()::println));
        err().flush();
        SavedCheckpoint written;
        tokenizer.write(); // first: a checkpoint that is there has its tokenizer
        try {
            written = conversion.write(to, partition.stages(), name -> stageOf(name, partition));
        } catch (RuntimeException e) {
            tokenizer.remove();
            throw e;
        }
        return new Answer(
                from.toString(),
                written.path().toString(),
                written.step(),
                written.manifest().shards().stream().map(shard -> shard.file()).toList(),
                written.manifest().shards().stream().mapToLong(shard -> shard.bytes()).sum());
    }

    private StagePartition partition(ModelConfig config) {
        ModelShape shape = config.shape();
        try {
            return form.partition != null
                    ? StagePartition.given(shape, form.partition)
                    : StagePartition.byFlops(shape, form.stages == null ? 1 : form.stages);
        } catch (IllegalArgumentException e) {
            throw new BadInputException(
                    (form.partition != null ? "--partition: " : "--stages: ") + e.getMessage());
        }
    }

    /** As a run's stages hold them. */
    private static int stageOf(String name, StagePartition partition) {
        if (!name.startsWith("h.")) {
            return name.startsWith("w") ? 0 : partition.stages() - 1;
        }
        int layer = Integer.parseInt(name.substring(2, name.indexOf('.', 2)));
        int stage = 0;
        for (int end = partition.layersPerStage().getFirst(); layer >= end; ) {
            stage++;
            end += partition.layersPerStage().get(stage);
        }
        return stage;
    }

    private Answer toWeights(TrainedModel model, WeightsExport.Form weightsForm) {
        Path weights = to.resolve("model.safetensors");
        Path config = to.resolve(ModelConfig.FILE);
        Path index = to.resolve(weights.getFileName() + WeightsFiles.INDEX);
        Set<Path> left = WeightsExport.leftBehind(weights);
        List<Path> there =
                Stream.of(to, weights, index, config)
                        .filter(file -> Files.exists(file) && !left.contains(file))
                        .toList();
        if (there.size() > 1 || Files.isRegularFile(to)) {
            throw new BadInputException(
                    "expected a folder without %s, got %s; try another"
                            .formatted("model.safetensors and config.json", there.getLast()));
        }
        Map<String, String> texts = arguments.tokenizerFiles(model);
        List<Path> others = WeightsExport.inTheWay(weights, texts);
        if (!others.isEmpty()) {
            throw new BadInputException(
                    "expected a folder without such files, got %s; try another"
                            .formatted(
                                    others.stream()
                                            .map(Path::toString)
                                            .collect(Collectors.joining(" and "))));
        }
        List<Path> files =
                HuggingFaceExport.write(
                        weights, model.config(), model.tensors(), weightsForm, texts);
        return new Answer(
                from.toString(),
                to.toString(),
                model.checkpoint().map(SavedCheckpoint::step).orElse(0L),
                Stream.concat(files.stream(), Stream.of(config))
                        .map(file -> file.getFileName().toString())
                        .toList(),
                files.stream().mapToLong(file -> file.toFile().length()).sum());
    }

    private void tell(Answer answer) {
        if (json) {
            printJson(answer);
            return;
        }
        out().printf(
                        "%s: step %d of %s in %s, %,d bytes; read back: equal%n",
                        answer.to(),
                        answer.step(),
                        answer.from(),
                        answer.files().size() == 1
                                ? answer.files().getFirst()
                                : answer.files().size() + " files",
                        answer.bytes());
        out().flush();
    }
}
