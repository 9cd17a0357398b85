package dev.penstock.runtime.serve;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.runtime.chat.ChatTemplate;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Texts of few letters, in which stops are everywhere, compared with a look at each beginning. */
class GrowingTextTest {
    private static final Tokenizer BYTES = Tokenizer.named("bytes");

    @Test
    void aTextEndsBeforeTheFirstStopThatIsComplete() {
        var random = new Random(2);
        for (int round = 0; round < 2_000; round++) {
            String text = letters(random, random.nextInt(20));
            List<String> stops =
                    random.ints(random.nextInt(4))
                            .mapToObj(_ -> letters(random, 1 + random.nextInt(5)))
                            .toList();
            var growing = new GrowingText(BYTES, stops);
            var shown = new StringBuilder();
            for (int token : BYTES.encode(text)) {
                shown.append(growing.next(token));
            }
            shown.append(growing.end());

            assertThat(shown.toString()).as("%s until %s", text, stops).isEqualTo(cut(text, stops));
            assertThat(growing.isStopped()).isEqualTo(stops.stream().anyMatch(text::contains));
        }
    }

    private static String letters(Random random, int count) {
        var text = new StringBuilder();
        for (int i = 0; i < count; i++) {
            text.append((char) ('a' + random.nextInt(2)));
        }
        return text.toString();
    }

    private static String cut(String text, List<String> stops) {
        for (int length = 0; length <= text.length(); length++) {
            String beginning = text.substring(0, length);
            int first =
                    stops.stream()
                            .mapToInt(beginning::indexOf)
                            .filter(i -> i >= 0)
                            .min()
                            .orElse(-1);
            if (first >= 0) {
                return text.substring(0, first);
            }
        }
        return text;
    }

    @Test
    void anAnswerOfAPlainDialogueHasLinesUntilAnotherMessageBegins() {
        List<String> ends = ChatTemplate.of("plain", null).ends("\n");

        assertThat(said("one\ntwo: 2\nuser: next", ends)).isEqualTo("one\ntwo: 2");
        assertThat(said("one\nusers\nassistant:", ends)).isEqualTo("one\nusers");
        assertThat(said("one\ntwo\n\nuser: a new chat", ends)).isEqualTo("one\ntwo");
    }

    @Test
    void theLinesEndBeforeTheEndOfTextTokenIsNoPartOfAnAnswer() {
        List<String> ends = ChatTemplate.of("plain", null).ends("");
        var ended = new GrowingText(BYTES, ends, "\n");
        var cut = new GrowingText(BYTES, ends, "\n");
        var shown = new StringBuilder();
        for (int next : "a\n\nb\n".chars().toArray()) {
            shown.append(ended.next(next));
            assertThat(cut.next(next)).isNotNull();
        }

        assertThat(shown + ended.endOfText()).isEqualTo("a\n\nb");
        assertThat(cut.end()).isEqualTo("\n");
    }

    private static String said(String text, List<String> ends) {
        var growing = new GrowingText(BYTES, ends, "\n");
        var shown = new StringBuilder();
        text.chars().forEach(next -> shown.append(growing.next(next)));
        return shown + growing.end();
    }

    @Test
    void whatBeginsNoStopIsShownAtOnce() {
        var growing = new GrowingText(BYTES, List.of("stop"));

        assertThat(growing.next('x')).isEqualTo("x");
        assertThat(growing.next('s')).isEmpty();
        assertThat(growing.next('t')).isEmpty();
        assertThat(growing.next('s')).isEqualTo("st");
        assertThat(growing.end()).isEqualTo("s");
    }
}
