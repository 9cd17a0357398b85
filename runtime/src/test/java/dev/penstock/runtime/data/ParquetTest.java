package dev.penstock.runtime.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The files are pyarrow's, see {@code record.py}; beside them is the same as JSON lines. */
class ParquetTest {
    @TempDir private Path folder;

    private static Path recorded(String name) {
        URL url = ParquetTest.class.getResource("/parquet/" + name);
        try {
            return Path.of(Objects.requireNonNull(url).toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    private static int[] tokens(Specs specs) {
        Tokens read = new CorpusReader(specs.spec()).read(List.of(specs.spec().source()));
        int[] all = new int[(int) read.size()];
        read.copy(0, all, 0, all.length);
        return all;
    }

    private static Specs of(Path file) {
        return Specs.of(file).format(DataFormat.PARQUET);
    }

    @ParameterizedTest
    @ValueSource(strings = {"snappy", "zstd", "gzip", "plain"})
    void aColumnOfTextsReadsLikeTheSameJsonLines(String name) {
        int[] lines = tokens(Specs.of(recorded("texts.jsonl")).format(DataFormat.JSONL));

        int[] rows = tokens(of(recorded(name + ".parquet")));

        assertThat(rows).hasSizeGreaterThan(10_000).isEqualTo(lines);
    }

    @Test
    void aColumnWithinAStructIsNamedByItsPath() {
        int[] titles = tokens(of(recorded("snappy.parquet")).field("meta.title"));

        assertThat(Tokenizer.named("bytes").decode(titles)).startsWith("t0\nt1\nt2\n");
    }

    @ParameterizedTest
    @ValueSource(strings = {"txt", "id", "tags.list.element", "meta"})
    void aColumnThatHoldsNoTextsIsAnsweredWithThoseThatDo(String field) {
        assertThatThrownBy(() -> tokens(of(recorded("snappy.parquet")).field(field)))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("data.field: expected a column of texts '" + field + "'")
                .hasMessageContaining("text, source, meta.title");
    }

    @Test
    void aRowWithoutATextIsNamed() {
        assertThatThrownBy(() -> tokens(of(recorded("nulls.parquet"))))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("nulls.parquet, row 1");
    }

    @Test
    void aTornFileIsRefusedWhereverItEnds() throws IOException {
        byte[] whole = Files.readAllBytes(recorded("snappy.parquet"));
        Path torn = folder.resolve("torn.parquet");

        for (int length = 0; length < whole.length; length += 501) {
            Files.write(torn, Arrays.copyOf(whole, length));
            assertThatThrownBy(() -> tokens(of(torn)))
                    .isInstanceOf(DataException.class)
                    .hasMessageContaining(torn.toString());
        }
    }

    @Test
    void aPreparationContinuesWithinAFile() throws IOException {
        Path output = folder.resolve("tokens");
        List<Path> files = List.of(recorded("snappy.parquet"), recorded("gzip.parquet"));
        prepare(files, output);
        Map<String, byte[]> whole = content(output);
        assertThat(whole).hasSizeGreaterThan(12);

        for (int there = 0; there < whole.size() - 2; there++) {
            try (Stream<Path> list = Files.list(output)) {
                for (Path file : list.toList()) {
                    Files.delete(file);
                }
            }
            for (int i = 0; i < there; i++) {
                String shard = PreparedManifest.shardFile(i);
                Files.write(output.resolve(shard), whole.get(shard));
            }

            prepare(files, output);

            Map<String, byte[]> got = content(output);
            assertThat(got.keySet()).isEqualTo(whole.keySet());
            whole.forEach((name, bytes) -> assertThat(got.get(name)).as(name).isEqualTo(bytes));
        }
    }

    private static void prepare(List<Path> files, Path output) throws IOException {
        Corpus corpus = Corpus.find(files, Optional.empty(), "text");
        new DataPreparation(corpus, Tokenizer.named("bytes"), output, 3_001).prepare(2, _ -> {});
    }

    private static Map<String, byte[]> content(Path folder) throws IOException {
        Map<String, byte[]> content = new TreeMap<>();
        try (Stream<Path> list = Files.list(folder)) {
            for (Path file : list.toList()) {
                content.put(file.getFileName().toString(), Files.readAllBytes(file));
            }
        }
        return content;
    }
}
