package dev.penstock.runtime.dashboard;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.penstock.runtime.metrics.RunDirectory;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves the page of one run on loopback. Reads only: no request changes anything. A browser that
 * was led here under another host name is refused, so that no foreign page reads a run.
 *
 * <pre>
 *   /                     the page, and beside it its script, style and plotter
 *   /api/facts            what does not change while a process trains
 *   /api/curves           all steps
 *   /api/standing         members, what the data plane carried, checkpoints
 *   /api/program          what the ops of each rank's program are
 *   /api/step?step=N      when they ran in step N, or in the last one before it that was sampled
 *   /metrics              for Prometheus
 *   /api/runs             other runs of the folder
 *   /api/loss?run=NAME    the losses of one of them
 *   /api/files            the run's files that can be had
 *   /files/NAME           one of them
 *   /api/stream           server-sent events: what is new, as it happens
 * </pre>
 */
public final class DashboardServer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(DashboardServer.class);
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final Duration SIGN_OF_LIFE = Duration.ofSeconds(5);
    private static final int GOODBYE_SECONDS = 1;
    private static final int VIEWERS = 32;
    private static final int GZIP_FROM = 1 << 12;
    private static final Pattern STEP = Pattern.compile("step=(\\d{1,15})");
    private static final Pattern OWN_NAMES =
            Pattern.compile("(?i)(127\\.0\\.0\\.1|localhost|\\[::1])(:\\d{1,5})?");
    private static final String NOTHING_FOREIGN =
            "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src"
                    + " 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none';"
                    + " frame-ancestors 'none'";
    private static final Pattern RUN = Pattern.compile("run=(.+)");
    private static final String OF_THE_RUN = "/files/";
    private static final String FIRST = ">null</script>";

    /**
     * What the page shows before it has asked for anything.
     *
     * @param facts null before the log's first line
     */
    private record FirstState(
            RunHead head,
            RunView.@Nullable Facts facts,
            RunView.Curves curves,
            @Nullable ProgramPicture program,
            RunStatusView standing,
            List<String> files) {}

    private static final Map<String, String> FILES =
            Map.of(
                    "/dashboard.js", "dashboard.js",
                    "/gantt.js", "gantt.js",
                    "/palette.css", "/dev/penstock/runtime/report/palette.css",
                    "/dashboard.css", "dashboard.css",
                    "/uplot.js", "uplot/uPlot.iife.min.js",
                    "/uplot.css", "uplot/uPlot.min.css");

    private final HttpServer server;
    private final ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor();
    private final RunFeed feed;
    private final SiblingRuns siblings;

    /** By the names that the page asks for. */
    private final Map<String, Path> runFiles;

    private DashboardServer(HttpServer server, RunDirectory directory) {
        this.server = server;
        this.feed = new RunFeed(directory);
        this.siblings = new SiblingRuns(directory.path());
        this.runFiles =
                Stream.of(directory.report(), directory.trace(), directory.metrics())
                        .collect(
                                Collectors.toMap(
                                        path -> String.valueOf(path.getFileName()),
                                        path -> path,
                                        (one, _) -> one,
                                        LinkedHashMap::new));
    }

    /**
     * Starts to serve.
     *
     * @param port of loopback; 0 for any that is free
     * @throws IOException if the port is taken
     */
    public static DashboardServer start(RunDirectory directory, int port) throws IOException {
        HttpServer http =
                HttpServer.create(
                        new InetSocketAddress(InetAddress.getLoopbackAddress(), port), VIEWERS);
        var dashboard = new DashboardServer(http, directory);
        http.setExecutor(dashboard.executor);
        http.createContext("/", dashboard::handle);
        http.start();
        return dashboard;
    }

    /** Where a browser finds the page. */
    public String url() {
        return "http://127.0.0.1:%d/".formatted(server.getAddress().getPort());
    }

    /** Ends once everybody who keeps up was told what the log says last. */
    @Override
    public void close() {
        feed.close();
        server.stop(GOODBYE_SECONDS);
        executor.shutdownNow();
    }

    private void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            exchange.getResponseHeaders().set("Content-Security-Policy", NOTHING_FOREIGN);
            exchange.getResponseHeaders().set("X-Content-Type-Options", "nosniff");
            exchange.getResponseHeaders().set("Referrer-Policy", "no-referrer");
            exchange.getResponseHeaders().set("Cache-Control", "no-store");
            if (!isForThisHost(exchange)) {
                refuse(exchange, 421, "this page is for browsers of its own machine");
            } else if (!exchange.getRequestMethod().equals("GET")) {
                refuse(exchange, 405, "this page only shows: GET");
            } else {
                answer(exchange);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (RuntimeException e) {
            LOG.warn("the dashboard could not answer {}", exchange.getRequestURI().getPath(), e);
        }
    }

    private void answer(HttpExchange exchange) throws IOException, InterruptedException {
        String path = exchange.getRequestURI().getPath();
        switch (path) {
            case "/api/facts" -> json(exchange, feed.view(PATIENCE).facts());
            case "/api/curves" -> json(exchange, Optional.of(feed.view(PATIENCE).curves()));
            case "/api/standing" -> json(exchange, Optional.of(feed.view(PATIENCE).standing()));
            case "/api/program" ->
                    json(exchange, feed.view(PATIENCE).schedule().map(ProgramPicture::of));
            case "/api/step" -> json(exchange, picture(exchange.getRequestURI().getQuery()));
            case "/metrics" ->
                    send(exchange, 200, PrometheusText.TYPE, feed.view(PATIENCE).prometheus());
            case "/api/runs" -> json(exchange, Optional.of(siblings.names()));
            case "/api/loss" -> json(exchange, losses(exchange.getRequestURI().getQuery()));
            case "/api/files" -> json(exchange, Optional.of(files()));
            case "/api/stream" -> stream(exchange);
            case "/" -> send(exchange, 200, type("index.html"), page());
            default -> {
                if (path.startsWith(OF_THE_RUN)) {
                    fileOfTheRun(exchange, path.substring(OF_THE_RUN.length()));
                } else {
                    file(exchange, path);
                }
            }
        }
    }

    /** The page, with the first state in it: no script, so it may stand in the page as it is. */
    private byte[] page() throws IOException, InterruptedException {
        RunView view = feed.view(PATIENCE);
        var first =
                new FirstState(
                        view.head(),
                        view.facts().orElse(null),
                        view.curves(),
                        view.schedule().map(ProgramPicture::of).orElse(null),
                        view.standing(),
                        files());
        String state = new String(bytes(first), StandardCharsets.UTF_8).replace("<", "\\u003c");
        return new String(resource("index.html"), StandardCharsets.UTF_8)
                .replace(FIRST, ">" + state + "</script>")
                .getBytes(StandardCharsets.UTF_8);
    }

    private Optional<SiblingRuns.Losses> losses(String query) throws IOException {
        Matcher asked = RUN.matcher(query == null ? "" : query);
        return asked.matches() ? siblings.losses(asked.group(1)) : Optional.empty();
    }

    private List<String> files() {
        return runFiles.entrySet().stream()
                .filter(each -> Files.isRegularFile(each.getValue()))
                .map(Map.Entry::getKey)
                .toList();
    }

    private void fileOfTheRun(HttpExchange exchange, String name) throws IOException {
        Path file = runFiles.get(name);
        if (file == null || !Files.isRegularFile(file)) {
            refuse(exchange, 404, "there is nothing here");
            return;
        }
        exchange.getResponseHeaders().set("Content-Type", type(name));
        exchange.sendResponseHeaders(200, 0); // in chunks, for a file may grow
        Files.copy(file, exchange.getResponseBody());
    }

    private Optional<StepPicture> picture(String query) throws InterruptedException {
        Matcher asked = STEP.matcher(query == null ? "" : query);
        long step = asked.matches() ? Long.parseLong(asked.group(1)) : Long.MAX_VALUE - 1;
        return feed.view(PATIENCE).picture(step);
    }

    private void stream(HttpExchange exchange) throws IOException, InterruptedException {
        if (feed.subscribers() >= VIEWERS) {
            refuse(exchange, 503, "%d browsers watch already".formatted(VIEWERS));
            return;
        }
        exchange.getResponseHeaders().set("Content-Type", "text/event-stream");
        exchange.sendResponseHeaders(200, 0);
        try (RunFeed.Subscription subscription = feed.subscribe();
                OutputStream out = exchange.getResponseBody()) {
            RunView.Update update = feed.view(PATIENCE).quiet();
            while (true) {
                out.write("data: ".getBytes(StandardCharsets.US_ASCII));
                out.write(bytes(update));
                out.write("\n\n".getBytes(StandardCharsets.US_ASCII));
                out.flush();
                if (subscription.isOver()) {
                    return;
                }
                update = subscription.next(SIGN_OF_LIFE);
            }
        }
    }

    private static void file(HttpExchange exchange, String path) throws IOException {
        String name = FILES.get(path);
        if (name == null) {
            refuse(exchange, 404, "there is nothing here");
            return;
        }
        send(exchange, 200, type(name), resource(name));
    }

    private static byte[] resource(String name) throws IOException {
        try (InputStream in = DashboardServer.class.getResourceAsStream(name)) {
            if (in == null) {
                throw new IllegalStateException("expected the resource " + name + ", found none");
            }
            return in.readAllBytes();
        }
    }

    private static String type(String name) {
        return switch (name.substring(name.lastIndexOf('.') + 1)) {
            case "html" -> "text/html; charset=utf-8";
            case "js" -> "text/javascript; charset=utf-8";
            case "json", "jsonl" -> "application/json";
            default -> "text/css; charset=utf-8";
        };
    }

    private static void json(HttpExchange exchange, Optional<?> answer) throws IOException {
        if (answer.isEmpty()) {
            refuse(exchange, 404, "not known yet");
        } else {
            send(exchange, 200, "application/json", bytes(answer.get()));
        }
    }

    private static byte[] bytes(Object answer) {
        try {
            return JSON.writeValueAsBytes(answer);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("expected answers to be writable", e);
        }
    }

    private static void refuse(HttpExchange exchange, int code, String why) throws IOException {
        send(
                exchange,
                code,
                "text/plain; charset=utf-8",
                (why + "\n").getBytes(StandardCharsets.UTF_8));
    }

    private static void send(HttpExchange exchange, int code, String type, byte[] body)
            throws IOException {
        byte[] sent = body;
        exchange.getResponseHeaders().set("Content-Type", type);
        String accepted = exchange.getRequestHeaders().getFirst("Accept-Encoding");
        if (body.length >= GZIP_FROM && accepted != null && accepted.contains("gzip")) {
            exchange.getResponseHeaders().set("Content-Encoding", "gzip");
            sent = gzip(body);
        }
        boolean bare = exchange.getRequestMethod().equals("HEAD");
        exchange.sendResponseHeaders(code, bare ? -1 : sent.length);
        if (!bare) {
            exchange.getResponseBody().write(sent);
        }
    }

    private static byte[] gzip(byte[] body) throws IOException {
        var zipped = new ByteArrayOutputStream(body.length / 4);
        try (var out = new GZIPOutputStream(zipped)) {
            out.write(body);
        }
        return zipped.toByteArray();
    }

    /**
     * A name that somebody pointed at this machine is not this machine's. Its own names come with
     * any port: a tunnel has another one than this server, and port 80 is not said.
     */
    private static boolean isForThisHost(HttpExchange exchange) {
        String host = exchange.getRequestHeaders().getFirst("Host");
        return host != null && OWN_NAMES.matcher(host).matches();
    }
}
