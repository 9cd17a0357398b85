package dev.penstock.runtime.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class DataPreparationTest {
    private static final int SHARD = 70_000;

    /** Reading the vocabulary takes longer than encoding these texts. */
    private static final Tokenizer GPT2 = Tokenizer.named("gpt2");

    @TempDir private Path folder;

    private Path corpus = Path.of("");
    private Path output = Path.of("");

    @BeforeEach
    void writeACorpus() throws IOException {
        corpus = Files.createDirectories(folder.resolve("corpus"));
        output = folder.resolve("tokens");
        Files.writeString(corpus.resolve("a-empty.txt"), "");
        Files.writeString(corpus.resolve("b.txt"), text(1, 600_000));
        Files.writeString(corpus.resolve("c-empty.txt"), "");
        StringBuilder lines = new StringBuilder();
        for (int i = 0; i < 3_000; i++) {
            String text = text(100 + i, i % 7 == 0 ? 0 : 150).replace("\n", "\\n");
            lines.append("{\"text\": \"").append(text).append("\"}\n");
            lines.append(i % 11 == 0 ? "\n" : "");
        }
        Files.writeString(corpus.resolve("d.jsonl"), lines.substring(0, lines.length() - 1));
        try (OutputStream gz =
                new GZIPOutputStream(Files.newOutputStream(corpus.resolve("e.txt.gz")))) {
            gz.write(text(2, 300_000).getBytes(StandardCharsets.UTF_8));
        }
        Files.writeString(corpus.resolve("f.txt"), "the end");
    }

    private static String text(int seed, int characters) {
        Random random = new Random(seed);
        String[] words = {"water", " flows", ".\n", "\n\n", " 世界", " Größe", " 12", "'s", "  "};
        StringBuilder text = new StringBuilder();
        while (text.length() < characters) {
            text.append(words[random.nextInt(words.length)]);
        }
        return text.toString();
    }

    private Corpus files() {
        return Corpus.find(List.of(corpus), Optional.empty(), "text");
    }

    private DataPreparation preparation(String tokenizer) {
        Tokenizer opened = tokenizer.equals("gpt2") ? GPT2 : Tokenizer.open(tokenizer);
        return new DataPreparation(files(), opened, output, SHARD);
    }

    private static String tokenizer(String name) {
        return name.equals("pair")
                ? Path.of("src/test/resources/tokenizers/pair").toAbsolutePath().toString()
                : name;
    }

    /** The tokens as a reader of the texts has them, document by document. */
    private int[] expected(Tokenizer tokenizer) throws IOException {
        IntStream.Builder tokens = IntStream.builder();
        int[] count = {0};
        for (Path file : files().files()) {
            Specs specs =
                    Specs.of(file)
                            .tokenizer(tokenizer.name())
                            .format(
                                    file.toString().endsWith(".jsonl")
                                            ? DataFormat.JSONL
                                            : DataFormat.TEXT);
            Tokens read = new CorpusReader(specs.spec()).read(List.of(file));
            boolean emptyLine = file.toString().endsWith(".jsonl");
            if (count[0] > 0) {
                tokens.add(tokenizer.documentSeparator());
                count[0]++;
                // the first document of the lines is empty, and alone it has no separator
                if (emptyLine) {
                    tokens.add(tokenizer.documentSeparator());
                    count[0]++;
                }
            }
            for (long i = 0; i < read.size(); i++) {
                tokens.add(read.get(i));
                count[0]++;
            }
        }
        return tokens.build().toArray();
    }

    private static int[] all(TokenRow row) {
        int[] tokens = new int[(int) row.size()];
        row.copy(0, tokens, 0, tokens.length);
        return tokens;
    }

    private Map<String, byte[]> content() throws IOException {
        Map<String, byte[]> content = new TreeMap<>();
        try (Stream<Path> list = Files.list(output)) {
            for (Path file : list.toList()) {
                content.put(file.getFileName().toString(), Files.readAllBytes(file));
            }
        }
        return content;
    }

    private void assertContent(Map<String, byte[]> expected) throws IOException {
        Map<String, byte[]> got = content();
        assertThat(got.keySet()).isEqualTo(expected.keySet());
        expected.forEach((name, bytes) -> assertThat(got.get(name)).as(name).isEqualTo(bytes));
    }

    @ParameterizedTest
    @ValueSource(strings = {"bytes", "gpt2", "pair"})
    void theTokensAreThoseOfTheTexts(String name) throws IOException {
        Tokenizer tokenizer = Tokenizer.open(tokenizer(name));

        DataPreparation.Result result = preparation(tokenizer(name)).prepare(2, _ -> {});

        PreparedTokens tokens = PreparedTokens.open(output);
        tokens.verify();
        assertThat(all(tokens)).isEqualTo(expected(tokenizer));
        assertThat(result.tokens()).isEqualTo(tokens.size());
        assertThat(result.shards()).isEqualTo(tokens.shards());
        assertThat(result.shards()).isGreaterThan(3);
        assertThat(result.documents()).isEqualTo(5 + 3_000).isEqualTo(tokens.documents());
        assertThat(result.tokenBytes()).isEqualTo(2);
    }

    @Test
    void anyNumberOfThreadsWritesTheSameBytes() throws IOException {
        preparation("gpt2").prepare(1, _ -> {});
        Map<String, byte[]> one = content();
        deleteOutput();

        preparation("gpt2").prepare(5, _ -> {});

        assertContent(one);
    }

    private void deleteOutput() throws IOException {
        try (Stream<Path> list = Files.list(output)) {
            for (Path file : list.toList()) {
                Files.delete(file);
            }
        }
        Files.delete(output);
    }

    /** Every state in which a kill can leave the folder, and some in which a disk can. */
    @Test
    void whatWasCutShortAnywhereEndsAsIfItHadNotBeen() throws IOException {
        preparation("gpt2").prepare(2, _ -> {});
        Map<String, byte[]> whole = content();
        List<String> shards =
                whole.keySet().stream().filter(name -> name.startsWith("tokens-")).toList();
        Random random = new Random(9);

        for (int there = 0; there <= shards.size(); there++) {
            for (int variant = 0; variant < 4; variant++) {
                deleteOutput();
                Files.createDirectory(output);
                for (String shard : shards.subList(0, there)) {
                    Files.write(output.resolve(shard), whole.get(shard));
                }
                if (there < shards.size()) {
                    String next = shards.get(there);
                    byte[] bytes = Objects.requireNonNull(whole.get(next));
                    switch (variant) {
                        case 0 -> {} // between two shards
                        case 1 -> // within one, whose header is not written yet
                                Files.write(
                                        output.resolve(next + ".part"),
                                        new byte[random.nextInt(bytes.length)]);
                        case 2 -> // a disk that lost the end of it
                                Files.write(
                                        output.resolve(next),
                                        Arrays.copyOf(bytes, random.nextInt(bytes.length)));
                        default -> // a disk that lost all but the size
                                Files.write(output.resolve(next), new byte[bytes.length]);
                    }
                    if (variant == 1) {
                        Files.writeString(output.resolve("prepared.json.incomplete"), "{\"ver");
                    }
                }
                int left = there;

                DataPreparation.Result result =
                        preparation("gpt2").prepare(1 + variant % 3, _ -> {});

                assertContent(whole);
                assertThat(result.resumed())
                        .as("%d shards, variant %d", left, variant)
                        .isEqualTo(Math.min((long) left * SHARD, result.tokens()));
            }
        }
    }

    @Test
    void aPreparationThatIsStoppedContinues() throws IOException {
        preparation("gpt2").prepare(2, _ -> {});
        Map<String, byte[]> whole = content();
        deleteOutput();

        for (long limit : new long[] {100_000, 300_000, 700_000, 900_000}) {
            assertThatThrownBy(
                            () ->
                                    preparation("gpt2")
                                            .prepare(
                                                    2,
                                                    read -> {
                                                        if (read > limit) {
                                                            throw new IllegalStateException("stop");
                                                        }
                                                    }))
                    .hasMessage("stop");
            assertThat(PreparedTokens.areIn(output)).isFalse();
        }
        preparation("gpt2").prepare(2, _ -> {});

        assertContent(whole);
    }

    @Test
    void whatIsDoneIsNotDoneAgain() throws IOException {
        DataPreparation.Result first = preparation("bytes").prepare(1, _ -> {});

        DataPreparation.Result second =
                preparation("bytes")
                        .prepare(
                                1,
                                _ -> {
                                    throw new IllegalStateException("read again");
                                });

        assertThat(second.resumed()).isEqualTo(first.tokens()).isEqualTo(second.tokens());
        assertThat(second.documents()).isEqualTo(first.documents());
    }

    @Test
    void aDamagedTokenIsFoundByVerifyingAndMadeAnew() throws IOException {
        preparation("gpt2").prepare(2, _ -> {});
        Map<String, byte[]> whole = content();
        Path shard = output.resolve("tokens-00001.bin");
        try (RandomAccessFile file = new RandomAccessFile(shard.toFile(), "rw")) {
            file.seek(70_001);
            file.write(0xff);
        }

        PreparedTokens tokens = PreparedTokens.open(output);
        assertThatThrownBy(tokens::verify)
                .isInstanceOf(DataException.class)
                .hasMessageContaining(shard.toString());
        Files.delete(shard);
        assertThatThrownBy(() -> PreparedTokens.open(output))
                .isInstanceOf(DataException.class)
                .hasMessageContaining(shard.toString())
                .hasMessageContaining("data prepare");
        preparation("gpt2").prepare(2, _ -> {});

        assertContent(whole);
    }

    private static void flip(Path file, long at) throws IOException {
        try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
            bytes.seek(at);
            int old = bytes.read();
            bytes.seek(at);
            bytes.write(old ^ 4);
        }
    }

    /** Blocks of 131,072 bytes; this shard has a whole one and a part. */
    @ParameterizedTest
    @CsvSource({"128, 128, 131199", "131199, 128, 131199", "131200, 131200, 140127"})
    void aFlippedBitIsFoundWhereItIsReadAndNowhereElse(int at, int from, int to)
            throws IOException {
        preparation("bytes").prepare(2, _ -> {});
        int[] whole = all(PreparedTokens.open(output));
        Path shard = output.resolve("tokens-00001.bin");
        flip(shard, at);

        PreparedTokens tokens = PreparedTokens.open(output);
        int first = SHARD + (from - 128) / 2;
        int last = SHARD + (to - 128) / 2;
        int[] target = new int[first];
        tokens.copy(0, target, 0, first);

        assertThat(target).isEqualTo(Arrays.copyOf(whole, first));
        assertThat(tokens.get(last + 1)).isEqualTo(whole[last + 1]);
        String what =
                "data.source: expected the tokens that were prepared, got %s: other bytes somewhere"
                        + " from offset %d to %d; it is damaged: delete the file and run the same"
                        + " penstock data prepare again";
        for (int i = 0; i < 2; i++) { // not only once
            assertThatThrownBy(() -> tokens.get(first))
                    .isInstanceOf(DataException.class)
                    .hasMessage(what.formatted(shard, from, to));
        }
        assertThatThrownBy(() -> tokens.get(last)).hasMessage(what.formatted(shard, from, to));
        assertThatThrownBy(() -> tokens.copy(first - 20, new int[40], 0, 40))
                .hasMessage(what.formatted(shard, from, to));
    }

    @Test
    void readersOnManyThreadsFindTheSame() throws Exception {
        preparation("bytes").prepare(2, _ -> {});
        int[] whole = all(PreparedTokens.open(output));
        flip(output.resolve("tokens-00001.bin"), 200);
        PreparedTokens tokens = PreparedTokens.open(output);

        try (var threads = Executors.newFixedThreadPool(4)) {
            List<Future<Integer>> damaged = new ArrayList<>();
            for (int thread = 0; thread < 4; thread++) {
                Random random = new Random(thread);
                damaged.add(
                        threads.submit(
                                () -> {
                                    int found = 0;
                                    for (int i = 0; i < 2_000; i++) {
                                        int at = random.nextInt(whole.length - 64);
                                        int[] row = new int[64];
                                        try {
                                            tokens.copy(at, row, 0, 64);
                                            assertThat(row)
                                                    .isEqualTo(
                                                            Arrays.copyOfRange(whole, at, at + 64));
                                        } catch (DataException e) {
                                            assertThat(at).isBetween(SHARD - 63, SHARD + 65_535);
                                            found++;
                                        }
                                    }
                                    return found;
                                }));
            }
            for (Future<Integer> found : damaged) {
                assertThat(found.get()).isPositive();
            }
        }
    }

    @Test
    void aShardWhoseChecksumsAreDamagedIsMadeAnewBySameCommand() throws IOException {
        preparation("bytes").prepare(2, _ -> {});
        Map<String, byte[]> whole = content();
        Path shard = output.resolve("tokens-00001.bin");
        flip(shard, Files.size(shard) - 6);

        assertThatThrownBy(() -> PreparedTokens.open(output))
                .isInstanceOf(DataException.class)
                .hasMessageContaining(shard.toString());
        preparation("bytes").prepare(2, _ -> {});

        assertContent(whole);
    }

    /** As version 1 wrote them: another magic number, nothing after the tokens. */
    private void makeFirstVersion() throws IOException {
        for (Path shard : shards()) {
            byte[] bytes = Files.readAllBytes(shard);
            ByteBuffer header = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
            long tokens = header.getLong(24);
            bytes[7] = '1';
            CRC32C crc = new CRC32C();
            crc.update(bytes, 0, 124);
            header.putInt(124, (int) crc.getValue());
            Files.write(shard, Arrays.copyOf(bytes, Math.toIntExact(128 + 2 * tokens)));
        }
        Path list = output.resolve("prepared.json");
        String text = Files.readString(list);
        assertThat(text).contains("\"version\" : 2");
        Files.writeString(list, text.replace("\"version\" : 2", "\"version\" : 1"));
    }

    @Test
    void tokensOfTheFirstVersionAreReadAndContinuedAlthoughTheirBlocksHaveNoChecksums()
            throws IOException {
        preparation("bytes").prepare(2, _ -> {});
        Map<String, byte[]> whole = content();
        int[] expected = all(PreparedTokens.open(output));
        makeFirstVersion();

        PreparedTokens tokens = PreparedTokens.open(output);
        tokens.verify();
        assertThat(all(tokens)).isEqualTo(expected);
        assertThat(preparation("bytes").prepare(1, _ -> {}).resumed()).isEqualTo(expected.length);
        flip(output.resolve("tokens-00001.bin"), 200);
        assertThatThrownBy(() -> PreparedTokens.open(output).verify())
                .hasMessageContaining("tokens-00001.bin");

        Files.delete(output.resolve("tokens-00001.bin"));
        preparation("bytes").prepare(2, _ -> {});

        assertThat(all(PreparedTokens.open(output))).isEqualTo(expected);
        for (Path shard : shards().subList(1, shards().size())) {
            assertThat(shard).hasBinaryContent(whole.get(shard.getFileName().toString()));
        }
    }

    @Test
    void aTokenBeyondTheVocabularyNeverReachesAModel() throws IOException {
        preparation("bytes").prepare(2, _ -> {});
        makeFirstVersion();
        try (RandomAccessFile file =
                new RandomAccessFile(output.resolve("tokens-00000.bin").toFile(), "rw")) {
            file.seek(ShardHeader.BYTES + 21);
            file.write(1);
        }

        PreparedTokens tokens = PreparedTokens.open(output);

        assertThat(tokens.get(9)).isBetween(0, 255);
        assertThatThrownBy(() -> tokens.get(10))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("of 256");
    }

    @Test
    void otherFilesOrAnotherTokenizerAreRefusedAndNothingIsTouched() throws IOException {
        preparation("bytes").prepare(2, _ -> {});
        Map<String, byte[]> before = content();

        assertThatThrownBy(() -> preparation("gpt2").prepare(1, _ -> {}))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("--output")
                .hasMessageContaining("another tokenizer");
        Files.delete(output.resolve("prepared.json"));
        assertThatThrownBy(() -> preparation("gpt2").prepare(1, _ -> {}))
                .hasMessageContaining("another tokenizer");
        Files.writeString(corpus.resolve("f.txt"), "another end");
        assertThatThrownBy(() -> preparation("bytes").prepare(1, _ -> {}))
                .hasMessageContaining("other files");

        before.remove("prepared.json");
        assertContent(before);
    }

    @Test
    void aFolderWithSomethingElseIsLeftAlone() throws IOException {
        Files.createDirectories(output);
        Files.writeString(output.resolve("thesis.txt"), "precious");

        assertThatThrownBy(() -> preparation("bytes").prepare(1, _ -> {}))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("thesis.txt");

        assertThat(output.resolve("thesis.txt")).hasContent("precious");
    }

    /** Called like a shard, and all that somebody has. */
    @ParameterizedTest
    @ValueSource(strings = {"tokens-00000.bin", "tokens-00007.bin", "tokens-20240101123456.bin"})
    void tokensOfAnotherProgramAreLeftAlone(String name) throws IOException {
        Files.createDirectories(output);
        Files.writeString(output.resolve(name), "tokens of another program");

        assertThatThrownBy(() -> preparation("bytes").prepare(1, _ -> {}))
                .isInstanceOf(DataException.class)
                .hasMessageContaining(name);

        assertThat(output.resolve(name)).hasContent("tokens of another program");
    }

    @Test
    void laterShardsOfAnotherPreparationAreNotDeletedForTheSakeOfALostFirstOne()
            throws IOException {
        preparation("bytes").prepare(2, _ -> {});
        Files.delete(output.resolve("prepared.json"));
        Files.delete(output.resolve("tokens-00000.bin"));
        List<Path> left = shards();
        assertThat(left).isNotEmpty();

        assertThatThrownBy(() -> preparation("gpt2").prepare(1, _ -> {}))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("another tokenizer");

        assertThat(shards()).isEqualTo(left);
    }

    private List<Path> shards() throws IOException {
        try (Stream<Path> files = Files.list(output)) {
            return files.filter(file -> file.toString().endsWith(".bin")).sorted().toList();
        }
    }

    @Test
    void problemsOfTheTextsAreToldTogetherAndNothingIsWhole() throws IOException {
        Files.write(corpus.resolve("b2.txt"), new byte[] {'a', (byte) 0xff});
        Files.writeString(corpus.resolve("d.jsonl"), "{\"text\": \"a\"}\n{\"txt\": 1}\n{\n");

        assertThatThrownBy(() -> preparation("gpt2").prepare(2, _ -> {}))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("b2.txt, where byte 1 is not UTF-8")
                .hasMessageContaining("d.jsonl:2")
                .hasMessageContaining("d.jsonl:3");

        assertThat(PreparedTokens.areIn(output)).isFalse();
        assertThatThrownBy(
                        () -> TrainingData.open(Specs.of(output).format(DataFormat.TOKENS).spec()))
                .hasMessageContaining("prepared.json");
    }

    @Test
    void aRunReadsTheSameBatchesFromTokensAsFromText() throws IOException {
        Path file = corpus.resolve("b.txt");
        var one = Corpus.find(List.of(file), Optional.empty(), "text");
        new DataPreparation(one, Tokenizer.open("gpt2"), output, 1_000).prepare(2, _ -> {});
        Specs text = Specs.of(file).tokenizer("gpt2").shape(50_257, 64, 8, 20);
        DataSpec prepared =
                Specs.of(output)
                        .format(DataFormat.TOKENS)
                        .tokenizer("gpt2")
                        .shape(50_257, 64, 8, 20)
                        .spec();

        TrainingData ofText = TrainingData.open(text.spec());
        TrainingData ofTokens = TrainingData.open(prepared);

        assertThat(ofTokens.trainingTokens()).isEqualTo(ofText.trainingTokens());
        assertThat(ofTokens.heldOutBytes(5)).isEqualTo(ofText.heldOutBytes(5));
        assertThat(ofTokens.isText()).isTrue();
        int[] expected = new int[4 * 65];
        int[] got = new int[4 * 65];
        for (StepKind kind : StepKind.values()) {
            for (long step = 1; step < 40; step++) {
                ofText.read(kind, step, 1, expected);
                ofTokens.read(kind, step, 1, got);
                assertThat(got).isEqualTo(expected);
            }
        }
    }

    @Test
    void aRunWithAnotherTokenizerOrFormatIsToldWhichItIs() throws IOException {
        preparation("gpt2").prepare(2, _ -> {});

        assertThatThrownBy(
                        () -> TrainingData.open(Specs.of(output).format(DataFormat.TOKENS).spec()))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("data.tokenizer: expected that of")
                .hasMessageContaining("gpt2, got bytes");
        assertThatThrownBy(() -> TrainingData.open(Specs.of(output).spec()))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("data.format: expected tokens");
    }

    private static byte[] sumsOfZeros(long bytes) {
        CRC32C block = new CRC32C();
        block.update(new byte[BlockSums.BLOCK]);
        int blocks = Math.toIntExact(bytes / BlockSums.BLOCK);
        ByteBuffer sums = ByteBuffer.allocate(4 * blocks + 4).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < blocks; i++) {
            sums.putInt((int) block.getValue());
        }
        CRC32C own = new CRC32C();
        own.update(sums.array(), 0, 4 * blocks);
        return sums.putInt((int) own.getValue()).array();
    }

    /** Sparse files of the right size: only their headers and checksums are read. */
    @Test
    void aLargeCorpusIsMappedAndNotRead() throws IOException {
        preparation("gpt2").prepare(2, _ -> {});
        PreparedManifest small = PreparedManifest.read(output);
        long perShard = 1L << 29;
        int shards = 10;
        Path large = Files.createDirectories(folder.resolve("large"));
        PreparationPlan plan =
                new PreparationPlan(
                        small.plan().tokenizer(), perShard, "text", small.plan().files());
        List<PreparedManifest.Shard> list =
                IntStream.range(0, shards)
                        .mapToObj(
                                index ->
                                        new PreparedManifest.Shard(
                                                PreparedManifest.shardFile(index),
                                                perShard,
                                                PreparedManifest.Shard.checksum(0)))
                        .toList();
        byte[] sums = sumsOfZeros(2 * perShard);
        for (int index = 0; index < shards; index++) {
            ShardHeader header =
                    new ShardHeader(
                            2, 50_257, index, perShard, 0, 0, plan.hash(), CorpusPlace.START, 0);
            Path file = large.resolve(PreparedManifest.shardFile(index));
            try (RandomAccessFile sparse = new RandomAccessFile(file.toFile(), "rw")) {
                sparse.write(header.write().array());
                sparse.seek(ShardHeader.BYTES + 2 * perShard);
                sparse.write(sums);
            }
        }
        new PreparedManifest(2, shards * perShard, 0, 2, plan.hash(), plan, list).write(large);

        PreparedTokens tokens = PreparedTokens.open(large);

        assertThat(tokens.size()).isEqualTo(5L << 30);
        assertThat(tokens.get(tokens.size() - 1)).isZero();
        assertThat(tokens.get(3 * perShard + 17)).isZero();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "{",
                "[]",
                "null",
                "{}",
                "{\"version\": 3}",
                "{\"version\": 1, \"plan\": null}"
            })
    void aTornListOfTheShardsIsRefused(String text) throws IOException {
        preparation("bytes").prepare(2, _ -> {});
        Files.writeString(output.resolve("prepared.json"), text);

        assertThatThrownBy(() -> PreparedTokens.open(output))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("prepared.json");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "{", "null", "{\"version\": 1, \"plan\": null}"})
    void aTornListOfTheShardsIsMadeAnewBySameCommand(String text) throws IOException {
        DataPreparation.Result first = preparation("bytes").prepare(2, _ -> {});
        Map<String, byte[]> whole = content();
        Files.writeString(output.resolve("prepared.json"), text);
        assertThatThrownBy(() -> PreparedTokens.open(output))
                .hasMessageContaining("run the same penstock data prepare again");

        DataPreparation.Result again = preparation("bytes").prepare(2, _ -> {});

        assertContent(whole);
        assertThat(again.resumed()).isEqualTo(first.tokens());
    }

    @Test
    void aTornListWithoutShardsBesideMayBeSomebodys() throws IOException {
        Files.createDirectories(output);
        Path list = Files.writeString(output.resolve("prepared.json"), "{\"recipe\": ");

        assertThatThrownBy(() -> preparation("bytes").prepare(1, _ -> {}))
                .isInstanceOf(DataException.class)
                .hasMessageContaining(list + ", which is damaged")
                .hasMessageContaining("delete this file");

        assertThat(list).hasContent("{\"recipe\": ");
    }

    @Test
    void aListOfAnotherVersionIsLeftAlone() throws IOException {
        preparation("bytes").prepare(2, _ -> {});
        Files.writeString(output.resolve("prepared.json"), "{\"version\": 3}");

        assertThatThrownBy(() -> preparation("bytes").prepare(1, _ -> {}))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("use the Penstock that wrote it");

        assertThat(output.resolve("prepared.json")).hasContent("{\"version\": 3}");
    }

    /** Whatever a list claims that its files cannot be is said with its name. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"file\" : \"tokens-00000.bin\" | \"file\" : \"../tokens-00000.bin\"",
                "\"file\" : \"tokens-00000.bin\" | \"file\" : \"/etc/passwd\"",
                "\"tokens\" : 70000 | \"tokens\" : -70000",
                "\"tokens\" : 70000 | \"tokens\" : 9223372036854775807",
                "\"tokenBytes\" : 2 | \"tokenBytes\" : 4",
                "\"vocabulary\" : 256 | \"vocabulary\" : -1",
                "\"vocabulary\" : 256 | \"vocabulary\" : 0",
                "\"shardTokens\" : 70000 | \"shardTokens\" : 0",
                "\"fingerprint\" : \"bytes\" | \"fingerprint\" : null",
                "\"documents\" : | \"documents\" : -",
            })
    void aListThatClaimsWhatCannotBeIsRefused(String text, String other) throws IOException {
        preparation("bytes").prepare(2, _ -> {});
        Path list = output.resolve("prepared.json");
        String whole = Files.readString(list);
        assertThat(whole).contains(text);
        Files.writeString(list, whole.replace(text, other));

        assertThatThrownBy(() -> PreparedTokens.open(output))
                .isInstanceOf(DataException.class)
                .hasMessageContaining(list.toString())
                .hasMessageContaining("it is damaged");
    }

    @Test
    void aTextThatIsAllEmptyIsNoCorpusAndLeavesNothing() {
        var none = Corpus.find(List.of(corpus.resolve("a-empty.txt")), Optional.empty(), "text");

        assertThatThrownBy(
                        () ->
                                new DataPreparation(none, Tokenizer.open("bytes"), output, 10)
                                        .prepare(1, _ -> {}))
                .isInstanceOf(DataException.class)
                .hasMessageContaining("expected text in the files, got none");
        assertThat(output).doesNotExist();
    }
}
