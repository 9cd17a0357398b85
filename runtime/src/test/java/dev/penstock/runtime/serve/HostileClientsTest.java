package dev.penstock.runtime.serve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import dev.penstock.runtime.inference.JoiningTexts;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Requests that no client would send, and clients that leave in the middle of theirs. */
@Timeout(300)
class HostileClientsTest {
    private static final int CLIENTS = 6;
    private static final int REQUESTS = 700;
    private static final String NOISE = "X-Noise: x\r\n";
    private static final Pattern STATUS = Pattern.compile("HTTP/1\\.1 (\\d{3}) ");

    private static final List<String> BODIES =
            List.of(
                    "{\"model\":\"tiny\",\"prompt\":\"abc\",\"max_tokens\":5,\"seed\":3,\"stop\":[\"x\"]}",
                    "{\"model\":\"tiny\",\"prompt\":[[1,2],[3]],\"n\":2,\"max_tokens\":4,\"stream\":true}",
                    "{\"messages\":[{\"role\":\"system\",\"content\":\"b\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"c\"}]}],\"max_tokens\":3}",
                    "{\"messages\":[{\"role\":\"user\",\"content\":\"d\"}],\"max_tokens\":300,\"stream\":true,\"stream_options\":{\"include_usage\":true}}");

    private static final List<String> BITS =
            List.of(
                    "null",
                    "true",
                    "-1",
                    "0",
                    "1e400",
                    "99999999999999999999",
                    "\"\"",
                    "[]",
                    "{}",
                    "[[[[[[",
                    "\0",
                    "\\ud800",
                    "\\uFFFF",
                    "NaN",
                    "\"",
                    ",",
                    ":",
                    "}",
                    "1.5",
                    "\"max_tokens\":",
                    "\"prompt\":",
                    "\"messages\":",
                    "\"n\":16,",
                    "\"top_p\":0,");

    private static final List<String> HEADS =
            List.of(
                    "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    "GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    "GET /v1/models/%2e%2e%2f HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    "GET http://[ HTTP/1.1\r\n\r\n",
                    "BREW /v1/completions HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    "HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
                    "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
                    "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
                    "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                    "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n{",
                    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                    "\r\n\r\n\r\n",
                    "\026\003\001\002\0\001");

    @TempDir private Path folder;

    @Test
    void thousandsOfThemLeaveTheServerServing() throws Exception {
        try (ServedRun served =
                ServedRun.ofLongContext(folder, new JoiningTexts.Limits(3, 8, 400))) {
            int port = URI.create(served.server.url()).getPort();
            try (ExecutorService clients = Executors.newFixedThreadPool(CLIENTS)) {
                List<Future<?>> all = new ArrayList<>();
                for (int client = 0; client < CLIENTS; client++) {
                    var random = new Random(client);
                    all.add(
                            clients.submit(
                                    () -> {
                                        for (int i = 0; i < REQUESTS; i++) {
                                            send(port, random);
                                        }
                                        return null;
                                    }));
                }
                for (Future<?> client : all) {
                    client.get();
                }
            }

            await().atMost(Duration.ofSeconds(60))
                    .until(() -> served.texts.growing() + served.texts.waiting() == 0);
            JsonNode answer =
                    ServedRun.json(
                            served.post(
                                            "v1/completions",
                                            "{\"prompt\":\"abc\",\"max_tokens\":20,\"seed\":5}")
                                    .body());
            assertThat(answer.at("/choices/0/text").asText())
                    .isEqualTo(served.generated("abc", "--tokens=20", "--seed=5"));
            assertThat(served.get("health").statusCode()).isEqualTo(200);
            assertThat(served.get("metrics").body()).doesNotContain("status=\"500\"");
        }
    }

    /** None may cost more than its connection: what is answered is no error of the server's. */
    private static void send(int port, Random random) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setSoTimeout(20_000);
            byte[] request = request(random);
            boolean leaves = random.nextInt(3) == 0;
            int sent = leaves ? random.nextInt(request.length + 1) : request.length;
            OutputStream out = socket.getOutputStream();
            out.write(request, 0, sent);
            out.flush();
            if (leaves) {
                if (random.nextBoolean()) {
                    socket.setSoLinger(true, 0);
                }
                return;
            }
            socket.shutdownOutput();
            byte[] start = socket.getInputStream().readNBytes(16);
            var status = STATUS.matcher(new String(start, StandardCharsets.ISO_8859_1));
            if (status.lookingAt()) {
                assertThat(Integer.parseInt(status.group(1)))
                        .as(new String(request, StandardCharsets.UTF_8))
                        .satisfiesAnyOf(
                                code -> assertThat(code).isLessThan(500),
                                code -> assertThat(code).isIn(501, 505));
            }
        } catch (SocketException e) {
            return; // the server may close in the middle of what it does not understand
        }
    }

    private static byte[] request(Random random) {
        return switch (random.nextInt(8)) {
            case 0 -> HEADS.get(random.nextInt(HEADS.size())).getBytes(StandardCharsets.UTF_8);
            case 1 -> {
                byte[] noise = new byte[random.nextInt(2_000)];
                random.nextBytes(noise);
                yield noise;
            }
            case 2 -> posting(random, deep(random).getBytes(StandardCharsets.UTF_8));
            case 3 -> {
                byte[] noise = new byte[random.nextInt(3_000)];
                random.nextBytes(noise);
                yield posting(random, noise);
            }
            default -> posting(random, changed(random).getBytes(StandardCharsets.UTF_8));
        };
    }

    private static byte[] posting(Random random, byte[] body) {
        boolean chat = random.nextBoolean();
        int length = body.length + (random.nextInt(10) == 0 ? random.nextInt(9) - 4 : 0);
        var head = new StringBuilder("POST ");
        head.append(chat ? "/v1/chat/completions" : "/v1/completions");
        head.append(" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        head.append("Content-Type: application/json\r\n");
        head.repeat(NOISE, random.nextInt(8) == 0 ? 150 : 0);
        head.append("Content-Length: ").append(length).append("\r\n\r\n");
        byte[] start = head.toString().getBytes(StandardCharsets.US_ASCII);
        byte[] all = Arrays.copyOf(start, start.length + body.length);
        System.arraycopy(body, 0, all, start.length, body.length);
        return all;
    }

    private static String deep(Random random) {
        int depth = random.nextInt(20_000);
        return random.nextBoolean()
                ? "[".repeat(depth)
                : "{\"prompt\":" + "[".repeat(depth) + "]".repeat(depth) + "}";
    }

    /** A request of which something is cut out, doubled or replaced. */
    private static String changed(Random random) {
        var body = new StringBuilder(BODIES.get(random.nextInt(BODIES.size())));
        for (int change = random.nextInt(4); change > 0; change--) {
            int from = random.nextInt(body.length());
            int to = Math.min(body.length(), from + random.nextInt(12));
            switch (random.nextInt(3)) {
                case 0 -> body.delete(from, to);
                case 1 -> body.insert(from, body.substring(from, to));
                default -> body.replace(from, to, BITS.get(random.nextInt(BITS.size())));
            }
            if (body.isEmpty()) {
                body.append('{');
            }
        }
        return body.toString();
    }
}
