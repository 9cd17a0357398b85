package dev.penstock.runtime.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TokenizerTest {
    private static final String MIXED =
            "Grüße, 世界! 🚰🇨🇭 e\u0301 \t\r\n\n  x <|endoftext|> \u0000";
    private static final Tokenizer GPT2 = Tokenizer.named("gpt2");

    @ParameterizedTest
    @ValueSource(strings = {"bytes", "gpt2"})
    void textComesBackAsItWas(String name) {
        Tokenizer tokenizer = Tokenizer.named(name);

        int[] tokens = tokenizer.encode(MIXED);

        assertThat(tokenizer.name()).isEqualTo(name);
        assertThat(tokenizer.decode(tokens)).isEqualTo(MIXED);
        assertThat(IntStream.of(tokens))
                .allMatch(token -> token >= 0 && token < tokenizer.vocabulary());
        assertThat(tokenizer.encode("")).isEmpty();
    }

    @Test
    void gpt2EncodesAsOpenAiDoes() {
        // values of the reference implementation (tiktoken, r50k_base)
        assertThat(GPT2.encode("Hello, world!")).containsExactly(15496, 11, 995, 0);
        assertThat(GPT2.encode("hello world")).containsExactly(31373, 995);
        assertThat(GPT2.vocabulary()).isEqualTo(50_257);
        assertThat(GPT2.decode(50_256)).isEqualTo("<|endoftext|>");
        assertThat(GPT2.encode("<|endoftext|>")).doesNotContain(50_256);
    }

    @Test
    void everyByteIsItsOwnToken() throws IOException {
        Tokenizer bytes = Tokenizer.named("bytes");
        byte[] all = new byte[256];
        IntStream.range(0, 256).forEach(i -> all[i] = (byte) i);

        int[] tokens = streamed(bytes, all);

        assertThat(tokens).containsExactly(IntStream.range(0, 256).toArray());
        for (int token : tokens) {
            assertThat(bytes.bytes(token)).containsExactly(all[token]);
        }
    }

    @Test
    void aStreamOfAnyLengthEncodesLikeTheWholeText() throws IOException {
        Random random = new Random(3);
        String[] words = {
            "water", " pipe", "\n", "\n\n", "  ", " ", "\t", "世界", "🚰", "'s", "12", "\u00a0"
        };
        StringBuilder text = new StringBuilder();
        while (text.length() < 900_000) {
            text.append(words[random.nextInt(words.length)]);
        }
        text.append("tail\n \n");

        int[] streamed = streamed(GPT2, text.toString().getBytes(StandardCharsets.UTF_8));

        assertThat(streamed).isEqualTo(GPT2.encode(text.toString()));
    }

    @Test
    void aStreamWithoutAnyPlaceToCutIsEncodedWhole() throws IOException {
        String text = "\n ".repeat(200_000) + "x";

        int[] streamed = streamed(GPT2, text.getBytes(StandardCharsets.UTF_8));

        assertThat(GPT2.decode(streamed)).isEqualTo(text);
    }

    @Test
    void gpt2NamesTheFirstByteThatIsNotUtf8() {
        byte[] text = ("a".repeat(100_000) + "é?").getBytes(StandardCharsets.UTF_8);
        text[100_001] = 'x';

        assertThatThrownBy(() -> streamed(GPT2, text))
                .isInstanceOf(NotUtf8Exception.class)
                .hasMessage("byte 100000 is not UTF-8");
        byte[] cut = {'a', (byte) 0xe4, (byte) 0xb8};
        assertThatThrownBy(() -> streamed(GPT2, cut)).hasMessage("byte 1 is not UTF-8");
    }

    @Test
    void aCharacterAppearsWithItsLastByte() {
        Tokenizer bytes = Tokenizer.named("bytes");
        StreamingDecoder decoder = new StreamingDecoder(bytes);

        assertThat(decoder.next('a')).isEqualTo("a");
        assertThat(decoder.next(0xf0)).isEmpty();
        assertThat(decoder.next(0x9f)).isEmpty();
        assertThat(decoder.next(0x9a)).isEmpty();
        assertThat(decoder.next(0xb0)).isEqualTo("🚰");
        assertThat(decoder.end()).isEmpty();
    }

    @Test
    void bytesThatAreNoCharacterBecomeTheReplacementCharacter() {
        Tokenizer bytes = Tokenizer.named("bytes");

        assertThat(bytes.decode(0xff, 'a', 0xc3)).isEqualTo("\uFFFDa\uFFFD");
        assertThat(bytes.decode(256, -1)).isEqualTo("\uFFFD\uFFFD");
        assertThat(GPT2.decode(50_300)).isEqualTo("\uFFFD");
    }

    @Test
    void anUnknownNameIsAnsweredWithTheKnownOnes() {
        assertThatThrownBy(() -> Tokenizer.named("bpe"))
                .hasMessage("no tokenizer 'bpe', expected one of [bytes, gpt2]");
    }

    private static int[] streamed(Tokenizer tokenizer, byte[] text) throws IOException {
        IntStream.Builder tokens = IntStream.builder();
        tokenizer.encode(new ByteArrayInputStream(text), tokens::add);
        return tokens.build().toArray();
    }
}
