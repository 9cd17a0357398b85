package dev.penstock.runtime.cli.train;

import dev.penstock.runtime.cli.cluster.ClusterArguments;
import dev.penstock.runtime.cli.cluster.ClusterTrain;
import dev.penstock.runtime.cli.command.ConfigArguments;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.DraftConfig;
import dev.penstock.runtime.launch.RunOptions.DumpRequest;
import dev.penstock.runtime.training.ModelOfRun;
import dev.penstock.runtime.training.ModelOfWeights;
import dev.penstock.runtime.training.TrainingStart;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Trains a model. */
@Command(
        name = "train",
        description = {
            "Trains a model as a configuration says.",
            "It shows progress and writes checkpoints, metrics and a report into a run directory."
                    + " Ctrl-C finishes the step, saves and exits with 130.",
            "With --cluster, a cluster trains it and Ctrl-C only stops following it."
        },
        footer = {
            "  penstock train sample-configs/quickstart.conf",
            "  penstock train sample-configs/quickstart.conf --set schedule.kind=gpipe \\",
            "      --set run.steps=50",
            "  penstock train sample-configs/quickstart.conf --resume",
            "  penstock train sample-configs/quickstart.conf --cluster 127.0.0.1:2551",
        })
public final class TrainCommand extends PenstockCommand {
    @Mixin private ConfigArguments config = new ConfigArguments();

    @Mixin private ClusterArguments seeds = new ClusterArguments();

    @Option(
            names = "--run-dir",
            paramLabel = "DIR",
            description = "Where the run's files go; default: a new directory below run.directory.")
    private @Nullable Path runDirectory;

    @Option(
            names = "--resume",
            description =
                    "Go on from the newest checkpoint of --run-dir, or of the newest run of this"
                            + " name.")
    private boolean resume;

    @Option(
            names = "--init",
            paramLabel = "PATH",
            description =
                    "Start from these weights: a file or folder in Hugging Face's format, or a"
                            + " checkpoint's, with a fresh optimizer. A config.json with them says"
                            + " the model's shape where the configuration says none.")
    private @Nullable Path init;

    @Option(
            names = "--dump-gradients",
            paramLabel = "STEP:FILE",
            description = "Write the gradients of a step, before clipping, as safetensors.")
    private @Nullable String dump;

    @Override
    public Integer call() {
        List<Problem> problems = new ArrayList<>();
        if (resume && init != null) {
            problems.add(
                    Problem.atOption(
                            "--resume and --init",
                            "one of them",
                            "both",
                            "a checkpoint has its own weights"));
        }
        if (seeds.isGiven()) {
            refuseWithSeed("--run-dir", runDirectory, problems);
            refuseWithSeed("--dump-gradients", dump, problems);
            return new ClusterTrain(draft(), seeds, problems, out(), err())
                    .call(Optional.ofNullable(init), resume);
        }
        Optional<DumpRequest> gradients =
                Optional.ofNullable(dump).flatMap(text -> parse(text, problems));
        var request =
                new TrainingStart.Request(
                        draft(),
                        Optional.ofNullable(runDirectory),
                        resume,
                        Optional.ofNullable(init),
                        gradients,
                        Optional.empty());
        List<String> words = spec().root().commandLine().getParseResult().originalArgs();
        return new TrainingStart(request, problems, this::note)
                .call(new TrainStart(words, resume, out(), err()));
    }

    private void note(String line) {
        err().println("penstock: " + line);
        err().flush();
    }

    /**
     * Where nothing is said of the model, weights to start from say it, and a run that goes on says
     * it itself; the latter also where its model's folder is gone.
     */
    private DraftConfig draft() {
        DraftConfig draft = config.draft();
        boolean unsaid = ModelOfWeights.isUnsaid(draft);
        if (init != null && unsaid) {
            Optional<Path> weights = ModelOfWeights.configOf(init);
            if (weights.isPresent()) {
                ModelOfWeights.tokenizerNote(draft, weights.get()).ifPresent(this::note);
                return config.draft(ModelOfWeights.settings(weights.get(), config.overrides()));
            }
        }
        if (!resume
                || seeds.isGiven()
                || !(unsaid || draft.problemsBesideMissingModel().isPresent())) {
            return draft;
        }
        List<String> settings =
                ModelOfRun.settings(draft, Optional.ofNullable(runDirectory), config.overrides());
        return settings.equals(config.overrides()) ? draft : config.draft(settings);
    }

    private static void refuseWithSeed(
            String option, @Nullable Object value, List<Problem> problems) {
        if (value != null) {
            problems.add(
                    Problem.atOption(
                            option + " and --cluster",
                            "one of them",
                            "both",
                            "a run of a cluster has its files where its seed puts them"));
        }
    }

    private static Optional<DumpRequest> parse(String text, List<Problem> problems) {
        int colon = text.indexOf(':');
        if (colon > 0 && colon < text.length() - 1) {
            try {
                long step = Long.parseLong(text.substring(0, colon));
                if (step >= 1) {
                    Path file = Path.of(text.substring(colon + 1)).toAbsolutePath();
                    Path folder = file.getParent();
                    if (folder == null || !Files.isWritable(folder) || Files.isDirectory(file)) {
                        problems.add(
                                Problem.atOption(
                                        "--dump-gradients",
                                        "a file in a folder that can be written to",
                                        file.toString(),
                                        "check the path"));
                    }
                    return Optional.of(new DumpRequest(step, file));
                }
            } catch (NumberFormatException e) {
                // said below
            }
        }
        problems.add(
                Problem.atOption(
                        "--dump-gradients",
                        "STEP:FILE with a step from 1",
                        text,
                        "write for example 1:gradients.safetensors"));
        return Optional.empty();
    }
}
