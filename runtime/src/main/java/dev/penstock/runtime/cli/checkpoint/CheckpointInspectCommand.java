package dev.penstock.runtime.cli.checkpoint;

import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.CheckpointReader;
import dev.penstock.runtime.checkpoint.Manifest;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.model.family.AdapterParts;
import dev.penstock.runtime.model.family.ModelConfig;
import dev.penstock.runtime.model.family.TrainedWords;
import java.nio.file.Path;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Shows what a checkpoint holds. */
@Command(
        name = "inspect",
        description = "Shows the step, the model and the files of a checkpoint.",
        footer = {
            "  penstock checkpoint inspect runs/quickstart-1",
            "  penstock checkpoint inspect runs/quickstart-1 --tensors",
        })
final class CheckpointInspectCommand extends PenstockCommand {
    /**
     * The answer for programs.
     *
     * @param parameters of the model
     * @param adapter in words; empty if there is none
     * @param adapterParameters beside those of the model
     * @param trainedParameters of the model and its adapter that the run trains
     * @param freeze patterns of names that are not trained, as {@code fine-tune.freeze}
     */
    record Answer(
            String path,
            long step,
            long seed,
            ModelConfig model,
            long parameters,
            String adapter,
            long adapterParameters,
            long trainedParameters,
            List<String> freeze,
            List<FileAnswer> files,
            List<TensorAnswer> tensors) {}

    /**
     * What a rank wrote of a stage.
     *
     * @param tensors of which it has something
     * @param pieces how many of them it has in part only
     */
    record FileAnswer(int stage, String file, long bytes, String sha256, int tensors, int pieces) {}

    /**
     * A tensor as it is stored.
     *
     * @param parts how many files hold it together
     */
    record TensorAnswer(String name, String type, List<Integer> shape, int parts) {}

    @Parameters(
            paramLabel = "CHECKPOINT|RUN_DIR",
            description = "A checkpoint, or a run's folder (its newest whole checkpoint).")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path path;

    @Option(names = "--tensors", description = "List every tensor.")
    private boolean tensors;

    @Option(names = "--json", description = "Print one JSON document, tensors included.")
    private boolean json;

    @Override
    public Integer call() {
        SavedCheckpoint checkpoint = CheckpointFolders.find(path, err()::println);
        err().flush();
        Answer answer = answer(checkpoint);
        if (json) {
            printJson(answer);
        } else {
            print(answer);
        }
        return ExitCode.OK;
    }

    private static Answer answer(SavedCheckpoint checkpoint) {
        Manifest manifest = checkpoint.manifest();
        try (CheckpointReader reader = checkpoint.read()) {
            List<TensorAnswer> stored =
                    reader.tensors().stream()
                            .map(
                                    t ->
                                            new TensorAnswer(
                                                    t.name(),
                                                    t.type().name(),
                                                    t.shape(),
                                                    t.parts()))
                            .toList();
            ModelConfig model = manifest.model();
            long parameters = TrainedWords.elements(model.base().parameters());
            return new Answer(
                    checkpoint.path().toString(),
                    checkpoint.step(),
                    manifest.seed(),
                    model,
                    parameters,
                    AdapterParts.words(model).orElse(""),
                    TrainedWords.elements(model.parameters()) - parameters,
                    TrainedWords.elements(model.trained()),
                    model.fineTuning().freeze(),
                    manifest.shards().stream()
                            .map(
                                    s ->
                                            new FileAnswer(
                                                    s.stage(),
                                                    s.file(),
                                                    s.bytes(),
                                                    s.sha256(),
                                                    reader.tensorsIn(s.file()),
                                                    reader.piecesIn(s.file())))
                            .toList(),
                    stored);
        }
    }

    private void print(Answer answer) {
        ModelConfig model = answer.model();
        out().printf(
                        """
                        %s
                        step        %d
                        seed        %d
                        model       %s of %,d parameters: %d layers, width %d, %d heads, context %d, vocabulary %d, %s head
                        """,
                        answer.path(),
                        answer.step(),
                        answer.seed(),
                        model.family().word(),
                        answer.parameters(),
                        model.shape().layers(),
                        model.shape().width(),
                        model.shape().heads(),
                        model.shape().context(),
                        model.shape().vocabulary(),
                        model.shape().tied() ? "tied" : "untied");
        if (!answer.adapter().isEmpty()) {
            out().printf(
                            "adapter     %s: %,d parameters%n",
                            answer.adapter(), answer.adapterParameters());
        }
        if (TrainedWords.areNeeded(model)) {
            out().printf("trained     %s%n", TrainedWords.of(model, List.of()));
        }
        for (FileAnswer file : answer.files()) {
            out().printf(
                            "stage %-5d %s, %d tensors%s, %,d bytes, SHA-256 %s%n",
                            file.stage(),
                            file.file(),
                            file.tensors(),
                            file.pieces() == 0 ? "" : " (%d in part)".formatted(file.pieces()),
                            file.bytes(),
                            file.sha256());
        }
        if (tensors) {
            answer.tensors()
                    .forEach(
                            t ->
                                    out().printf(
                                                    "%-4s %-20s %s%s%n",
                                                    t.type(),
                                                    t.shape(),
                                                    t.name(),
                                                    t.parts() == 1
                                                            ? ""
                                                            : " in %d parts".formatted(t.parts())));
        }
        out().flush();
    }
}
