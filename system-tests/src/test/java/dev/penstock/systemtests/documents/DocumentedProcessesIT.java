package dev.penstock.systemtests.documents;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.ForkedCli;
import dev.penstock.systemtests.support.HostedCli;
import dev.penstock.systemtests.support.RunningCli;
import dev.penstock.systemtests.support.TestCluster;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Runs the commands of README.md and docs that {@link DocumentsIT} does not run, because they start
 * processes or last until they are stopped. Each is run exactly as documented, with the files of an
 * empty folder. Trainings have a narrow model and few steps, and nodes use a free port.
 */
@Timeout(value = 6, unit = TimeUnit.MINUTES)
class DocumentedProcessesIT {
    private static final Path README = DocumentsIT.ROOT.resolve("README.md");
    private static final Path CLUSTER = DocumentsIT.ROOT.resolve("docs/cluster.md");
    private static final Duration PATIENCE = Duration.ofSeconds(150);

    /**
     * Text that identifies the README's cluster block, and the second block of the cluster page.
     */
    private static final String ONE_MACHINE = "worker.conf --cluster 127.0.0.1:2551";

    private static final String TWO_MACHINES = "certs init certs";

    @TempDir Path folder;

    /** Returns whether one of the tests here runs this command. */
    static boolean runs(DocumentedCommand command) throws IOException {
        return isTrainingAlone(command)
                || command.is("ui")
                || command.is("serve")
                || (command.place().matches("(README|cluster)\\.md:.*")
                        && command.has("--cluster", "sample-configs/cluster/seed.conf"));
    }

    private static boolean isTrainingAlone(DocumentedCommand command) {
        return !command.has("--cluster")
                && !command.hasPlaceholders()
                && DocumentsIT.hasProcesses(command);
    }

    @BeforeEach
    void layOut() throws IOException {
        Files.createSymbolicLink(
                folder.resolve("sample-configs"), DocumentsIT.ROOT.resolve("sample-configs"));
    }

    @Test
    void trainingsRunInSeparateProcesses() throws Exception {
        // what two documents say in the same words runs once
        Collection<DocumentedCommand> trainings =
                commands()
                        .filter(DocumentedProcessesIT::isTrainingAlone)
                        .collect(
                                Collectors.toMap(
                                        DocumentedCommand::words,
                                        command -> command,
                                        (first, _) -> first))
                        .values();
        assertThat(trainings).hasSizeGreaterThanOrEqualTo(3);

        for (DocumentedCommand training : trainings) {
            boolean dies = training.has("sample-configs/mirrors.conf"); // in step 20
            int steps = dies ? 22 : 3;
            String[] settings = {
                "run.steps=" + steps,
                "model.context=64",
                "checkpoint.every=8",
                "report.sample=false",
                "recovery.spares=0",
                ForkedCli.PLAIN_CODE
            };
            String output = complete(training, settings);

            assertThat(output)
                    .as(training.toString())
                    .contains("step %d/%d".formatted(steps, steps));
            if (dies) {
                assertThat(output).contains("recovered: ");
            }
        }
    }

    /** Also looks at what the run left behind. */
    @Test
    void aClusterOnOneMachineWorksAsTheReadmeSays() throws Exception {
        List<List<String>> commands =
                DocumentedCommand.asBashSees(DocumentedCommand.block(README, ONE_MACHINE));
        assertThat(DocumentedCommand.block(CLUSTER, ONE_MACHINE))
                .as("the same lines, run once")
                .isEqualTo(DocumentedCommand.block(README, ONE_MACHINE));
        assertThat(commands.stream().map(List::getFirst))
                .containsExactly("node", "node", "train", "runs");
        int port = TestCluster.freePort();
        try (RunningCli seed = seed(commands.get(0), port);
                RunningCli worker =
                        host(TestCluster.named("worker", onPort(commands.get(1), port)))) {
            seed.awaitOutput("listens on");
            worker.awaitOutput("joined");
            try (RunningCli train =
                    host(onPort(commands.get(2), port), narrow("run.steps=100000"))) {
                train.awaitOutput("step \\d+/100000");
                assertThat(ended(onPort(commands.get(3), port)).out())
                        .containsPattern("quickstart-1 +running")
                        .contains("node ");
                try (RunningCli attached = host(aboutTheRun("attach", port))) {
                    attached.awaitOutput("step \\d+/100000");
                    assertThat(ended(aboutTheRun("rebalance", port)).out())
                            .startsWith("quickstart-1: ");
                    assertThat(ended(aboutTheRun("stop", port)).out()).contains("and ends");
                    assertThat(attached.awaitEnd(PATIENCE)).isEqualTo(ExitCode.INTERRUPTED);
                }
                assertThat(train.awaitEnd(PATIENCE))
                        .as(train.output())
                        .isEqualTo(ExitCode.INTERRUPTED);
            }
            expectToBeServed("127.0.0.1:2551", port);
        }
        expectAPage();
    }

    /** Two addresses of this machine stand for the two machines, which share no memory. */
    @Test
    void aClusterOnTwoMachinesWorksAsItsPageSays() throws Exception {
        List<String> block =
                DocumentedCommand.block(CLUSTER, TWO_MACHINES).stream()
                        .map(line -> line.replace("10.0.0.", "127.0.0."))
                        .toList();
        List<List<String>> commands = DocumentedCommand.asBashSees(block);
        assertThat(commands.stream().map(List::getFirst))
                .containsExactly("certs", "node", "node", "train");
        int port = TestCluster.freePort();
        try (RunningCli certs = host(commands.get(0))) {
            assertThat(certs.awaitEnd(PATIENCE)).as(certs.output()).isZero();
        }
        try (RunningCli seed = seed(commands.get(1), port, "cluster.host-id=one")) {
            seed.awaitOutput("listens on");
            try (RunningCli worker =
                    host(
                            TestCluster.named("worker", onPort(commands.get(2), port)),
                            "cluster.host-id=two")) {
                worker.awaitOutput("joined");
                try (RunningCli train =
                        host(onPort(commands.get(3), port), narrow("run.steps=2"))) {
                    assertThat(train.awaitEnd(PATIENCE)).as(train.output()).isZero();
                    assertThat(train.output())
                            .contains("2 hosts travel over UDP, sealed", "step 2/2");
                }
                expectToBeServed("10.0.0.1:2551", port);
            }
        }
    }

    // ---- pages ------------------------------------------------------------------------------

    private void expectAPage() throws Exception {
        DocumentedCommand ui =
                commands().filter(command -> command.is("ui")).findFirst().orElseThrow();
        try (ForkedCli page = start(ui.words());
                HttpClient http = HttpClient.newHttpClient()) {
            String url = page.awaitOutput("dashboard: (\\S+)");
            var answer =
                    http.send(
                            HttpRequest.newBuilder(URI.create(url)).timeout(PATIENCE).build(),
                            BodyHandlers.ofString());
            assertThat(answer.statusCode()).isEqualTo(200);
            assertThat(answer.body()).contains("<title>Penstock</title>");
            page.signal("INT");
            assertThat(page.awaitEnd(PATIENCE)).as(page.output()).isZero();
        }
    }

    /** Each answers a request, with the key that it was given, and ends at Ctrl-C. */
    @Test
    void modelsAreServedAsTheirPageSays() throws Exception {
        Files.writeString(folder.resolve("key.txt"), "correct-horse\n");
        List<DocumentedCommand> commands =
                commands().filter(each -> each.is("serve") && !each.has("--cluster")).toList();
        assertThat(commands).hasSizeGreaterThanOrEqualTo(3);

        for (DocumentedCommand command : commands) {
            List<String> words = new ArrayList<>(command.words());
            Path run = folder.resolve(words.get(1));
            if (!Files.exists(run)) {
                SavedRun.write(run, 3);
            }
            words.addAll(List.of("--port", "0"));
            try (ForkedCli server = start(words);
                    HttpClient http = HttpClient.newHttpClient()) {
                String url =
                        server.awaitOutput(
                                "serving %s: http://\\S+:(\\d+)/".formatted(run.getFileName()));
                expectAnAnswer(http, url);
                server.signal("INT");
                assertThat(server.awaitEnd(PATIENCE)).as(server.output()).isZero();
            }
        }
    }

    private static void expectAnAnswer(HttpClient http, String port) throws Exception {
        var request =
                HttpRequest.newBuilder(
                                URI.create("http://127.0.0.1:%s/v1/completions".formatted(port)))
                        .timeout(PATIENCE)
                        .header("Content-Type", "application/json")
                        .header("Authorization", "Bearer correct-horse")
                        .POST(BodyPublishers.ofString("{\"prompt\":\"x\",\"max_tokens\":5}"))
                        .build();
        var answer = http.send(request, BodyHandlers.ofString());

        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
        assertThat(answer.body()).contains("\"completion_tokens\":5");
    }

    /**
     * The run of a cluster is served by it.
     *
     * @param place a word of the documented command
     */
    private void expectToBeServed(String place, int cluster) throws Exception {
        List<String> words =
                commands()
                        .filter(each -> each.is("serve") && each.has(place))
                        .findFirst()
                        .orElseThrow()
                        .words();
        List<String> here = new ArrayList<>(onPort(words, cluster));
        here.replaceAll(word -> word.replace("10.0.0.", "127.0.0."));
        here.addAll(List.of("--port", "" + TestCluster.freePort()));
        Files.writeString(folder.resolve("key.txt"), "correct-horse\n");
        try (RunningCli serve = host(here);
                HttpClient http = HttpClient.newHttpClient()) {
            String port = serve.awaitOutput("serving quickstart-1: http://\\S+:(\\d+)/ of node");
            expectAnAnswer(http, port);
            serve.interrupt();
            assertThat(serve.awaitEnd(PATIENCE)).as(serve.output()).isZero();
        }
    }

    // ---- commands ---------------------------------------------------------------------------

    private static Stream<DocumentedCommand> commands() throws IOException {
        List<DocumentedCommand> all = new ArrayList<>();
        for (Path document : DocumentsIT.documents()) {
            all.addAll(DocumentedCommand.inBlocks(document));
        }
        return all.stream();
    }

    private ForkedCli start(List<String> words, String... settings) throws IOException {
        return ForkedCli.startIn(folder, words, settings);
    }

    /** Runs the command, expects it to succeed, and returns its output. */
    private String complete(DocumentedCommand command, String... settings) throws Exception {
        try (RunningCli process = host(command.words(), narrow(settings))) {
            assertThat(process.awaitEnd(PATIENCE))
                    .as(() -> command + "\n" + process.output())
                    .isZero();
            return process.output();
        }
    }

    private String[] narrow(String... settings) {
        List<String> all = new ArrayList<>(DocumentsIT.SHORT);
        all.add("run.directory=" + folder.resolve("runs"));
        all.addAll(List.of(settings));
        return all.toArray(String[]::new);
    }

    private RunningCli seed(List<String> words, int port, String... more) throws IOException {
        List<String> settings = new ArrayList<>(List.of(more));
        settings.add("cluster.port=" + port);
        settings.add("cluster.runs=\"" + folder.resolve("runs") + "\"");
        return host(TestCluster.named("seed", words), settings.toArray(String[]::new));
    }

    /** Starts the program in this JVM: its files are those of the folder. */
    private RunningCli host(List<String> words, String... settings) throws IOException {
        List<String> placed = new ArrayList<>(List.of(words.getFirst()));
        words.stream()
                .skip(1)
                .map(word -> DocumentsIT.placed(folder, word))
                .map(word -> word.replace("=certs/", "=" + folder + "/certs/"))
                .forEach(placed::add);
        return HostedCli.start(placed, settings);
    }

    private static List<String> onPort(List<String> words, int port) {
        return words.stream().map(word -> word.replace(":2551", ":" + port)).toList();
    }

    private static List<String> aboutTheRun(String command, int port) {
        return List.of(command, "quickstart-1", "--cluster", "127.0.0.1:" + port);
    }

    private static Cli ended(List<String> words) {
        Cli cli = Cli.run(words.toArray(String[]::new));
        assertThat(cli.exitCode()).as(() -> words + "\n" + cli.err()).isZero();
        return cli;
    }
}
