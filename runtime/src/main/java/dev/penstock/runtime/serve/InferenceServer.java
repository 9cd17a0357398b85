package dev.penstock.runtime.serve;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.penstock.runtime.inference.JoiningTexts;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.time.InstantSource;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves a model by HTTP in OpenAI's protocol.
 *
 * <pre>
 *   /                       a page to talk with the model, and beside it its script and style
 *   /v1/models              the model
 *   /v1/completions         POST: continues texts
 *   /v1/chat/completions    POST: answers in a conversation
 *   /health                 200 while the pipeline works, else 503
 *   /metrics                for Prometheus
 * </pre>
 *
 * <p>Where a key is asked for, {@code /v1} and {@code /metrics} need it. Without one, on loopback,
 * a browser that was led here by a foreign page is refused.
 */
public final class InferenceServer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(InferenceServer.class);
    private static final int GOODBYE_SECONDS = 1;
    private static final int BACKLOG = 128;
    private static final int MOST_BODY_BYTES = 4 << 20;
    private static final long SILENCE_NANOS = 500_000_000L;
    private static final long MOST_PATIENCE_NANOS = 5_000_000_000L;

    /** Requests that are read or refused beside those whose texts grow or wait. */
    private static final int MORE_REQUESTS = 32;

    private static final String OTHER = "other";

    /** Of keys; in any case, as HTTP has it. */
    private static final String SCHEME = "Bearer ";

    private static final String MODELS = "/v1/models";
    private static final String COMPLETIONS = "/v1/completions";
    private static final String CHAT = "/v1/chat/completions";
    private static final Pattern OWN_NAMES =
            Pattern.compile("(?i)(127\\.0\\.0\\.1|localhost|\\[::1])(:\\d{1,5})?");
    private static final Pattern JSON_TYPE = Pattern.compile("(?i)application/json\\s*(;.*)?");
    private static final Pattern CHARSET =
            Pattern.compile("(?i);\\s*charset\\s*=\\s*\"?([^\\s\";]*)");

    /** Digits of a length that may be read as a number. */
    private static final int LONGEST_LENGTH = 18;

    private static final String NOTHING_FOREIGN =
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src"
                    + " data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    private static final Map<String, String> FILES =
            Map.of("/", "chat.html", "/chat.js", "chat.js", "/chat.css", "chat.css");
    private static final Set<String> PATHS =
            Set.of("/", MODELS, COMPLETIONS, CHAT, "/health", "/metrics");

    private final HttpServer server;
    private final ServeAddress address;
    private final ServedModel model;
    private final JoiningTexts texts;
    private final TextService service;
    private final ServeMetrics metrics = new ServeMetrics();
    private final ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor();
    private final Semaphore requests;
    private final long created;

    private InferenceServer(
            HttpServer server,
            ServeAddress address,
            ServedModel model,
            JoiningTexts texts,
            InstantSource clock) {
        this.server = server;
        this.address = address;
        this.model = model;
        this.texts = texts;
        service = new TextService(model, texts, metrics, clock);
        requests =
                new Semaphore(texts.limits().together() + texts.limits().waiting() + MORE_REQUESTS);
        created = clock.instant().getEpochSecond();
    }

    /**
     * Starts to serve.
     *
     * @param texts where requests join; stays the caller's
     * @throws IOException if the port is taken
     */
    public static InferenceServer start(ServeAddress address, ServedModel model, JoiningTexts texts)
            throws IOException {
        HttpLimits.apply();
        HttpServer http =
                HttpServer.create(new InetSocketAddress(address.host(), address.port()), BACKLOG);
        var server = new InferenceServer(http, address, model, texts, InstantSource.system());
        http.setExecutor(server.executor);
        http.createContext("/", server::handle);
        http.start();
        return server;
    }

    /** Where clients and browsers find it. */
    public String url() {
        String host = address.host().getHostAddress();
        return "http://%s:%d/"
                .formatted(
                        host.contains(":") ? "[" + host + "]" : host,
                        server.getAddress().getPort());
    }

    /** Ends once answers under way were told so; close the texts before. */
    @Override
    public void close() {
        server.stop(GOODBYE_SECONDS);
        executor.shutdownNow();
    }

    private void handle(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        String known = PATHS.contains(path) ? path : OTHER;
        try (exchange) {
            Headers headers = exchange.getResponseHeaders();
            headers.set("Content-Security-Policy", NOTHING_FOREIGN);
            headers.set("X-Content-Type-Options", "nosniff");
            headers.set("Referrer-Policy", "no-referrer");
            headers.set("Cache-Control", "no-store");
            try {
                requireOwnPage(exchange);
                answer(exchange, path);
                metrics.answered(known, exchange.getResponseCode());
            } catch (ApiException e) {
                refuse(exchange, e);
                metrics.answered(known, e.status());
                if (e.status() == 413) {
                    awaitSilence(exchange.getRequestBody());
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (IOException e) {
            metrics.clientLeft();
        } catch (RuntimeException e) {
            LOG.warn("a request of {} could not be answered", known, e);
            metrics.answered(known, 500);
        }
    }

    private void answer(HttpExchange exchange, String path)
            throws IOException, InterruptedException {
        switch (path) {
            case MODELS -> {
                requireMethod(exchange, "GET");
                requireKey(exchange);
                json(exchange, 200, AnswerFormat.models(model.name(), created));
            }
            case COMPLETIONS -> texts(exchange, AnswerFormat.Kind.COMPLETION);
            case CHAT -> texts(exchange, AnswerFormat.Kind.CHAT);
            case "/health" -> {
                requireMethod(exchange, "GET");
                boolean ready = texts.isReady();
                json(
                        exchange,
                        ready ? 200 : 503,
                        JsonNodeFactory.instance
                                .objectNode()
                                .put("status", ready ? "ok" : "not ready"));
            }
            case "/metrics" -> {
                requireMethod(exchange, "GET");
                requireKey(exchange);
                send(exchange, 200, ServeMetrics.TYPE, metrics.text(texts));
            }
            default -> other(exchange, path);
        }
    }

    private void other(HttpExchange exchange, String path) throws IOException {
        String file = FILES.get(path);
        if (file != null) {
            requireMethod(exchange, "GET");
            file(exchange, file);
        } else if (path != null && path.startsWith(MODELS + "/")) {
            requireMethod(exchange, "GET");
            requireKey(exchange);
            String name = path.substring(MODELS.length() + 1);
            if (!name.equals(model.name())) {
                throw service.noModel(name);
            }
            json(exchange, 200, AnswerFormat.model(name, created));
        } else {
            throw new ApiException(
                    404,
                    "not_found",
                    null,
                    "nothing is served here; try %s, %s or %s"
                            .formatted(CHAT, COMPLETIONS, MODELS));
        }
    }

    private void texts(HttpExchange exchange, AnswerFormat.Kind kind)
            throws IOException, InterruptedException {
        requireMethod(exchange, "POST");
        requireKey(exchange);
        requireJson(exchange.getRequestHeaders());
        requireShort(exchange);
        if (!requests.tryAcquire()) {
            throw new ApiException(
                    429, "rate_limit_exceeded", null, "too many requests; try again later");
        }
        try {
            service.answer(exchange, kind, body(exchange));
        } finally {
            requests.release();
        }
    }

    /** JSON is UTF-8 between systems (RFC 8259), and nothing here unpacks anything. */
    private static void requireJson(Headers headers) {
        String type = headers.getFirst("Content-Type");
        if (type == null || !JSON_TYPE.matcher(type).matches()) {
            throw unsupported("expected Content-Type: application/json");
        }
        Matcher charset = CHARSET.matcher(type);
        if (charset.find() && !charset.group(1).equalsIgnoreCase("utf-8")) {
            throw unsupported("expected a body in UTF-8, got one in another charset");
        }
        String encoding = headers.getFirst("Content-Encoding");
        if (encoding != null && !encoding.strip().equalsIgnoreCase("identity")) {
            throw unsupported("expected a body without Content-Encoding, got one with it");
        }
    }

    private static ApiException unsupported(String message) {
        return new ApiException(415, "unsupported_media_type", null, message);
    }

    /** A body that says that it is too long is not waited for. */
    private static void requireShort(HttpExchange exchange) {
        String length = exchange.getRequestHeaders().getFirst("Content-Length");
        if (length != null
                && (length.length() > LONGEST_LENGTH || Long.parseLong(length) > MOST_BODY_BYTES)) {
            throw tooLarge(exchange);
        }
    }

    private static ApiException tooLarge(HttpExchange exchange) {
        exchange.getResponseHeaders().set("Connection", "close");
        return new ApiException(
                413,
                "request_too_large",
                null,
                "expected a body of at most %d MiB".formatted(MOST_BODY_BYTES >> 20));
    }

    private static byte[] body(HttpExchange exchange) throws IOException {
        byte[] body = read(exchange.getRequestBody());
        if (body.length > MOST_BODY_BYTES) {
            throw tooLarge(exchange);
        }
        return body;
    }

    private static byte[] read(InputStream body) throws IOException {
        try {
            return body.readNBytes(MOST_BODY_BYTES + 1);
        } catch (IndexOutOfBoundsException e) { // how the library takes a chunk of 2 GiB and more
            throw new IOException("a chunk has no size", e);
        }
    }

    private static void requireMethod(HttpExchange exchange, String method) {
        if (!exchange.getRequestMethod().equals(method)) {
            exchange.getResponseHeaders().set("Allow", method);
            throw new ApiException(
                    405, "method_not_allowed", null, "expected %s here".formatted(method));
        }
    }

    private void requireKey(HttpExchange exchange) {
        if (address.keyHash().isEmpty()) {
            return;
        }
        String shown = exchange.getRequestHeaders().getFirst("Authorization");
        boolean same =
                shown != null
                        && shown.regionMatches(true, 0, SCHEME, 0, SCHEME.length())
                        && address.isKey(shown.substring(SCHEME.length()));
        if (!same) {
            exchange.getResponseHeaders().set("WWW-Authenticate", "Bearer");
            throw new ApiException(
                    401,
                    "invalid_api_key",
                    null,
                    "expected the header Authorization: Bearer KEY with this server's key");
        }
    }

    /** A name that somebody pointed at this machine is not this machine's. */
    private void requireOwnPage(HttpExchange exchange) {
        if (!address.isOpenOnLoopback()) {
            return;
        }
        String host = exchange.getRequestHeaders().getFirst("Host");
        String origin = exchange.getRequestHeaders().getFirst("Origin");
        boolean own = host != null && OWN_NAMES.matcher(host).matches();
        boolean ownPage =
                origin == null
                        || (origin.toLowerCase(Locale.ROOT).startsWith("http://")
                                && OWN_NAMES
                                        .matcher(origin.substring("http://".length()))
                                        .matches());
        if (!own || !ownPage) {
            throw new ApiException(
                    421,
                    "foreign_page",
                    null,
                    "without a key this server is for clients of its own machine, by the name"
                            + " 127.0.0.1 or localhost");
        }
    }

    private void refuse(HttpExchange exchange, ApiException problem) throws IOException {
        if (problem.status() == 429) {
            exchange.getResponseHeaders().set("Retry-After", "1");
        }
        json(exchange, problem.status(), AnswerFormat.error(problem));
    }

    /**
     * Takes what the client still sends, for a while: a connection that is closed before that is
     * reset, and the client may never see the answer.
     */
    private static void awaitSilence(InputStream body) throws IOException, InterruptedException {
        byte[] taken = new byte[1 << 16];
        long now = System.nanoTime();
        long end = now + MOST_PATIENCE_NANOS;
        for (long last = now; now < end && now - last < SILENCE_NANOS; now = System.nanoTime()) {
            if (body.available() == 0) {
                Thread.sleep(5);
            } else if (body.read(taken) < 0) {
                return;
            } else {
                last = now;
            }
        }
    }

    private static void file(HttpExchange exchange, String name) throws IOException {
        try (InputStream in = InferenceServer.class.getResourceAsStream(name)) {
            if (in == null) {
                throw new IllegalStateException("expected the resource " + name + ", found none");
            }
            String type =
                    switch (name.substring(name.lastIndexOf('.') + 1)) {
                        case "html" -> "text/html";
                        case "js" -> "text/javascript";
                        default -> "text/css";
                    };
            send(exchange, 200, type + "; charset=utf-8", in.readAllBytes());
        }
    }

    private static void json(HttpExchange exchange, int status, JsonNode answer)
            throws IOException {
        send(exchange, status, "application/json", ClientAnswer.bytes(answer));
    }

    private static void send(HttpExchange exchange, int status, String type, byte[] body)
            throws IOException {
        exchange.getResponseHeaders().set("Content-Type", type);
        boolean bare = exchange.getRequestMethod().equals("HEAD");
        exchange.sendResponseHeaders(status, bare ? -1 : body.length);
        if (!bare) {
            OutputStream out = exchange.getResponseBody();
            out.write(body);
            out.flush(); // else it waits for what the client has yet to send
        }
    }
}
