package dev.penstock.systemtests.documents;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.Main;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.config.page.ConfigPage;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.PipelineSection.Processes;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;

/**
 * Checks that README.md and docs are true. Commands in code blocks are run in this process, in the
 * order of their document and in a folder for each document; trainings with a narrow model and for
 * two steps, chaos in one process with two faults. Commands that need separate processes, or that
 * have to be stopped, are run by {@link DocumentedProcessesIT}; a command that neither class runs
 * fails here.
 */
class DocumentsIT {
    static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
    private static final Pattern LINK = Pattern.compile("]\\(([^)#]+)(?:#[^)]*)?\\)");
    private static final Pattern BENCHMARK = Pattern.compile("benchmarks/run ([a-z|-]+)");

    private static final String ORDER = "schedule.file=";

    /** The settings to which a quickstart is cut down. */
    static final List<String> SHORT =
            List.of(
                    "run.steps=2",
                    "model.width=32",
                    "evaluation.batches=1",
                    "checkpoint.every=1",
                    "report.dashboard=false",
                    "data-plane.term-length=1 MiB",
                    "device.threads=1");

    /** Commands that end on their own and need nothing but files. */
    private static final Set<String> RUN_HERE =
            Set.of(
                    "init",
                    "train",
                    "chaos",
                    "evaluate",
                    "generate",
                    "schedule",
                    "memory",
                    "plan",
                    "tokenizer",
                    "data",
                    "checkpoint",
                    "model",
                    "config",
                    "runs",
                    "prune",
                    "top",
                    "report",
                    "export",
                    "doctor",
                    "completion",
                    "certs",
                    "man");

    /** Commands in sentences that are complete without further arguments. */
    private static final Set<List<String>> WHOLE =
            Set.of(
                    List.of("--version"),
                    List.of("doctor"),
                    List.of("completion"),
                    List.of("man"),
                    List.of("config", "keys"));

    @TempDir Path folder;

    static List<Path> documents() throws IOException {
        try (Stream<Path> docs = Files.list(ROOT.resolve("docs"))) {
            return Stream.concat(
                            Stream.of(ROOT.resolve("README.md")),
                            docs.filter(file -> file.toString().endsWith(".md")).sorted())
                    .toList();
        }
    }

    @ParameterizedTest
    @MethodSource("documents")
    void commandsInCodeBlocksRun(Path document) throws IOException {
        Cli order =
                Cli.run(
                        "schedule",
                        "generate",
                        "1f1b",
                        "--ranks=4",
                        "--micro-batches=8",
                        "--output=" + folder.resolve("my-order.csv"));
        assertThat(order.exitCode()).as(order.err()).isZero();
        Set<List<String>> done = new HashSet<>();

        for (DocumentedCommand command : DocumentedCommand.inBlocks(document)) {
            if (command.hasPlaceholders()) {
                expectKnown(command);
            } else if (done.add(command.words())) {
                expectToParse(command);
                if (isRunHere(command)) {
                    makeRuns(command);
                    expectToRun(command.toString(), arguments(command));
                } else {
                    assertThat(DocumentedProcessesIT.runs(command))
                            .as(command + " is run by no test")
                            .isTrue();
                    if (command.is("train")) {
                        expectGoodConfiguration(command);
                    }
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("documents")
    void commandsInSentencesExist(Path document) throws IOException {
        List<DocumentedCommand> commands = DocumentedCommand.inProse(document);

        assertThat(commands).allSatisfy(DocumentsIT::expectKnown);
        commands.stream()
                .filter(command -> WHOLE.contains(command.words()))
                .forEach(command -> expectToRun(command.toString(), command.words()));
    }

    @ParameterizedTest
    @MethodSource("documents")
    void linksAndBenchmarksExist(Path document) throws IOException {
        String text = Files.readString(document);
        String benchmarks = Files.readString(ROOT.resolve("benchmarks/run"));

        assertThat(LINK.matcher(text).results().map(link -> link.group(1)))
                .filteredOn(link -> !link.startsWith("http"))
                .allSatisfy(link -> assertThat(document.resolveSibling(link)).exists());
        assertThat(BENCHMARK.matcher(text).results().map(match -> match.group(1)))
                .flatMap(names -> List.of(names.split("\\|")))
                .allSatisfy(name -> assertThat(benchmarks).contains("  " + name + ")"));
    }

    @Test
    void theReferenceOfAllKeysMatchesTheDeclarations() throws IOException {
        assertThat(ROOT.resolve("docs/configuration.md"))
                .as("regenerate it: ./penstock config keys --markdown > docs/configuration.md")
                .hasContent(ConfigPage.markdown());
    }

    private static boolean isRunHere(DocumentedCommand command) {
        return RUN_HERE.contains(command.words().getFirst())
                && !command.has("--cluster")
                && !hasProcesses(command);
    }

    /** Returns whether the command is a training that starts processes. */
    static boolean hasProcesses(DocumentedCommand command) {
        return command.is("train")
                && ConfigLoader.load(ROOT.resolve(command.words().get(1)), List.of())
                                .pipeline()
                                .processes()
                        != Processes.SINGLE;
    }

    private static void expectToParse(DocumentedCommand command) {
        String[] words = command.words().toArray(String[]::new);
        assertThatCode(() -> Main.commandLine().parseArgs(words))
                .as(command.toString())
                .doesNotThrowAnyException();
    }

    /** Expects the subcommand and the options that are named to exist. */
    private static void expectKnown(DocumentedCommand command) {
        CommandLine found = Main.commandLine();
        for (String word : command.words()) {
            if (word.startsWith("-")) {
                assertThat(found.getCommandSpec().optionsMap())
                        .as(command.toString())
                        .containsKey(word.replaceFirst("[=\\]].*", ""));
            } else if (found.getSubcommands().containsKey(word)) {
                found = found.getSubcommands().get(word);
            }
        }
        assertThat(found.getParent() != null || command.words().getFirst().startsWith("-"))
                .as(command + ": no such command")
                .isTrue();
    }

    /** Makes the runs that a command refers to. */
    private void makeRuns(DocumentedCommand command) {
        command.words().stream()
                .filter(word -> word.startsWith("runs/") && !command.is("train"))
                .filter(word -> !(command.is("checkpoint", "convert") && isLast(command, word)))
                .map(folder::resolve)
                .filter(run -> !Files.exists(run))
                .forEach(
                        run ->
                                expectToRun(
                                        "a run for " + command,
                                        shortTraining(
                                                List.of(
                                                        "train",
                                                        sample("quickstart.conf"),
                                                        "--run-dir",
                                                        run.toString()))));
    }

    private static boolean isLast(DocumentedCommand command, String word) {
        return command.words().indexOf(word) == 3;
    }

    private static String sample(String name) {
        return ROOT.resolve("sample-configs").resolve(name).toString();
    }

    private List<String> arguments(DocumentedCommand command) {
        List<String> placed = new ArrayList<>();
        placed.add(command.words().getFirst());
        command.words().stream().skip(1).map(word -> placed(folder, word)).forEach(placed::add);
        if (command.is("chaos")) {
            placed.set(placed.indexOf("--faults") + 1, "2");
            placed.addAll(List.of("--set", "pipeline.processes=single"));
        }
        return command.is("train") || command.is("chaos") ? shortTraining(placed) : placed;
    }

    private List<String> shortTraining(List<String> words) {
        List<String> arguments = new ArrayList<>(words);
        SHORT.forEach(setting -> arguments.addAll(List.of("--set", setting)));
        arguments.addAll(List.of("--set", "run.directory=" + folder.resolve("runs")));
        return arguments;
    }

    /** Places a word: files of the repository stay there, all others go to this folder. */
    static String placed(Path folder, String word) {
        if (word.startsWith("sample-configs/")) {
            return ROOT.resolve(word).toString();
        }
        if (word.startsWith(ORDER)) {
            return ORDER + folder.resolve(word.substring(ORDER.length()));
        }
        boolean isFile =
                word.matches("(runs|certs|gpt|tb|target|my-words|my-tokens)(/.*)?")
                        || word.matches("[\\w/-]+\\.(csv|txt|svg|html|json|conf|safetensors|md)");
        return isFile ? folder.resolve(word).toString() : word;
    }

    private static void expectGoodConfiguration(DocumentedCommand command) {
        List<String> check = new ArrayList<>(List.of("config", "check"));
        check.add(ROOT.resolve(command.words().get(1)).toString());
        for (int i = 2; i + 1 < command.words().size(); i++) {
            if (command.words().get(i).equals("--set")) {
                check.addAll(List.of("--set", command.words().get(i + 1)));
            }
        }
        expectToRun(command.toString(), check);
    }

    private static void expectToRun(String what, List<String> arguments) {
        Cli ended = Cli.run(arguments.toArray(String[]::new));
        assertThat(ended.exitCode())
                .as(() -> what + "\n" + ended.out() + ended.err())
                .isEqualTo(ExitCode.OK);
    }
}
