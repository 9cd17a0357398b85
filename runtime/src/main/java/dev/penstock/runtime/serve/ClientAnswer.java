package dev.penstock.runtime.serve;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Writes an answer while it grows. Between its parts there are signs of life, which tell a client
 * that it is waited for, and this side whether the client is still there: the library says so only
 * of one that is written to. Used by one thread.
 */
final class ClientAnswer {
    /** A sign of life comes at least this often. */
    static final Duration SIGN_OF_LIFE = Duration.ofSeconds(1);

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final byte[] COMMENT = ": \n\n".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] SPACE = {' '};

    private final HttpExchange exchange;
    private final boolean stream;
    private final WriteLimit limit;
    private @Nullable OutputStream out;
    private long lastNanos = System.nanoTime();

    /**
     * @param limit of each write
     */
    ClientAnswer(HttpExchange exchange, boolean stream, WriteLimit limit) {
        this.exchange = exchange;
        this.stream = stream;
        this.limit = limit;
    }

    /** Returns how long to wait for more before {@link #keepAlive}. */
    Duration patience() {
        long left = SIGN_OF_LIFE.toNanos() - (System.nanoTime() - lastNanos);
        return Duration.ofNanos(Math.max(0, left));
    }

    /** Writes a sign of life if one is due. An object may begin with spaces. */
    void keepAlive() throws IOException {
        if (patience().isZero()) {
            write(stream ? COMMENT : SPACE);
        }
    }

    /** Sends an event of a stream. */
    void event(JsonNode data) throws IOException {
        event(new String(bytes(data), StandardCharsets.UTF_8));
    }

    /** Ends a stream. */
    void done() throws IOException {
        event("[DONE]");
    }

    private void event(String data) throws IOException {
        write(("data: " + data + "\n\n").getBytes(StandardCharsets.UTF_8));
    }

    /** Sends the only object of an answer that is no stream. */
    void object(JsonNode answer) throws IOException {
        byte[] body = bytes(answer);
        if (out == null) {
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            limit.write(
                    () -> {
                        exchange.sendResponseHeaders(200, body.length);
                        exchange.getResponseBody().write(body);
                    });
        } else {
            write(body);
        }
    }

    /** Returns whether something was sent, so that an error has no status any more. */
    boolean hasBegun() {
        return out != null;
    }

    /** Ends what has begun as a whole answer. */
    void end() throws IOException {
        OutputStream begun = out;
        if (begun != null) {
            limit.write(begun::close);
        }
    }

    private void write(byte[] bytes) throws IOException {
        limit.write(
                () -> {
                    OutputStream begun = begun();
                    begun.write(bytes);
                    begun.flush();
                });
        lastNanos = System.nanoTime();
    }

    private OutputStream begun() throws IOException {
        OutputStream begun = out;
        if (begun == null) {
            exchange.getResponseHeaders()
                    .set("Content-Type", stream ? "text/event-stream" : "application/json");
            exchange.sendResponseHeaders(200, 0);
            begun = exchange.getResponseBody();
            out = begun;
        }
        return begun;
    }

    static byte[] bytes(JsonNode answer) {
        try {
            return JSON.writeValueAsBytes(answer);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("expected answers to be writable", e);
        }
    }
}
