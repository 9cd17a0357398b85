package dev.penstock.runtime.serve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.TextNode;
import dev.penstock.runtime.inference.JoiningTexts;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What is served, and to whom. */
@Timeout(120)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class InferenceServerTest {
    private static final int LENGTH = 2_000;
    private static final Duration SOON = Duration.ofSeconds(60);
    private ServedRun served;

    @BeforeAll
    void start(@TempDir Path folder) throws IOException {
        served = ServedRun.start(folder, 2, new JoiningTexts.Limits(4, 60, LENGTH));
    }

    @AfterAll
    void stop() {
        served.close();
    }

    private HttpResponse<String> complete(String fields) {
        return served.post("v1/completions", "{\"model\":\"tiny\"," + fields + "}");
    }

    private HttpResponse<String> chat(String fields) {
        return served.post(
                "v1/chat/completions",
                "{\"model\":\"tiny\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
                        + fields
                        + "}");
    }

    private static JsonNode ok(HttpResponse<String> response) {
        assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
        return ServedRun.json(response.body());
    }

    private static void refused(HttpResponse<String> response, int status, String... parts) {
        assertThat(response.statusCode()).as(response.body()).isEqualTo(status);
        JsonNode error = ServedRun.json(response.body()).get("error");
        assertThat(error.get("message").asText()).contains(parts);
        assertThat(error.get("type").asText()).isNotEmpty();
        assertThat(error.has("param")).isTrue();
        assertThat(error.get("code").asText()).isNotEmpty();
    }

    @Test
    void theModelIsListed() {
        JsonNode list = ok(served.get("v1/models"));

        assertThat(list.get("object").asText()).isEqualTo("list");
        assertThat(list.at("/data/0/id").asText()).isEqualTo("tiny");
        assertThat(ok(served.get("v1/models/tiny")).get("object").asText()).isEqualTo("model");
        refused(served.get("v1/models/gpt-5"), 404, "model: expected tiny, got gpt-5");
    }

    @Test
    void aCompletionIsWhatGenerateWrites() {
        JsonNode answer =
                ok(complete("\"prompt\":\"abc\",\"max_tokens\":30,\"seed\":7,\"temperature\":0.8"));

        assertThat(answer.get("object").asText()).isEqualTo("text_completion");
        assertThat(answer.get("id").asText()).startsWith("cmpl-");
        assertThat(answer.at("/choices/0/text").asText())
                .isEqualTo(served.generated("abc", "--tokens=30", "--seed=7", "--temperature=0.8"));
        assertThat(answer.at("/choices/0/finish_reason").asText()).isEqualTo("length");
        assertThat(answer.at("/usage").toString())
                .isEqualTo("{\"prompt_tokens\":3,\"completion_tokens\":30,\"total_tokens\":33}");
    }

    /** Whatever else is in the passes; also beyond the model's context. */
    @Test
    void concurrentRequestsGetWhatGenerateWritesForEach() throws Exception {
        try (ExecutorService clients = Executors.newFixedThreadPool(12)) {
            List<Future<HttpResponse<String>>> answers = new ArrayList<>();
            for (int i = 0; i < 24; i++) {
                String fields =
                        "\"prompt\":\"%s\",\"max_tokens\":%d,\"seed\":%d,\"top_p\":%s,\"temperature\":%s"
                                .formatted(prompt(i), tokens(i), i, topP(i), temperature(i));
                answers.add(clients.submit(() -> complete(fields)));
            }
            for (int i = 0; i < 24; i++) {
                assertThat(ok(answers.get(i).get()).at("/choices/0/text").asText())
                        .as("request %d", i)
                        .isEqualTo(
                                served.generated(
                                        prompt(i),
                                        "--tokens=" + tokens(i),
                                        "--seed=" + i,
                                        "--top-p=" + topP(i),
                                        "--temperature=" + temperature(i)));
            }
        }
    }

    private static String prompt(int i) {
        return "what comes next?".substring(0, 1 + i % 16);
    }

    private static int tokens(int i) {
        return 1 + 7 * i % 60;
    }

    private static double topP(int i) {
        return i % 2 == 0 ? 1 : 0.7;
    }

    private static double temperature(int i) {
        return i % 3 * 0.6;
    }

    @Test
    void choicesAreTheTextsOfSeveralPrompts() {
        JsonNode answer =
                ok(
                        complete(
                                "\"prompt\":[\"one\",[116,119,111]],\"n\":2,\"max_tokens\":9,\"seed\":1"));

        assertThat(answer.get("choices")).hasSize(4);
        assertThat(answer.at("/choices/0/text").asText())
                .isEqualTo(served.generated("one", "--tokens=9", "--seed=1"));
        assertThat(answer.at("/choices/3/index").asInt()).isEqualTo(3);
        assertThat(answer.at("/usage/prompt_tokens").asInt()).isEqualTo(6);
        assertThat(answer.at("/usage/completion_tokens").asInt()).isEqualTo(36);
    }

    @Test
    void aStopEndsATextBeforeIt() {
        String whole = served.generated("abc", "--tokens=40", "--temperature=0");
        String stop = whole.substring(5, 8);
        String before = whole.substring(0, whole.indexOf(stop));

        String fields =
                "\"prompt\":\"abc\",\"max_tokens\":40,\"temperature\":0,\"stop\":[%s,\"never to be seen\"]"
                        .formatted(new TextNode(stop));
        JsonNode answer = ok(complete(fields));
        String streamed = texts(complete(fields + ",\"stream\":true").body());

        assertThat(answer.at("/choices/0/text").asText()).isEqualTo(before);
        assertThat(answer.at("/choices/0/finish_reason").asText()).isEqualTo("stop");
        assertThat(streamed).isEqualTo(before);
    }

    private static List<JsonNode> events(String body) {
        List<String> data =
                body.lines()
                        .filter(line -> line.startsWith("data: "))
                        .map(line -> line.substring("data: ".length()))
                        .toList();
        assertThat(data.getLast()).isEqualTo("[DONE]");
        return data.subList(0, data.size() - 1).stream().map(ServedRun::json).toList();
    }

    private static String texts(String body) {
        var text = new StringBuilder();
        events(body).forEach(event -> text.append(event.at("/choices/0/text").asText("")));
        return text.toString();
    }

    @Test
    void aStreamHasTheSameTextAndEndsWithItsCounts() {
        HttpResponse<String> response =
                complete(
                        "\"prompt\":\"abc\",\"max_tokens\":30,\"seed\":7,\"stream\":true,\"stream_options\":{\"include_usage\":true}");
        List<JsonNode> events = events(response.body());

        assertThat(response.headers().firstValue("Content-Type")).contains("text/event-stream");
        assertThat(texts(response.body()))
                .isEqualTo(served.generated("abc", "--tokens=30", "--seed=7"));
        assertThat(events.size()).isGreaterThan(10);
        assertThat(events.getLast().get("choices")).isEmpty();
        assertThat(events.getLast().at("/usage/total_tokens").asInt()).isEqualTo(33);
        assertThat(events.get(events.size() - 2).at("/choices/0/finish_reason").asText())
                .isEqualTo("length");
    }

    /** The text of the template has 18 tokens, two more than the model reads at a time. */
    @Test
    void aConversationThatIsTooLongIsRefused() {
        refused(
                served.post(
                        "v1/chat/completions",
                        "{\"messages\":[{\"role\":\"user\",\"content\":\"\"}]}"),
                400,
                "messages: expected at most 16 tokens, got 18");
    }

    @Test
    void whatIsWrongWithARequestIsSaid() {
        refused(complete("\"prompt\":7"), 400, "prompt: expected a text, tokens");
        refused(complete("\"prompt\":[300]"), 400, "prompt: expected tokens from 0 to 255");
        refused(complete("\"prompt\":[[]]"), 400, "prompt: expected 1 token or more");
        refused(complete("\"prompt\":\"01234567890123456\""), 400, "at most 16 tokens, got 17");
        refused(complete("\"n\":1"), 400, "prompt: expected a text or tokens, got none");
        refused(complete("\"prompt\":\"a\",\"max_tokens\":0"), 400, "max_tokens", "got 0");
        refused(
                complete("\"prompt\":\"a\",\"max_tokens\":2000"),
                400,
                "expected at most 1999 after a prompt of 1 tokens, got 2000");
        refused(complete("\"prompt\":\"a\",\"temperature\":-1"), 400, "temperature");
        refused(complete("\"prompt\":\"a\",\"temperature\":1e999"), 400, "temperature");
        refused(complete("\"prompt\":\"a\",\"top_p\":1.1"), 400, "top_p");
        refused(complete("\"prompt\":\"a\",\"seed\":\"x\""), 400, "seed");
        refused(complete("\"prompt\":\"a\",\"stop\":[1]"), 400, "stop");
        refused(complete("\"prompt\":\"a\",\"stop\":\"\""), 400, "stop");
        refused(complete("\"prompt\":\"a\",\"stream\":1"), 400, "stream: expected true or false");
        refused(complete("\"prompt\":\"a\",\"logprobs\":21"), 400, "whole number from 0 to 20");
        refused(chat(",\"top_logprobs\":3"), 400, "logprobs to be true with it");
        refused(complete("\"prompt\":\"a\",\"echo\":true"), 400, "echo is not supported");
        refused(chat(",\"tools\":[{}]"), 400, "tools is not supported");
        refused(chat(",\"model\":5"), 400, "model: expected a text, got 5");
        refused(
                served.post("v1/completions", "{\"model\":\"x\",\"prompt\":\"a\"}"),
                404,
                "model: expected tiny, got x");
        refused(served.post("v1/chat/completions", "{}"), 400, "messages: expected a list");
        refused(
                served.post("v1/chat/completions", "{\"messages\":[{\"role\":\"boss\"}]}"),
                400,
                "messages[0].role: expected system, user or assistant");
        refused(served.post("v1/completions", "[]"), 400, "expected a JSON object");
        refused(served.post("v1/completions", ""), 400, "expected a JSON object");
        refused(served.post("v1/completions", "{\"prompt\":"), 400, "expected a body of JSON");
        refused(served.post("v1/completions", "{} {}"), 400, "expected a body of JSON");
        refused(served.get("v1/completions"), 405, "expected POST here");
        refused(served.get("v1/engines"), 404, "nothing is served here");
        refused(served.post("health", "{}"), 405, "expected GET here");
    }

    @Test
    void aBodyThatIsNoJsonByItsTypeOrTooLargeIsRefused() {
        refused(
                served.send(
                        served.request("v1/completions")
                                .POST(HttpRequest.BodyPublishers.ofString("{\"prompt\":\"a\"}"))),
                415,
                "Content-Type: application/json");
        refused(complete("\"prompt\":\"" + "x".repeat(5 << 20) + "\""), 413, "at most 4 MiB");
    }

    /** Nobody waits for such a body, or what is left of it. */
    @Test
    void aBodyThatSaysThatItIsTooLongIsRefusedBeforeItComes() throws IOException {
        for (String length : List.of("4194305", "1000000000000", "9223372036854775807")) {
            String answer = answerTo("Content-Length: " + length);

            assertThat(answer).startsWith("HTTP/1.1 413").contains("\"request_too_large\"");
        }
    }

    private String answerTo(String header) throws IOException {
        int port = URI.create(served.server.url()).getPort();
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.getOutputStream()
                    .write(
                            ("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                                            + "Content-Type: application/json\r\n"
                                            + header
                                            + "\r\n\r\n{")
                                    .getBytes(StandardCharsets.US_ASCII));
            var answer = new StringBuilder();
            while (answer.indexOf("}}") < 0) {
                int next = socket.getInputStream().read();
                assertThat(next).as(answer.toString()).isNotNegative();
                answer.append((char) next);
            }
            return answer.toString();
        }
    }

    @Test
    void aBodyThatIsPackedOrNotInUtf8IsRefused() {
        refused(
                served.send(
                        served.posting("v1/completions", "{}").header("Content-Encoding", "gzip")),
                415,
                "without Content-Encoding");
        for (String charset : List.of("utf-16", "\"ISO-8859-1\"")) {
            refused(
                    served.send(
                            served.posting("v1/completions", "{}")
                                    .setHeader(
                                            "Content-Type",
                                            "application/json; charset=" + charset)),
                    415,
                    "in UTF-8");
        }
        ok(
                served.send(
                        served.posting("v1/completions", "{\"prompt\":\"a\",\"max_tokens\":1}")
                                .header("Content-Encoding", "identity")
                                .setHeader("Content-Type", "application/json;charset=\"UTF-8\"")));
    }

    @Test
    void aMessageWithoutContentAndAnAbyssOfListsAreRefused() {
        for (String message :
                List.of("{\"role\":\"user\"}", "{\"role\":\"user\",\"content\":null}")) {
            refused(
                    served.post("v1/chat/completions", "{\"messages\":[" + message + "]}"),
                    400,
                    "messages[0].content: expected a text, got none");
        }
        refused(
                complete("\"prompt\":" + "[".repeat(2_000) + "]".repeat(2_000)),
                400,
                "nested at most 1,000 deep");
    }

    @Test
    void pagesOfOtherNamesAreRefused() throws IOException {
        refused(
                served.send(served.posting("v1/completions", "{}").header("Origin", "http://x.y")),
                421,
                "clients of its own machine");
        int port = URI.create(served.server.url()).getPort();
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.getOutputStream()
                    .write(
                            "GET /v1/models HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n"
                                    .getBytes(StandardCharsets.US_ASCII));
            assertThat(new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8))
                    .startsWith("HTTP/1.1 421");
        }
    }

    @Test
    void thePageLoadsNothingForeign() {
        HttpResponse<String> page = served.get("");

        assertThat(page.statusCode()).isEqualTo(200);
        assertThat(page.headers().firstValue("Content-Security-Policy").orElse(""))
                .contains("default-src 'none'");
        assertThat(served.get("chat.js").body()).contains("v1/chat/completions");
        assertThat(served.get("chat.css").statusCode()).isEqualTo(200);
    }

    @Test
    void healthAndMetricsSayHowItIs() {
        ok(complete("\"prompt\":\"abc\",\"max_tokens\":3"));

        assertThat(ok(served.get("health")).get("status").asText()).isEqualTo("ok");
        assertThat(served.get("metrics").body())
                .contains("penstock_serve_ready 1.0", "penstock_serve_waiting_texts 0.0")
                .containsPattern(
                        "penstock_serve_requests_total\\{path=\"/v1/completions\",status=\"200\"}"
                                + " \\d")
                .containsPattern("penstock_serve_generated_tokens_total \\d")
                .containsPattern("penstock_serve_first_token_seconds_count \\d");
    }

    /** Its text would grow for long: nobody else ends it. */
    @Test
    void aTextEndsWhenItsClientLeaves() throws IOException {
        for (boolean stream : List.of(true, false)) {
            String body =
                    "{\"prompt\":\"a\",\"max_tokens\":%d,\"stream\":%s,\"n\":4}"
                            .formatted(LENGTH - 1, stream);
            int port = URI.create(served.server.url()).getPort();
            try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
                String head =
                        String.join(
                                "\r\n",
                                "POST /v1/completions HTTP/1.1",
                                "Host: localhost",
                                "Content-Type: application/json",
                                "Content-Length: " + body.length(),
                                "",
                                body);
                socket.getOutputStream().write(head.getBytes(StandardCharsets.US_ASCII));
                await().atMost(SOON).until(() -> served.texts.growing() > 0);
                socket.setSoLinger(true, 0);
            }
            await().atMost(SOON).until(() -> served.texts.growing() == 0);
        }
    }
}
