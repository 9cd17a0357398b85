package dev.penstock.benchmarks;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Predicate;
import java.util.random.RandomGenerator;
import java.util.stream.Collectors;

/**
 * A server's tokens per second and times to the first token, for 1, 4 and 16 clients that each ask
 * for one text after the other: {@code penstock serve} in a process of its own, and if they are
 * given, llama.cpp's Java binding and a file for it.
 *
 * <p>Arguments: {@code MODEL}, as for {@code serve}; more of its options; {@code llama=JAR} with
 * {@code de.kherud:llama}; {@code gguf=FILE} of the same model, several if wanted.
 */
public final class ServeBenchmark {
    private static final int[] CLIENTS = {1, 4, 16};
    private static final int TEXTS_EACH = 2;
    private static final int TOKENS = 64;
    private static final int PROMPT_WORDS = 110; // about as many tokens of GPT-2's tokenizer
    private static final Duration LONGEST = Duration.ofMinutes(10);
    private static final String[] WORDS =
            ("the of and to in is that it was for on are as with his they at be this from have or"
                            + " by one had not but what all were when we there can an your which")
                    .split(" ");
    private static final ObjectMapper JSON = new ObjectMapper();

    private record Measured(long tokens, double seconds, List<Double> firstMillis) {}

    private ServeBenchmark() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out;
        List<String> peers = valuesOf(arguments, "gguf=");
        List<String> jars = valuesOf(arguments, "llama=");
        List<String> served =
                Arrays.stream(arguments)
                        .filter(Predicate.not(word -> word.matches("(gguf|llama)=.*")))
                        .toList();
        if (served.isEmpty() || jars.isEmpty() != peers.isEmpty()) {
            System.err.println(
                    "usage: benchmarks/run serve MODEL [OPTION of serve].. [llama=JAR"
                            + " gguf=FILE..]");
            System.exit(2);
        }
        out.printf(
                "prompts of %d words, %d tokens each, %d texts for each client%n%n",
                PROMPT_WORDS, TOKENS, TEXTS_EACH);
        out.printf(
                "%-28s %7s %9s %22s%n", "server", "clients", "tokens/s", "first token ms, p50/max");
        for (int clients : CLIENTS) {
            print(out, "penstock serve", clients, penstock(served, clients));
            for (String gguf : peers) {
                String name = "llama.cpp " + Objects.requireNonNull(Path.of(gguf).getFileName());
                print(out, name, clients, llama(jars.getFirst(), gguf, clients));
            }
        }
    }

    private static List<String> valuesOf(String[] arguments, String prefix) {
        return Arrays.stream(arguments)
                .filter(word -> word.startsWith(prefix))
                .map(word -> word.substring(prefix.length()))
                .toList();
    }

    private static void print(PrintStream out, String name, int clients, Measured measured) {
        List<Double> sorted = measured.firstMillis().stream().sorted().toList();
        out.printf(
                Locale.ROOT,
                "%-28s %7d %9.1f %22s%n",
                name,
                clients,
                measured.tokens() / measured.seconds(),
                String.format(
                        Locale.ROOT,
                        "%.0f / %.0f",
                        sorted.get((sorted.size() - 1) / 2),
                        sorted.getLast()));
        out.flush();
    }

    private static String prompt(int number) {
        RandomGenerator random = new SplittableRandom(number);
        return random.ints(PROMPT_WORDS, 0, WORDS.length)
                .mapToObj(word -> WORDS[word])
                .collect(Collectors.joining(" "));
    }

    private static Measured penstock(List<String> served, int clients)
            throws IOException, InterruptedException {
        List<String> command =
                new ArrayList<>(
                        List.of(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "-cp",
                                System.getProperty("java.class.path")));
        command.addAll(
                1, ManagementFactory.getRuntimeMXBean().getInputArguments()); // Penstock's flags
        command.add("dev.penstock.runtime.cli.Main");
        command.add("serve");
        command.addAll(served);
        command.addAll(List.of("--port", "0", "--together", "" + clients, "--max-length", "512"));
        Process server =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        try (BufferedReader said = server.inputReader(StandardCharsets.UTF_8)) {
            String line = said.readLine();
            while (line != null && !line.startsWith("serving")) {
                line = said.readLine();
            }
            if (line == null) {
                throw new IOException("the server ended with " + server.waitFor() + ": " + command);
            }
            return load(line.substring(line.indexOf("http")), clients);
        } finally {
            server.destroy();
            server.waitFor(10, TimeUnit.SECONDS);
        }
    }

    private static Measured load(String url, int clients) throws InterruptedException {
        try (HttpClient http = HttpClient.newHttpClient();
                ExecutorService executor = Executors.newFixedThreadPool(clients)) {
            ask(http, url, prompt(-1), new ArrayList<>()); // a warm-up
            long start = System.nanoTime();
            var tokens = new AtomicLong();
            List<Callable<List<Double>>> work = new ArrayList<>();
            for (int client = 0; client < clients; client++) {
                int first = client;
                work.add(
                        () -> {
                            List<Double> waits = new ArrayList<>();
                            for (int i = first; i < TEXTS_EACH * clients; i += clients) {
                                tokens.addAndGet(ask(http, url, prompt(i), waits));
                            }
                            return waits;
                        });
            }
            List<Future<List<Double>>> all = executor.invokeAll(work);
            double seconds = (System.nanoTime() - start) / 1e9;
            List<Double> firsts = new ArrayList<>();
            for (Future<List<Double>> one : all) {
                firsts.addAll(one.get());
            }
            return new Measured(tokens.get(), seconds, firsts);
        } catch (IOException | ExecutionException e) {
            throw new IllegalStateException("the server at " + url + " did not answer", e);
        }
    }

    /** Asks for one streamed text, adds its time to the first token, and returns its tokens. */
    private static long ask(HttpClient http, String url, String prompt, List<Double> firstMillis)
            throws IOException, InterruptedException {
        String body =
                JSON.writeValueAsString(
                        Map.of(
                                "prompt",
                                prompt,
                                "max_tokens",
                                TOKENS,
                                "seed",
                                7,
                                "stream",
                                true,
                                "stream_options",
                                Map.of("include_usage", true)));
        HttpRequest request =
                HttpRequest.newBuilder(URI.create(url + "v1/completions"))
                        .timeout(LONGEST)
                        .header("Content-Type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofString(body))
                        .build();
        long start = System.nanoTime();
        double first = 0;
        long tokens = 0;
        HttpResponse<InputStream> answer =
                http.send(request, HttpResponse.BodyHandlers.ofInputStream());
        try (var lines =
                new BufferedReader(new InputStreamReader(answer.body(), StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (!line.startsWith("data: {")) {
                    continue;
                }
                first = first == 0 ? (System.nanoTime() - start) / 1e6 : first;
                JsonNode usage = JSON.readTree(line.substring(6)).path("usage");
                tokens = usage.path("completion_tokens").asLong(tokens);
            }
        }
        if (answer.statusCode() != 200 || tokens == 0) {
            throw new IOException("status " + answer.statusCode() + ", " + tokens + " tokens");
        }
        firstMillis.add(first);
        return tokens;
    }

    private static Measured llama(String jar, String gguf, int clients)
            throws IOException, InterruptedException {
        Path source = Files.createTempDirectory("penstock-llama-").resolve("LlamaPeer.java");
        try (InputStream text = ServeBenchmark.class.getResourceAsStream("LlamaPeer.java")) {
            Files.copy(Objects.requireNonNull(text), source);
        }
        int threads = Runtime.getRuntime().availableProcessors();
        List<String> command =
                new ArrayList<>(
                        List.of(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "--enable-native-access=ALL-UNNAMED",
                                "-cp",
                                jar,
                                source.toString(),
                                gguf,
                                "" + threads,
                                "" + clients,
                                "" + TOKENS));
        for (int i = 0; i < TEXTS_EACH * clients; i++) {
            command.add(prompt(i));
        }
        Process peer =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        try (BufferedReader said = peer.inputReader(StandardCharsets.UTF_8)) {
            List<String> lines = said.lines().toList();
            if (peer.waitFor() != 0 || lines.isEmpty()) {
                throw new IOException("llama.cpp ended with " + peer.exitValue() + ": " + lines);
            }
            double[] told =
                    Arrays.stream(lines.getLast().split(" "))
                            .mapToDouble(Double::parseDouble)
                            .toArray();
            return new Measured(
                    (long) told[0], told[1], Arrays.stream(told).skip(2).boxed().toList());
        } finally {
            peer.destroyForcibly();
            Files.deleteIfExists(source);
            Files.deleteIfExists(Objects.requireNonNull(source.getParent()));
        }
    }
}
