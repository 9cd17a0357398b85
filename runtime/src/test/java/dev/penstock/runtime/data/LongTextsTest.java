package dev.penstock.runtime.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.tokenizer.TextEncoder;
import dev.penstock.runtime.tokenizer.TextPieces;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.io.InputStream;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a text can make a preparation keep in memory is bounded. */
class LongTextsTest {
    private static final String PIECES =
            Path.of("src/test/resources/tokenizers/pieces").toAbsolutePath().toString();

    @TempDir private Path folder;

    @Test
    void aFileWithoutAPlaceToCutIsRefused() throws IOException {
        Path file = folder.resolve("x.txt");
        try (Writer out = Files.newBufferedWriter(file)) {
            for (int i = 0; i < 17; i++) {
                out.write("x".repeat(1 << 20));
            }
        }

        assertThatThrownBy(() -> tokens(file, "gpt2"))
                .isInstanceOf(DataException.class)
                .hasMessageContaining(
                        "data.format: expected a newline or a space between two words at least"
                                + " every 16 Mi characters, where text is cut for gpt2, got "
                                + file)
                .hasMessageContaining("data.tokenizer = bytes");
        assertThat(tokens(file, "bytes")).hasSize(17 << 20);
    }

    @Test
    void aDocumentOfJsonLinesThatCannotBeCutIsRefusedWithItsLine() throws IOException {
        Path file = folder.resolve("x.jsonl");
        Files.writeString(file, "{\"text\": \"%s\"}\n".formatted("word ".repeat(17 << 18)));

        assertThatThrownBy(() -> tokens(file, PIECES))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("documents of at most 16 Mi characters")
                .hasMessageContaining(file + ":1, which is longer");
    }

    @Test
    void aLongDocumentOfJsonLinesHasTheTokensOfTheWhole() throws IOException {
        String text = "Valves open, turbines turn.\nWater flows ".repeat(50_000);
        Path file = folder.resolve("x.jsonl");
        Files.writeString(file, "{\"text\": \"%s\"}\n".formatted(text.replace("\n", "\\n")));

        assertThat(tokens(file, "gpt2")).isEqualTo(Tokenizer.named("gpt2").encode(text));
    }

    /** With many threads the stretches that were read would be more than the memory. */
    @Test
    void readingAheadIsBoundedByBytesWhateverTheNumberOfThreads() throws Exception {
        int lines = 20;
        Path file = folder.resolve("x.jsonl");
        try (Writer out = Files.newBufferedWriter(file)) {
            for (int i = 0; i < lines; i++) {
                out.write("{\"text\": \"%s\"}\n".formatted("a".repeat(4 << 20)));
            }
        }
        CountDownLatch beyond = new CountDownLatch(32 / 4 + 1);
        CountDownLatch all = new CountDownLatch(lines);
        CountDownLatch release = new CountDownLatch(1);
        TextEncoder blocked = new BlockedEncoder(List.of(beyond, all), release);
        Corpus corpus = new Corpus(List.of(file), Optional.empty(), "text");

        try (ExecutorService reader = Executors.newSingleThreadExecutor()) {
            Future<?> reading = reader.submit(() -> corpus.encode(blocked, "x", 24, _ -> {}));
            boolean readOn = beyond.await(2, TimeUnit.SECONDS);
            release.countDown();
            reading.get();

            assertThat(readOn).isFalse();
            assertThat(all.getCount()).isZero();
        }
    }

    /** Encodes nothing before it is released. */
    private record BlockedEncoder(List<CountDownLatch> begun, CountDownLatch release)
            implements TextEncoder {
        @Override
        public int[] encode(String text) {
            begun.forEach(CountDownLatch::countDown);
            try {
                release.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return new int[0];
        }

        @Override
        public TextPieces pieces(InputStream text) {
            return () -> {
                int bytes = text.readAllBytes().length;
                return bytes == 0 ? null : new Whole(bytes, this);
            };
        }
    }

    private record Whole(int bytes, TextEncoder encoder) implements TextPieces.Piece {
        @Override
        public int[] encode() {
            return encoder.encode("");
        }
    }

    private static int[] tokens(Path file, String tokenizer) {
        DataFormat format = file.toString().endsWith(".jsonl") ? DataFormat.JSONL : DataFormat.TEXT;
        DataSpec spec = Specs.of(file).tokenizer(tokenizer).format(format).spec();
        Tokens read = new CorpusReader(spec).read(List.of(file));
        int[] all = new int[(int) read.size()];
        read.copy(0, all, 0, all.length);
        return all;
    }
}
