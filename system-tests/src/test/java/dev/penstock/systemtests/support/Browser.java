package dev.penstock.systemtests.support;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.WebSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.awaitility.core.ConditionTimeoutException;

/** A headless Chromium with one page, driven through its DevTools protocol. */
public final class Browser implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final Duration LOOK = Duration.ofMillis(20);

    private final Process process;
    private final WebSocket socket;
    private final AtomicInteger calls = new AtomicInteger();
    private final Map<Integer, CompletableFuture<JsonNode>> answers = new ConcurrentHashMap<>();

    /** Messages of the page, which arrive in pieces. */
    private final class Messages implements WebSocket.Listener {
        private final StringBuilder text = new StringBuilder();

        @Override
        public CompletionStage<?> onText(WebSocket from, CharSequence piece, boolean last) {
            text.append(piece);
            if (last) {
                try {
                    JsonNode message = JSON.readTree(text.toString());
                    CompletableFuture<JsonNode> answer = answers.remove(message.path("id").asInt());
                    if (answer != null) {
                        answer.complete(message);
                    }
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                } finally {
                    text.setLength(0);
                }
            }
            from.request(1);
            return CompletableFuture.completedStage(null);
        }
    }

    /** Returns the path of a Chromium on this machine, if there is one. */
    public static Optional<Path> installed() {
        return Stream.of("chromium", "chromium-browser", "google-chrome")
                .flatMap(
                        name ->
                                Stream.of(System.getenv("PATH").split(":"))
                                        .map(folder -> Path.of(folder, name)))
                .filter(Files::isExecutable)
                .findFirst();
    }

    /**
     * @param profile a folder for its files
     */
    public Browser(Path chromium, Path profile) throws IOException, InterruptedException {
        process =
                new ProcessBuilder(
                                List.of(
                                        chromium.toString(),
                                        "--headless=new",
                                        "--no-sandbox",
                                        "--disable-gpu",
                                        "--disable-dev-shm-usage",
                                        "--no-first-run",
                                        "--window-size=1300,1000",
                                        "--remote-debugging-port=0",
                                        "--user-data-dir=" + profile,
                                        "about:blank"))
                        .redirectErrorStream(true)
                        .redirectOutput(profile.resolveSibling("browser.log").toFile())
                        .start();
        int port = port(profile.resolve("DevToolsActivePort"));
        try (HttpClient http = HttpClient.newHttpClient()) {
            HttpResponse<String> pages =
                    http.send(
                            HttpRequest.newBuilder(
                                            URI.create("http://127.0.0.1:" + port + "/json/list"))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString());
            String address = null;
            for (JsonNode page : JSON.readTree(pages.body())) {
                if (page.path("type").asText().equals("page")) {
                    address = page.path("webSocketDebuggerUrl").asText();
                }
            }
            if (address == null) {
                throw new IllegalStateException("expected a page, got " + pages.body());
            }
            socket =
                    HttpClient.newHttpClient()
                            .newWebSocketBuilder()
                            .buildAsync(URI.create(address), new Messages())
                            .orTimeout(PATIENCE.toSeconds(), TimeUnit.SECONDS)
                            .join();
        }
        call("Page.enable", Map.of());
    }

    /** Reads the port that the browser wrote to this file once it listened. */
    private int port(Path file) {
        return Awaitility.await("the browser listens")
                .atMost(PATIENCE)
                .pollInterval(LOOK)
                .until(
                        () -> {
                            assertThat(process.isAlive()).as("the browser lives").isTrue();
                            return Files.exists(file)
                                    ? Files.readAllLines(file)
                                    : List.<String>of();
                        },
                        lines -> !lines.isEmpty())
                .stream()
                .mapToInt(Integer::parseInt)
                .findFirst()
                .orElseThrow();
    }

    public void open(String url) {
        call("Page.navigate", Map.of("url", url));
        await("document.body !== null && document.body.dataset.loaded === 'yes'");
    }

    /** Sets the width of the window. */
    public void width(int pixels) {
        window(pixels, 900, 1);
    }

    /**
     * Sets the size of the window.
     *
     * @param scale picture pixels per window pixel
     */
    public void window(int width, int height, double scale) {
        call(
                "Emulation.setDeviceMetricsOverride",
                Map.of(
                        "width", width,
                        "height", height,
                        "deviceScaleFactor", scale,
                        "mobile", true));
    }

    /** Sets the theme, {@code dark} or {@code light}. */
    public void theme(String name) {
        call(
                "Emulation.setEmulatedMedia",
                Map.of("features", List.of(Map.of("name", "prefers-color-scheme", "value", name))));
    }

    public void press(String key) {
        call("Input.dispatchKeyEvent", Map.of("type", "keyDown", "key", key, "text", key));
        call("Input.dispatchKeyEvent", Map.of("type", "keyUp", "key", key));
    }

    /** Returns the value of a JavaScript expression, after awaiting promises. */
    public JsonNode evaluate(String expression) {
        JsonNode answer =
                call(
                        "Runtime.evaluate",
                        Map.of(
                                "expression",
                                expression,
                                "awaitPromise",
                                true,
                                "returnByValue",
                                true));
        if (answer.has("exceptionDetails")) {
            throw new AssertionError(expression + ": " + answer.path("exceptionDetails"));
        }
        return answer.path("result").path("value");
    }

    /** Waits until an expression is true. */
    public void await(String expression) {
        try {
            Awaitility.await()
                    .atMost(PATIENCE)
                    .pollDelay(Duration.ZERO)
                    .pollInterval(LOOK)
                    .until(() -> evaluate("!!(" + expression + ")").asBoolean());
        } catch (ConditionTimeoutException e) {
            throw new AssertionError(
                    "not true in time: %s; the page shows: %s"
                            .formatted(expression, evaluate("document.body.innerText")),
                    e);
        }
    }

    public String text(String id) {
        return evaluate("document.getElementById('%s').textContent".formatted(id)).asText();
    }

    /** Writes a picture of the whole page, as PNG. */
    public void screenshot(Path file) throws IOException {
        screenshot(file, true);
    }

    /** Writes a picture of what is visible in the window, as PNG. */
    public void screenshotOfWindow(Path file) throws IOException {
        screenshot(file, false);
    }

    private void screenshot(Path file, boolean whole) throws IOException {
        JsonNode picture =
                call(
                        "Page.captureScreenshot",
                        Map.of("format", "png", "captureBeyondViewport", whole));
        Files.createDirectories(file.toAbsolutePath().getParent());
        Files.write(file, Base64.getDecoder().decode(picture.path("data").asText()));
    }

    private JsonNode call(String method, Map<String, ?> parameters) {
        int id = calls.incrementAndGet();
        var answer = new CompletableFuture<JsonNode>();
        answers.put(id, answer);
        ObjectNode message = JSON.createObjectNode();
        message.put("id", id).put("method", method).set("params", JSON.valueToTree(parameters));
        socket.sendText(message.toString(), true).join();
        JsonNode got = answer.orTimeout(PATIENCE.toSeconds(), TimeUnit.SECONDS).join();
        if (got.has("error")) {
            throw new IllegalStateException(method + ": " + got.path("error"));
        }
        return got.path("result");
    }

    @Override
    public void close() {
        socket.abort();
        List<ProcessHandle> children = process.descendants().toList();
        process.destroy();
        try {
            process.onExit().get(10, TimeUnit.SECONDS);
        } catch (TimeoutException | ExecutionException e) {
            process.destroyForcibly().onExit().join();
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        children.forEach(ProcessHandle::destroyForcibly);
    }
}
