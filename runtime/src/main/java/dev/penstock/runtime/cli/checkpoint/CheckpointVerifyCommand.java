package dev.penstock.runtime.cli.checkpoint;

import dev.penstock.runtime.checkpoint.CheckpointFolders;
import dev.penstock.runtime.checkpoint.SavedCheckpoint;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.safetensors.StoredFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Reads checkpoints in full and compares them with their hashes. */
@Command(
        name = "verify",
        description = {
            "Reads checkpoints in full and compares every file with its hash.",
            "Exit code 2 if anything is damaged."
        },
        footer = "  penstock checkpoint verify runs/quickstart-1")
final class CheckpointVerifyCommand extends PenstockCommand {
    private static final Pattern FINISHED = Pattern.compile("step-\\d+");

    /** What was found about one checkpoint. */
    record Verdict(String path, boolean ok, List<String> problems) {}

    @Parameters(
            paramLabel = "CHECKPOINT|RUN_DIR",
            description = "A checkpoint, or a run's folder (all its checkpoints).")
    @SuppressWarnings("NullAway.Init") // required: set by picocli
    private Path path;

    @Option(names = "--json", description = "Print one JSON document.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        List<Verdict> verdicts =
                checkpoints().stream().map(CheckpointVerifyCommand::verdict).toList();
        if (json) {
            printJson(verdicts);
        } else {
            verdicts.forEach(this::print);
            out().flush();
            err().flush();
        }
        return verdicts.stream().allMatch(Verdict::ok) ? ExitCode.OK : ExitCode.BAD_INPUT;
    }

    private List<Path> checkpoints() throws IOException {
        if (!Files.isDirectory(path)) {
            throw new StoredFileException(path, "expected the folder of a checkpoint or of a run");
        }
        Path inRun = path.resolve(CheckpointFolders.FOLDER);
        try (Stream<Path> children = Files.list(Files.isDirectory(inRun) ? inRun : path)) {
            List<Path> found =
                    children.filter(child -> FINISHED.matcher(nameOf(child)).matches())
                            .sorted()
                            .toList();
            return found.isEmpty() ? List.of(path) : found;
        }
    }

    private static String nameOf(Path folder) {
        return String.valueOf(folder.getFileName());
    }

    private static Verdict verdict(Path checkpoint) {
        List<StoredFileException> problems;
        try {
            problems = SavedCheckpoint.open(checkpoint).verify();
        } catch (StoredFileException e) {
            problems = List.of(e);
        }
        return new Verdict(
                checkpoint.toString(),
                problems.isEmpty(),
                problems.stream().map(problem -> String.valueOf(problem.getMessage())).toList());
    }

    private void print(Verdict verdict) {
        if (verdict.ok()) {
            out().println(verdict.path() + ": whole");
        } else {
            verdict.problems().forEach(problem -> err().println("penstock: " + problem));
        }
    }
}
