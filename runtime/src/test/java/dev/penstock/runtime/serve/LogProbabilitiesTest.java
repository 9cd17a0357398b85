package dev.penstock.runtime.serve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.TextNode;
import dev.penstock.runtime.cli.SavedRun;
import dev.penstock.runtime.inference.JoiningTexts;
import dev.penstock.runtime.inference.PlainGpt;
import dev.penstock.runtime.inference.TrainedModel;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Held to a plain forward in doubles. */
@Timeout(120)
class LogProbabilitiesTest {
    private static final int TOKENS = 10;

    @TempDir private Path folder;
    private ServedRun served;

    @BeforeEach
    void start() throws IOException {
        served = ServedRun.start(folder, 2, new JoiningTexts.Limits(3, 4, 200));
    }

    @AfterEach
    void stop() {
        served.close();
    }

    /** Natural logarithms for the place behind each token of a text. */
    private double[][] truth(int[] text) {
        try (TrainedModel model = TrainedModel.open(folder, _ -> {})) {
            double[][] logits = PlainGpt.of(SavedRun.MODEL, model.tensors()::fill).logits(text);
            for (double[] row : logits) {
                double largest = Arrays.stream(row).max().orElseThrow();
                double sum = Arrays.stream(row).map(x -> Math.exp(x - largest)).sum();
                Arrays.setAll(row, i -> row[i] - largest - Math.log(sum));
            }
            return logits;
        }
    }

    /** A byte, as a token that is a character or a part of one. */
    private static int token(String text) {
        return text.startsWith("bytes:\\x")
                ? Integer.parseInt(text.substring(8), 16)
                : text.codePointAt(0);
    }

    private JsonNode complete(String more) {
        var answer =
                served.post(
                        "v1/completions",
                        "{\"prompt\":\"abc\",\"max_tokens\":%d,\"seed\":3,\"temperature\":0.7%s}"
                                .formatted(TOKENS, more));
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
        return ServedRun.json(answer.body()).at("/choices/0");
    }

    @Test
    void aCompletionHasThoseOfTheModelWhateverTheTemperature() {
        JsonNode choice = complete(",\"logprobs\":4");

        JsonNode field = choice.get("logprobs");
        int[] chosen = field.get("tokens").valueStream().mapToInt(t -> token(t.asText())).toArray();
        assertThat(chosen).hasSize(TOKENS);
        assertThat(choice.get("text")).isEqualTo(complete("").get("text"));
        double[][] truth = truth(text(chosen));
        for (int i = 0; i < TOKENS; i++) {
            double[] row = truth[2 + i];
            assertThat(field.get("token_logprobs").get(i).asDouble())
                    .isCloseTo(row[chosen[i]], within(1e-4));
            List<Integer> best =
                    IntStream.range(0, row.length)
                            .boxed()
                            .sorted((a, b) -> Double.compare(row[b], row[a]))
                            .limit(4)
                            .toList();
            JsonNode likeliest = field.get("top_logprobs").get(i);
            List<Integer> named = new ArrayList<>();
            likeliest.fieldNames().forEachRemaining(name -> named.add(token(name)));
            assertThat(named.subList(0, 4)).isEqualTo(best);
            assertThat(named).contains(chosen[i]).hasSizeLessThanOrEqualTo(5);
        }
        assertThat(field.get("text_offset").get(0).asInt()).isZero();
    }

    private static int[] text(int[] chosen) {
        int[] text = {'a', 'b', 'c'};
        int[] whole = Arrays.copyOf(text, 3 + chosen.length);
        System.arraycopy(chosen, 0, whole, 3, chosen.length);
        return whole;
    }

    @Test
    void withoutBeingAskedForThereAreNone() {
        assertThat(complete("").get("logprobs").isNull()).isTrue();
        assertThat(complete(",\"logprobs\":null").get("logprobs").isNull()).isTrue();
    }

    /** The parts of a stream have the tokens of their text, and none of a stop. */
    @Test
    void aStreamedAnswerHasThemBesideItsText() {
        String body =
                "{\"messages\":[{\"role\":\"user\",\"content\":\"\"}],\"max_tokens\":4,\"seed\":5,"
                        + "\"temperature\":0.9,\"logprobs\":true,\"top_logprobs\":2%s}";
        try (ServedRun longer = longer()) {
            JsonNode whole =
                    ServedRun.json(longer.post("v1/chat/completions", body.formatted("")).body())
                            .at("/choices/0");
            StringBuilder text = new StringBuilder();
            List<JsonNode> parts = new ArrayList<>();
            longer.post("v1/chat/completions", body.formatted(",\"stream\":true"))
                    .body()
                    .lines()
                    .filter(line -> line.startsWith("data: {"))
                    .map(line -> ServedRun.json(line.substring(6)).at("/choices/0"))
                    .forEach(
                            part -> {
                                text.append(part.at("/delta/content").asText(""));
                                part.at("/logprobs/content").forEach(parts::add);
                            });

            assertThat(text.toString()).isEqualTo(whole.at("/message/content").asText());
            assertThat(parts).isEqualTo(whole.at("/logprobs/content").valueStream().toList());
            assertThat(bytes(parts)).isEqualTo(text.toString());
            for (JsonNode each : parts) {
                assertThat(each.get("top_logprobs")).hasSize(2);
                assertThat(each.at("/top_logprobs/0/logprob").asDouble())
                        .isGreaterThanOrEqualTo(each.get("logprob").asDouble());
            }
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private ServedRun longer() throws IOException {
        return ServedRun.ofLongContext(
                folder.resolve("longer"), new JoiningTexts.Limits(2, 2, 300));
    }

    private static String bytes(List<JsonNode> tokens) {
        byte[] all = new byte[tokens.size()];
        for (int i = 0; i < all.length; i++) {
            all[i] = (byte) tokens.get(i).at("/bytes/0").asInt();
        }
        return new String(all, StandardCharsets.UTF_8);
    }

    @Test
    void tokensOfAStopAreLeftOutWithItsText() {
        JsonNode whole = complete(",\"logprobs\":0");
        String text = whole.get("text").asText();
        String stop = text.substring(4, 6);

        JsonNode cut = complete(",\"logprobs\":0,\"stop\":[%s]".formatted(TextNode.valueOf(stop)));

        int length = text.indexOf(stop);
        assertThat(cut.get("text").asText()).isEqualTo(text.substring(0, length));
        assertThat(cut.at("/logprobs/text_offset").valueStream().mapToInt(JsonNode::asInt))
                .allMatch(offset -> offset < length);
    }
}
