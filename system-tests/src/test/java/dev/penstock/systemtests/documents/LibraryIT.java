package dev.penstock.systemtests.documents;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The programs in samples/ do what docs/library.md says of them. They are compiled and run against
 * the classes of this build; that they build from a repository is tried before a release, by the
 * commands in that document.
 */
class LibraryIT {
    private static final Duration PATIENCE = Duration.ofSeconds(120);
    private static final Path SAMPLES = DocumentsIT.ROOT.resolve("samples");
    private static final Path DOCUMENT = DocumentsIT.ROOT.resolve("docs/library.md");
    private static final Pattern JAVA_BLOCK = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
    private static final Pattern OF_SAMPLE =
            Pattern.compile("mvn -q -f samples/(\\S+) compile exec:exec");

    @TempDir static Path folder;

    private static Path classes = Path.of("");

    @BeforeAll
    static void compileSamples() throws IOException {
        classes = Files.createDirectories(folder.resolve("classes"));
        try (Stream<Path> files = Files.walk(SAMPLES)) {
            List<String> sources =
                    files.map(Path::toString).filter(file -> file.endsWith(".java")).toList();
            List<String> arguments = new ArrayList<>(List.of("-d", classes.toString()));
            arguments.addAll(List.of("-proc:none", "-cp", classPath()));
            arguments.addAll(sources);
            var said = new ByteArrayOutputStream();
            int code =
                    ToolProvider.getSystemJavaCompiler()
                            .run(null, said, said, arguments.toArray(String[]::new));

            assertThat(code).as(said::toString).isZero();
        }
    }

    /** Of this build: other tests of this JVM set the system's to that of the packaged program. */
    private static String classPath() {
        return System.getProperty(
                "surefire.test.class.path", System.getProperty("java.class.path"));
    }

    @Test
    void anOrderIsWrittenProvedSimulatedAndDrawn() throws Exception {
        Path picture = folder.resolve("mine.svg");

        assertThat(completed("samples.ScheduleResearch", picture))
                .contains("is valid", "bubble ", "rank 1 |");
        assertThat(picture).content().startsWith("<svg");
    }

    @Test
    void aModelIsTrainedAndThenServed() throws Exception {
        Path runs = folder.resolve("runs");
        Path run = runs.resolve("training-1");
        assertThat(completed("samples.Train", runs)).contains("step 30: loss", "step 40: loss");

        Path output = folder.resolve("service.out");
        Process service = started("samples.WebService", run, output);
        try (var http = HttpClient.newHttpClient()) {
            Matcher address = awaited(output, Pattern.compile("as text: (\\S+)"), service);
            Matcher openAi = awaited(output, Pattern.compile("protocol: (\\S+)"), service);

            var text = http.send(get(address.group(1)), BodyHandlers.ofString());
            var tooLong =
                    http.send(get(address.group(1) + "x".repeat(100)), BodyHandlers.ofString());
            var models = http.send(get(openAi.group(1) + "v1/models"), BodyHandlers.ofString());

            assertThat(text.statusCode()).isEqualTo(200);
            assertThat(text.body()).isNotEmpty();
            assertThat(tooLong.statusCode()).isEqualTo(400);
            assertThat(tooLong.body()).contains("64 tokens");
            assertThat(models.body()).contains("\"training-1\"");
        } finally {
            service.destroyForcibly().waitFor();
        }
    }

    @Test
    void aJvmWithoutTheOptionsIsToldWhichItLacks() throws Exception {
        Path output = folder.resolve("bare.out");
        Process bare = started("samples.Train", folder.resolve("bare"), output, "-X");

        assertThat(bare.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
        assertThat(bare.exitValue()).isEqualTo(1);
        assertThat(output)
                .content()
                .contains(
                        "--add-modules jdk.incubator.vector --add-exports"
                                + " java.base/jdk.internal.misc=ALL-UNNAMED");
    }

    @Test
    void everySampleIsDocumentedAndEveryDocumentedOneExists() throws IOException {
        Set<String> documented =
                OF_SAMPLE
                        .matcher(Files.readString(DOCUMENT))
                        .results()
                        .map(match -> match.group(1))
                        .collect(Collectors.toSet());
        String parent = Files.readString(SAMPLES.resolve("pom.xml"));
        Set<String> modules =
                Pattern.compile("<module>(.*)</module>")
                        .matcher(parent)
                        .results()
                        .map(match -> match.group(1))
                        .collect(Collectors.toSet());

        assertThat(documented).isEqualTo(modules);
        for (String module : modules) {
            String pom = Files.readString(SAMPLES.resolve(module).resolve("pom.xml"));
            assertThat(first(pom, "<sample.main>(.*)</sample.main>").replace('.', '/') + ".class")
                    .satisfies(file -> assertThat(classes.resolve(file)).exists());
        }
    }

    /** What is asked for is what this build has. */
    @Test
    void theVersionAndThePathsInSamplesAndDocumentAreThoseOfTheBuild() throws IOException {
        String root = Files.readString(DocumentsIT.ROOT.resolve("pom.xml"));
        String samples = Files.readString(SAMPLES.resolve("pom.xml"));
        String document = Files.readString(DOCUMENT);
        String version = first(root, "<version>(.*)</version>");

        assertThat(samples).contains("<penstock.version>%s<".formatted(version));
        assertThat(document).contains("<version>%s</version>".formatted(version));
        assertThat(document).contains("mvn -P staged -DskipTests deploy");
        assertThat(root).contains("<id>staged</id>", "/target/staged<");
        assertThat(samples).contains("/target/staged<");
        assertThat(first(root, "<jvm.flags>(.*)</jvm.flags>").split(" "))
                .filteredOn(flag -> flag.contains("add-") || flag.contains("incubator"))
                .allSatisfy(flag -> assertThat(samples).contains(flag))
                .allSatisfy(flag -> assertThat(document).contains(flag));
    }

    @Test
    void javaInTheDocumentIsTakenFromProgramsThatRun() throws IOException {
        String compiled = "";
        for (Path from :
                List.of(
                        SAMPLES,
                        DocumentsIT.ROOT.resolve("runtime/src/test/java/dev/penstock/examples"),
                        DocumentsIT.ROOT.resolve("schedules-junit/src/test/java"))) {
            try (Stream<Path> files = Files.walk(from)) {
                for (Path file : files.filter(f -> f.toString().endsWith(".java")).toList()) {
                    compiled += squeezed(Files.readString(file));
                }
            }
        }
        List<String> blocks =
                JAVA_BLOCK
                        .matcher(Files.readString(DOCUMENT))
                        .results()
                        .map(match -> squeezed(match.group(1)))
                        .toList();

        assertThat(blocks).isNotEmpty();
        String all = compiled;
        assertThat(blocks).allSatisfy(block -> assertThat(all).contains(block));
    }

    private static String squeezed(String text) {
        return text.replaceAll("\\s+", "");
    }

    private static String first(String text, String pattern) {
        return Pattern.compile(pattern)
                .matcher(text)
                .results()
                .findFirst()
                .map((MatchResult match) -> match.group(1))
                .orElseThrow();
    }

    private static HttpRequest get(String address) {
        return HttpRequest.newBuilder(URI.create(address)).timeout(PATIENCE).build();
    }

    private static Matcher awaited(Path output, Pattern line, Process process) throws Exception {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (true) {
            String text = Files.readString(output);
            Matcher found = line.matcher(text);
            if (found.find()) {
                return found;
            }
            assertThat(process.isAlive()).as(text).isTrue();
            assertThat(System.nanoTime()).as(text).isLessThan(deadline);
            Thread.sleep(50);
        }
    }

    /** Returns what the program printed. */
    private static String completed(String main, Path argument) throws Exception {
        Path output = folder.resolve(main + ".out");
        Process process = started(main, argument, output);
        boolean ended = process.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        process.destroyForcibly();

        assertThat(ended).as(() -> main + " takes too long").isTrue();
        assertThat(process.exitValue()).as(Files.readString(output)).isZero();
        return Files.readString(output);
    }

    private static Process started(String main, Path argument, Path output) throws IOException {
        return started(main, argument, output, "-");
    }

    /** Starts the program with those of this JVM's options that begin so. */
    private static Process started(String main, Path argument, Path output, String options)
            throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(flag -> flag.startsWith("-X") || flag.startsWith("--"))
                .filter(flag -> flag.startsWith(options))
                .forEach(command::add);
        command.add("-cp");
        command.add(classPath() + ":" + classes);
        command.add(main);
        command.add(argument.toString());
        return new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start();
    }
}
