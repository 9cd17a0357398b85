package dev.penstock.runtime.cli.train;

import com.typesafe.config.ConfigUtil;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.HuggingFaceWeights;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cli.command.WholeNumber;
import dev.penstock.runtime.cli.command.WorkBar;
import dev.penstock.runtime.config.reading.ConfigException;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.config.run.ExposedDataPlane;
import dev.penstock.runtime.data.DataException;
import dev.penstock.runtime.data.DataProblem;
import dev.penstock.runtime.data.labelled.LabelledLines;
import dev.penstock.runtime.evaluation.PreparedTask;
import dev.penstock.runtime.evaluation.Protocol;
import dev.penstock.runtime.evaluation.Score;
import dev.penstock.runtime.evaluation.TaskData;
import dev.penstock.runtime.evaluation.TaskKind;
import dev.penstock.runtime.evaluation.TaskRequest;
import dev.penstock.runtime.evaluation.Window;
import dev.penstock.runtime.inference.PipelineInference;
import dev.penstock.runtime.inference.TrainedModel;
import dev.penstock.runtime.launch.Interrupts;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.metrics.RunDirectoryException;
import dev.penstock.runtime.safetensors.StoredFileException;
import dev.penstock.runtime.tokenizer.Tokenizer;
import dev.penstock.runtime.training.HeldOutLoss;
import dev.penstock.runtime.training.RunFailedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Measures a trained model. */
@Command(
        name = "evaluate",
        description = {
            "Measures a trained model: on what its run held out, or on files by a published"
                    + " protocol.",
            "Without --data it is the loss of a run's checkpoint, in the run's own pipeline. With"
                    + " --data it is a task: text (any text), wikitext, lambada (the last word) or"
                    + " choices (HellaSwag, PIQA). Protocols differ and the figures with them, so"
                    + " the protocol stands beside every figure."
        },
        footer = {
            "  penstock evaluate runs/quickstart-1",
            "  penstock evaluate runs/quickstart-1 --data other.txt --json",
            "  penstock evaluate runs/quickstart-1 --data texts --by-file",
            "  penstock evaluate gpt --task wikitext --protocol megatron --stride 32 \\",
            "      --data wiki.test.tokens",
            "  penstock evaluate gpt --task lambada --protocol lm-eval --data lambada.jsonl",
            "  penstock evaluate runs/pairs-1 --data lines.jsonl \\",
            "      --texts premise,hypothesis",
            "  penstock evaluate runs/quickstart-1 --set evaluation.batches=50 \\",
            "      --set pipeline.stages=1",
        })
public final class EvaluateCommand extends PenstockCommand {
    @Parameters(
            index = "0",
            paramLabel = "RUN|CHECKPOINT|WEIGHTS",
            description =
                    "A run's folder, one of its checkpoints, or weights in the Hugging Face format"
                            + " (a file or folder with config.json and the tokenizer's files).")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path path;

    @Option(
            names = "--checkpoint",
            paramLabel = "DIR",
            description = "A checkpoint of the run; default: the newest one.")
    private @Nullable Path checkpoint;

    @Option(
            names = "--data",
            paramLabel = "FILE",
            description =
                    "A file, folder or glob, to be measured to its end. Text (.jsonl: JSON lines;"
                            + " .parquet), WikiText as it comes, or JSON lines of the task;"
                            + " default: what the run held out, as far as evaluation.batches say.")
    private @Nullable String data;

    @Option(
            names = "--texts",
            paramLabel = "MEMBER",
            split = ",",
            description =
                    "Of a model that classifies: members of the JSON lines of --data that are the"
                            + " text, or the two texts. Prints the probability of every class for"
                            + " each line.")
    private List<String> members = new ArrayList<>();

    @Option(
            names = "--label",
            paramLabel = "MEMBER",
            defaultValue = "label",
            description =
                    "With --texts: the member that is the label; where every line has one, the"
                            + " accuracy follows (default: ${DEFAULT-VALUE}).")
    private String label = "label";

    @Option(
            names = "--task",
            paramLabel = "TASK",
            description = "text, wikitext, lambada or choices (default: text).")
    private @Nullable String task;

    @Option(
            names = "--protocol",
            paramLabel = "NAME",
            description =
                    "Whose rules: megatron (Megatron-LM) or lm-eval (lm-evaluation-harness), for"
                            + " wikitext and lambada; choices are by lm-eval, text is plain.")
    private @Nullable String protocol;

    @Option(
            names = "--stride",
            paramLabel = "N",
            description =
                    "Tokens from one window to the next, for text and Megatron-LM's wikitext: fewer"
                            + " see more context and take longer (default: the context).")
    @WholeNumber(from = 1)
    private @Nullable Integer stride;

    @Option(
            names = "--context",
            paramLabel = "N",
            description =
                    "Tokens that the model sees at most (default: model.context of the run; of"
                            + " weights, as many as the model has positions for).")
    @WholeNumber(from = 1)
    private @Nullable Integer context;

    @Option(
            names = "--by-file",
            description = "A row for each file, of which text is measured by itself, and a total.")
    private boolean byFile;

    @Option(
            names = "--set",
            paramLabel = "KEY=VALUE",
            description = "Overrides a key of the run's configuration; may be repeated.")
    private List<String> overrides = new ArrayList<>();

    @Mixin private ModelArguments usage = new ModelArguments();

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() {
        List<Problem> problems = new ArrayList<>(usage.problems());
        List<DataProblem> wrong = new ArrayList<>();
        Optional<TaskRequest> request =
                TaskRequest.read(task, protocol, stride, name -> "--" + name, wrong);
        wrong.forEach(problem -> problems.add(told(problem)));
        if (!members.isEmpty()) {
            return classify(problems);
        }
        return data == null ? heldOut(problems) : measure(data, request, problems);
    }

    /** The classes of the lines of a file. */
    private int classify(List<Problem> problems) {
        if (data == null || members.size() > 2) {
            problems.add(
                    Problem.atOption(
                            "--texts",
                            "one member or two, of the lines of --data",
                            data == null ? "no --data" : String.join(",", members),
                            "such as --data lines.jsonl --texts premise,hypothesis"));
        }
        if (task != null || protocol != null || stride != null || byFile || context != null) {
            problems.add(
                    Problem.atOption(
                            "--texts",
                            "no --task, --protocol, --stride, --context and --by-file with it",
                            "some of them",
                            "leave them out"));
        }
        if (!problems.isEmpty()) {
            throw new ConfigException(problems);
        }
        Path from = checkpoint == null ? path : checkpoint;
        try (TrainedModel model = TrainedModel.open(from, this::note)) {
            ClassifiedTexts answer =
                    ClassifiedTexts.of(
                            model,
                            usage,
                            Path.of(String.valueOf(data)),
                            new LabelledLines(members, label),
                            problems);
            if (answer == null) {
                throw new ConfigException(problems);
            }
            if (json) {
                printJson(answer);
            } else {
                answer.lines().forEach(out()::println);
            }
            return ExitCode.OK;
        } catch (StoredFileException e) {
            problems.add(noModel(e));
            throw new ConfigException(problems);
        }
    }

    private static Problem told(DataProblem problem) {
        return switch (problem.key()) {
            case "data.source", "data.format", "data.field" ->
                    Problem.atOption(
                            "--data",
                            problem.expected(),
                            problem.got(),
                            // a path on the command line is relative to no configuration
                            problem.advice().startsWith("check the path")
                                    ? "check the path"
                                    : problem.advice()
                                            .replace(
                                                    " or use data.format = text",
                                                    ", or give it a name that does not end with"
                                                            + " .jsonl")
                                            .replace(
                                                    " (data.format = jsonl)",
                                                    ", in a file whose name ends with .jsonl")
                                            .replace(
                                                    "data.tokenizer = bytes", "--tokenizer bytes"));
            case "data.tokenizer" ->
                    Problem.atOption(
                            "--data",
                            problem.expected(),
                            problem.got(),
                            problem.advice()
                                    .replace(
                                            "use data.tokenizer = bytes", "try --tokenizer bytes"));
            case "stride" ->
                    Problem.atOption(
                            "--stride", problem.expected(), problem.got(), problem.advice());
            default ->
                    Problem.atOption(
                            problem.key(), problem.expected(), problem.got(), problem.advice());
        };
    }

    /** The loss of what the run held out, as during training. */
    private int heldOut(List<Problem> problems) {
        boolean isText = task == null || task.equals(TaskKind.TEXT.word());
        boolean isPlain = protocol == null || protocol.equals(Protocol.PLAIN.word());
        if (!isText
                || !isPlain
                || stride != null
                || context != null
                || byFile
                || !usage.areUsual()) {
            problems.add(
                    Problem.atOption(
                            "--data",
                            "a text that is measured with these options",
                            "none",
                            "what a run held out is measured in its own pipeline, which --set"
                                    + " changes"));
        } else if (Files.isRegularFile(path) || HuggingFaceWeights.areIn(path)) {
            problems.add(
                    Problem.atOption(
                            "--data", "a text to measure", "none", "only a run has held-out text"));
        }
        if (!problems.isEmpty()) {
            whyNoRun().ifPresent(problems::add);
            throw new ConfigException(problems);
        }
        RunDirectory directory = RunDirectory.open(path);
        DraftConfig draft = ConfigLoader.draftOfRun(directory.resolvedConfiguration(), overrides);
        ExposedDataPlane.ofLocalRun(draft.draft()).ifPresent(problems::add);
        Optional<SavedCheckpoint> saved = checkpoint(directory, problems);
        Optional<HeldOutLoss.Answer> answer =
                HeldOutLoss.measure(
                        draft,
                        saved,
                        Optional.empty(),
                        problems,
                        action -> Interrupts.install().onInterrupt(action));
        if (answer.isEmpty()) {
            return interrupted();
        }
        if (json) {
            printJson(answer.get());
        } else {
            out().println(answer.get().forPeople());
        }
        return ExitCode.OK;
    }

    private Optional<Problem> whyNoRun() {
        if (Files.isRegularFile(path) || HuggingFaceWeights.areIn(path)) {
            return Optional.empty();
        }
        try {
            RunDirectory.open(path);
            return Optional.empty();
        } catch (RunDirectoryException e) {
            return Optional.of(Problem.atOption("RUN", "", String.valueOf(e.getMessage()), ""));
        }
    }

    private int interrupted() {
        err().println("penstock: interrupted before the loss was measured");
        return ExitCode.INTERRUPTED;
    }

    private Optional<SavedCheckpoint> checkpoint(RunDirectory directory, List<Problem> problems) {
        return found(checkpoint == null ? directory.path() : checkpoint, problems);
    }

    private Optional<SavedCheckpoint> found(Path where, List<Problem> problems) {
        try {
            return Optional.of(
                    CheckpointFolders.find(where, line -> err().println("penstock: " + line)));
        } catch (StoredFileException e) {
            problems.add(
                    Problem.atOption(
                            checkpoint == null ? "RUN" : "--checkpoint",
                            "a whole checkpoint",
                            String.valueOf(e.getMessage()),
                            ""));
            return Optional.empty();
        }
    }

    /** A task, in a pipeline of this process. */
    private int measure(String source, Optional<TaskRequest> request, List<Problem> problems) {
        Path file = Path.of(source).toAbsolutePath();
        Optional<DraftConfig> run = configuration(file, problems);
        TaskData files = EvaluatedModel.data(file, byFile, run);
        try (EvaluatedModel model = open(run, problems)) {
            if (model == null || request.isEmpty() || !problems.isEmpty()) {
                if (model != null) {
                    model.pipeline(usage, problems);
                    model.context(context, problems);
                }
                problems.addAll(told(files::find));
                throw new ConfigException(problems);
            }
            PipelineInference pipeline = model.pipeline(usage, problems);
            Tokenizer tokenizer = model.tokenizer(usage, problems);
            List<PreparedTask> task = new ArrayList<>();
            int window = model.context(context, problems);
            problems.addAll(told(() -> task.add(files.prepare(request.get(), tokenizer, window))));
            checkTokens(task, model.model(), problems);
            if (!problems.isEmpty()) {
                throw new ConfigException(problems);
            }
            List<Score> scores = score(pipeline, task.getFirst().windows());
            if (scores.isEmpty() && !task.getFirst().windows().isEmpty()) {
                return interrupted();
            }
            print(task.getFirst(), scores, model.model(), window);
            return ExitCode.OK;
        }
    }

    /** The configuration of a run, with what the user sets; empty where the model is of none. */
    private Optional<DraftConfig> configuration(Path file, List<Problem> problems) {
        RunDirectory directory = new RunDirectory(path);
        if (directory.holdsRun()) {
            List<String> all = new ArrayList<>();
            all.add("data.source=" + ConfigUtil.quoteString(file.toString()));
            boolean lines = file.toString().matches(".*\\.jsonl(\\.gz)?");
            all.add("data.format=" + (lines ? "jsonl" : "text"));
            all.addAll(usedOverrides(problems));
            DraftConfig draft = ConfigLoader.draftOfRun(directory.resolvedConfiguration(), all);
            draft.problems().stream()
                    .filter(problem -> !problem.key().equals("data.source")) // told as --data
                    .forEach(problems::add);
            return Optional.of(draft);
        }
        if (!overrides.isEmpty() || checkpoint != null) {
            problems.add(
                    Problem.atOption(
                            overrides.isEmpty() ? "--checkpoint" : "--set",
                            "a run's folder, to which it belongs",
                            path.toString(),
                            ""));
        }
        return Optional.empty();
    }

    /** Overrides that have an effect; others are not passed over in silence. */
    private List<String> usedOverrides(List<Problem> problems) {
        List<String> used = new ArrayList<>();
        for (String override : overrides) {
            if (override.matches("(data|device)\\..*|pipeline\\.stages=.*")) {
                used.add(override);
            } else {
                problems.add(
                        Problem.atOption(
                                "--set",
                                "a key of data or device, or pipeline.stages, if there is --data",
                                override,
                                "the model is that of the checkpoint"));
            }
        }
        return used;
    }

    private @Nullable EvaluatedModel open(Optional<DraftConfig> run, List<Problem> problems) {
        try {
            if (run.isEmpty()) {
                return EvaluatedModel.at(path, this::note);
            }
            Optional<SavedCheckpoint> saved = checkpoint(new RunDirectory(path), problems);
            return saved.isEmpty() || !problems.isEmpty()
                    ? null
                    : EvaluatedModel.ofRun(saved.get(), run.get(), this::note);
        } catch (StoredFileException e) {
            problems.add(noModel(e));
            return null;
        }
    }

    private void note(String line) {
        err().println("penstock: " + line);
        err().flush();
    }

    private static void checkTokens(
            List<PreparedTask> tasks, TrainedModel model, List<Problem> problems) {
        int vocabulary = model.shape().vocabulary();
        tasks.stream()
                .mapToInt(PreparedTask::largestToken)
                .filter(token -> token >= vocabulary)
                .forEach(
                        token ->
                                problems.add(
                                        Problem.atOption(
                                                "--data",
                                                "tokens from 0 to %d, which the model knows"
                                                        .formatted(vocabulary - 1),
                                                "" + token,
                                                "try the --tokenizer it was trained with, or penstock data verify if"
                                                        + " they are prepared")));
    }

    private static List<Problem> told(Runnable reading) {
        try {
            reading.run();
            return List.of();
        } catch (DataException e) {
            return e.problems().stream().map(EvaluateCommand::told).toList();
        }
    }

    /** Returns a score for each window; none if the user interrupted. */
    private static List<Score> score(PipelineInference pipeline, List<Window> windows) {
        try (WorkBar bar = WorkBar.ofPieces("windows", windows.size())) {
            PipelineInference.Scores scores =
                    pipeline.score(
                            windows, bar::accept, stop -> Interrupts.install().onInterrupt(stop));
            if (scores.outcome() instanceof RunOutcome.Failed(_, String reason)) {
                throw new RunFailedException(reason);
            }
            return scores.scores();
        }
    }

    private void print(PreparedTask task, List<Score> scores, TrainedModel model, int window) {
        var answer =
                new TaskAnswer(
                        path.toString(),
                        model.checkpoint().map(SavedCheckpoint::step),
                        task.request(),
                        window,
                        String.valueOf(data),
                        task.total(scores),
                        byFile ? Optional.of(task.byFile(scores)) : Optional.empty());
        if (json) {
            printJson(answer.document());
        } else {
            answer.lines().forEach(out()::println);
        }
    }

    private static Problem noModel(StoredFileException read) {
        return Problem.atOption(
                "RUN", "a run, a checkpoint or weights", String.valueOf(read.getMessage()), "");
    }
}
