package dev.penstock.actors.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import akka.actor.testkit.typed.javadsl.ActorTestKit;
import akka.actor.testkit.typed.javadsl.TestProbe;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class TextFetchTest {
    private final ActorTestKit kit = ActorTestKit.create();

    @AfterEach
    void shutDown() {
        kit.shutdownTestKit();
    }

    @Test
    void aLongTextArrivesWholeInPiecesThatFitAFrame() {
        StringBuilder text = new StringBuilder();
        Random random = new Random(1);
        while (text.length() < 200_000) {
            text.appendCodePoint(random.nextBoolean() ? 0x1F600 : 'a' + random.nextInt(26));
        }

        assertThat(TextSource.pieces(text.toString()))
                .hasSizeGreaterThan(6)
                .allMatch(piece -> piece.getBytes(StandardCharsets.UTF_8).length < 128 * 1024)
                .allMatch(piece -> !Character.isHighSurrogate(piece.charAt(piece.length() - 1)));
        assertThat(fetch(text.toString(), 1 << 20))
                .isEqualTo(new TextFetch.Fetched(text.toString()));
    }

    @Test
    void anEmptyTextIsAText() {
        assertThat(fetch("", 10)).isEqualTo(new TextFetch.Fetched(""));
    }

    @Test
    void aTextThatIsTooLongIsRefused() {
        assertThat(fetch("x".repeat(100_000), 50_000))
                .isInstanceOfSatisfying(
                        TextFetch.Lost.class,
                        lost -> assertThat(lost.reason()).contains("at most 50000 characters"));
    }

    private TextFetch.Result fetch(String text, int mostChars) {
        TestProbe<TextFetch.Result> probe = kit.createTestProbe();
        kit.spawn(TextFetch.of(kit.spawn(TextSource.of(text)), mostChars, probe.ref()));
        return probe.receiveMessage();
    }
}
