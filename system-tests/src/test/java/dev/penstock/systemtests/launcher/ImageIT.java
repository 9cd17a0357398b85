package dev.penstock.systemtests.launcher;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import dev.penstock.runtime.cli.Training;
import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.systemtests.support.ForkedCli;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The content of the container image, run as a container would run it: as another user without
 * rights where this user may switch to one, with a program directory that is not writable, an
 * environment without Java, and a separate working directory. {@code -Dpenstock.image=off} skips
 * it.
 */
@Timeout(value = 8, unit = TimeUnit.MINUTES)
class ImageIT {
    private static final Path ASSEMBLE =
            Path.of("..", "deploy", "assemble").toAbsolutePath().normalize();
    private static final Path SETPRIV = Path.of("/usr/bin/setpriv");
    private static final Duration PATIENCE = Duration.ofSeconds(90);
    private static final Pattern LISTENS = Pattern.compile("listens on (\\S+)");
    private static final Pattern ENDPOINTS = Pattern.compile("(http://127.0.0.1:\\d+)/ready");

    /** The same value as in the image and in deploy/kubernetes. */
    private static final String USER = "10001";

    private static final String STRANGER = "10002";

    /** Prints what of its arguments this user can read or change. */
    private static final String STRANGERS_ACCESS =
            "for f in \"$@\"; do if [ -r \"$f\" ] || [ -w \"$f\" ]; then echo \"$f\"; fi; done";

    @TempDir static Path folder;

    @BeforeAll
    static void assemble() throws Exception {
        assumeThat(System.getProperty("penstock.image", "on")).isNotEqualTo("off");
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
        Process assemble =
                new ProcessBuilder(ASSEMBLE.toString(), folder.resolve("app").toString())
                        .redirectErrorStream(true)
                        .start();
        String said = new String(assemble.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(assemble.waitFor()).as(said).isZero();
        forbidWriting(folder.resolve("app"));
        Files.createDirectory(folder.resolve("work"));
        Training.onText(folder.resolve("work"));
        own(folder.resolve("work"), USER);
    }

    @Test
    void itPrintsItsVersionAndExaminesTheMachine() throws Exception {
        assertThat(run("--version")).contains("penstock 0.");
        assertThat(run("doctor")).contains("Java");
    }

    @Test
    void itStartsWithAnEmptyPath() throws Exception {
        ProcessBuilder builder =
                new ProcessBuilder(folder.resolve("app/bin/penstock").toString(), "--version")
                        .redirectErrorStream(true);
        builder.environment().clear();
        builder.environment().put("PATH", "");

        Process version = builder.start();

        assertThat(new String(version.getInputStream().readAllBytes(), StandardCharsets.UTF_8))
                .contains("penstock 0.");
        assertThat(version.waitFor()).isZero();
    }

    /** Identifies each jar by the first word of its name. */
    @Test
    void theNoticeNamesEveryJarInIt() throws Exception {
        String notice = Files.readString(folder.resolve("app/NOTICE")).toLowerCase(Locale.ROOT);
        try (Stream<Path> jars = Files.list(folder.resolve("app/lib"))) {
            assertThat(jars.map(jar -> jar.getFileName().toString()))
                    .filteredOn(name -> name.endsWith(".jar"))
                    .isNotEmpty()
                    .allSatisfy(name -> assertThat(notice).contains(name.split("[-_.]")[0]));
        }
        assertThat(folder.resolve("app/licences/LGPL-2.1.txt")).isNotEmptyFile();
        assertThat(folder.resolve("app/java/legal/java.base")).isNotEmptyDirectory();
    }

    @Test
    void itContainsManualPagesAndCompletion() {
        Path share = folder.resolve("app/share");

        assertThat(share.resolve("man/man1/penstock-train.1")).content().contains(".SH OPTIONS");
        assertThat(share.resolve("bash-completion/completions/penstock"))
                .content()
                .contains("complete -F");
    }

    @Test
    void itTrains() throws Exception {
        assertThat(run("train", "tiny.conf", "--set", "run.steps=3")).contains("step 3/3");

        assertThat(folder.resolve("work/runs/tiny-1/report.html")).isNotEmptyFile();
    }

    @Test
    void aNodeStartedFromItIsAliveAndReady() throws Exception {
        Path said = folder.resolve("node.txt");
        Process node =
                start(
                        said,
                        "node",
                        folder.resolve("app/sample-configs/cluster/seed.conf").toString(),
                        "--port",
                        "0",
                        "--set",
                        "management.port=0");
        try (HttpClient http = HttpClient.newHttpClient()) {
            await().atMost(PATIENCE).until(() -> ENDPOINTS.matcher(Files.readString(said)).find());
            Matcher endpoints = ENDPOINTS.matcher(Files.readString(said));
            assertThat(endpoints.find()).isTrue();

            assertThat(status(http, endpoints.group(1) + "/alive")).isEqualTo(200);
            await().atMost(PATIENCE)
                    .until(() -> status(http, endpoints.group(1) + "/ready") == 200);
            if (mayBecomeAnother()) {
                anotherUserIsRefused(Files.readString(said));
            }
            node.destroy();
            assertThat(node.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
            assertThat(node.exitValue()).as(Files.readString(said)).isZero();
        } finally {
            node.destroyForcibly();
        }
    }

    /** The node is reached on loopback, and so by its own user only. */
    private static void anotherUserIsRefused(String node) throws Exception {
        Matcher address = LISTENS.matcher(node);
        assertThat(address.find()).as(node).isTrue();
        own(Files.createDirectory(folder.resolve("stranger")), STRANGER);
        Path said = folder.resolve("stranger.txt");
        Process client = startAs(STRANGER, "stranger", said, "runs", "--cluster", address.group(1));
        try {
            assertThat(client.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
            assertThat(client.exitValue()).as(Files.readString(said)).isEqualTo(2);
            assertThat(Files.readString(said))
                    .contains("no Penstock seed answers", "another user's");
        } finally {
            client.destroyForcibly();
        }
    }

    /** Another user of the machine reaches every folder above a run's, and the loopback ports. */
    @Test
    void anotherUserCanNeitherReadNorHarmARun() throws Exception {
        assumeThat(mayBecomeAnother()).as("only root can be two other users").isTrue();
        Path said = folder.resolve("run.txt");
        Process run =
                start(
                        said,
                        "train",
                        "tiny.conf",
                        "--set",
                        "run={name=guarded, steps=1000000}",
                        "--set",
                        ForkedCli.PLAIN_CODE,
                        "--set",
                        "pipeline.processes=per-stage");
        Path directory = folder.resolve("work/runs/guarded-1");
        try {
            awaitUnmoved(() -> hasCheckpoint(directory));
            List<ProcessHandle> processes =
                    Stream.concat(Stream.of(run.toHandle()), run.descendants()).toList();
            Set<Path> files = new HashSet<>();
            awaitUnmoved(() -> files.addAll(filesOf(processes)));
            assertThat(files).as("of the run, and of its media driver").hasSizeGreaterThan(10);
            assertThat(files).anyMatch(file -> file.startsWith("/dev/shm"));

            assertThat(sayAsStranger(STRANGERS_ACCESS, files)).isEmpty();
            assertThat(sayAsStranger("rm -rf \"$@\"", Set.of(directory))).isNotEmpty();
            assertThat(sayAsStranger("kill -KILL \"$@\"", pids(processes))).isNotEmpty();

            assertThat(files)
                    .filteredOn(file -> !file.startsWith(directory.resolve("checkpoints")))
                    .allMatch(Files::exists);
            awaitUnmoved(() -> hasCheckpoint(directory));
            assertThat(processes).allMatch(ProcessHandle::isAlive);
            run.destroy();
            assertThat(run.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
            assertThat(run.exitValue()).as(Files.readString(said)).isEqualTo(ExitCode.INTERRUPTED);
        } finally {
            run.descendants().forEach(ProcessHandle::destroyForcibly);
            run.destroyForcibly();
        }
    }

    /** The run goes on: a checkpoint is renamed or removed while somebody walks through it. */
    private static void awaitUnmoved(Callable<Boolean> look) {
        await().atMost(PATIENCE).ignoreExceptionsInstanceOf(UncheckedIOException.class).until(look);
    }

    private static boolean hasCheckpoint(Path directory) throws IOException {
        Path checkpoints = directory.resolve("checkpoints");
        if (!Files.exists(checkpoints)) {
            return false;
        }
        try (Stream<Path> found = Files.walk(checkpoints)) {
            return found.anyMatch(file -> file.getFileName().toString().equals("manifest.json"));
        }
    }

    /** All below the run's folder and its user's own, and what its processes have open. */
    private static Set<Path> filesOf(List<ProcessHandle> processes) throws IOException {
        Set<Path> files = new HashSet<>();
        for (String name : List.of("runs/guarded-1", ".penstock")) {
            Path own = folder.resolve("work").resolve(name);
            if (Files.exists(own)) {
                try (Stream<Path> found = Files.walk(own)) {
                    found.forEach(files::add);
                }
            }
        }
        for (ProcessHandle process : processes) {
            try (Stream<String> maps = Files.lines(Path.of("/proc/" + process.pid() + "/maps"))) {
                maps.map(line -> line.replaceFirst("^(\\S+\\s+){5}", ""))
                        .filter(mapped -> mapped.startsWith("/dev/shm/"))
                        .map(Path::of)
                        .forEach(files::add);
            }
        }
        files.removeIf(file -> !Files.exists(file));
        return files;
    }

    private static List<String> pids(List<ProcessHandle> processes) {
        return processes.stream().map(process -> "" + process.pid()).toList();
    }

    private static String sayAsStranger(String script, Collection<?> arguments) throws Exception {
        List<String> command = new ArrayList<>(as(STRANGER));
        command.addAll(List.of("/bin/sh", "-c", script, "sh"));
        arguments.forEach(argument -> command.add("" + argument));
        Process stranger = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(stranger.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(stranger.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
        return said;
    }

    private static int status(HttpClient http, String address) throws Exception {
        return http.send(
                        HttpRequest.newBuilder(URI.create(address)).timeout(PATIENCE).build(),
                        HttpResponse.BodyHandlers.discarding())
                .statusCode();
    }

    // ---- the environment of a container ------------------------------------------------------

    private static String run(String... arguments) throws Exception {
        Path said = Files.createTempFile(folder, "said-", ".txt");
        Process process = start(said, arguments);
        try {
            assertThat(process.waitFor(3, TimeUnit.MINUTES)).as(Files.readString(said)).isTrue();
            assertThat(process.exitValue()).as(Files.readString(said)).isZero();
        } finally {
            process.destroyForcibly();
        }
        return Files.readString(said);
    }

    private static List<String> as(String user) {
        return List.of(
                SETPRIV.toString(),
                "--reuid=" + user,
                "--regid=" + user,
                "--clear-groups",
                "--no-new-privs",
                "--inh-caps=-all",
                "--bounding-set=-all");
    }

    private static Process start(Path said, String... arguments) throws IOException {
        return startAs(USER, "work", said, arguments);
    }

    private static Process startAs(String user, String home, Path said, String... arguments)
            throws IOException {
        List<String> command = new ArrayList<>();
        if (mayBecomeAnother()) {
            command.addAll(as(user));
        }
        command.addAll(List.of("/usr/bin/env", "--default-signal=INT", "penstock"));
        command.addAll(List.of(arguments));
        ProcessBuilder builder =
                new ProcessBuilder(command)
                        .directory(folder.resolve(home).toFile())
                        .redirectErrorStream(true)
                        .redirectOutput(said.toFile());
        Map<String, String> environment = builder.environment();
        environment.clear();
        environment.put("PATH", folder.resolve("app/bin") + ":/usr/bin:/bin");
        environment.put("HOME", folder.resolve(home).toString());
        environment.put("PENSTOCK_JAVA_OPTS", "-Xmx512m");
        return builder.start();
    }

    private static boolean mayBecomeAnother() throws IOException {
        return Files.isExecutable(SETPRIV)
                && Files.getAttribute(Path.of("/proc/self"), "unix:uid").equals(0);
    }

    private static void own(Path directory, String user) throws Exception {
        if (mayBecomeAnother()) {
            Process chown =
                    new ProcessBuilder("chown", "-R", user + ":" + user, directory.toString())
                            .start();
            assertThat(chown.waitFor()).isZero();
        }
    }

    private static void forbidWriting(Path directory) throws IOException {
        Files.walkFileTree(
                directory,
                new SimpleFileVisitor<>() {
                    @Override
                    public FileVisitResult preVisitDirectory(
                            Path visited, BasicFileAttributes attributes) {
                        assertThat(visited.toFile().setWritable(false, false)).isTrue();
                        return FileVisitResult.CONTINUE;
                    }
                });
    }
}
