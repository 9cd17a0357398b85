package dev.penstock.runtime.serve;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.inference.JoiningTexts;
import dev.penstock.runtime.model.shape.HeldWeights;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@Timeout(120)
class NarrowWeightsServerTest {
    @TempDir private Path folder;

    @ParameterizedTest
    @EnumSource(names = {"BF16", "INT8"})
    void textsAreWhatGenerateWritesWithWeightsThatAreHeldSo(HeldWeights held) throws IOException {
        try (ServedRun served =
                        ServedRun.start(folder, 2, new JoiningTexts.Limits(5, 20, 200), held);
                ExecutorService clients = Executors.newFixedThreadPool(6)) {
            List<CompletableFuture<String>> texts = new ArrayList<>();
            for (int i = 0; i < 6; i++) {
                String body =
                        "{\"prompt\":\"%s\",\"max_tokens\":%d,\"seed\":7,\"temperature\":0.8}"
                                .formatted("x".repeat(i + 1), 10 + 3 * i);
                texts.add(
                        CompletableFuture.supplyAsync(
                                () ->
                                        ServedRun.json(served.post("v1/completions", body).body())
                                                .at("/choices/0/text")
                                                .asText(),
                                clients));
            }

            for (int i = 0; i < 6; i++) {
                assertThat(texts.get(i).join())
                        .isEqualTo(
                                served.generated(
                                        "x".repeat(i + 1),
                                        "--tokens=" + (10 + 3 * i),
                                        "--seed=7",
                                        "--temperature=0.8",
                                        "--weights=" + held.word()));
            }
        }
    }
}
