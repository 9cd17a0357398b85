package dev.penstock.benchmarks;

import dev.penstock.actors.spi.StepKind;
import dev.penstock.runtime.data.Corpus;
import dev.penstock.runtime.data.DataFormat;
import dev.penstock.runtime.data.DataPreparation;
import dev.penstock.runtime.data.DataSpec;
import dev.penstock.runtime.data.TrainingData;
import dev.penstock.runtime.tokenizer.Tokenizer;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Stream;

/**
 * What it costs a run to open prepared tokens, and to read batches of them: time, and heap that is
 * still in use after a collection. The tokens are prepared first, of one file of text under many
 * names, and are in the page cache as far as they fit there; everything is deleted afterwards.
 *
 * <p>Arguments: gigabytes of tokens (default 10), a folder with room for them (default: that for
 * temporary files).
 */
public final class CorpusBenchmark {
    private static final int TEXT_BYTES = 64 << 20;
    private static final long GIGABYTE = 1_000_000_000L;
    private static final int SHARD_TOKENS = 1 << 26;
    private static final int CONTEXT = 1024;
    private static final int SEQUENCES = 8;
    private static final int BATCHES = 1001;

    private CorpusBenchmark() {}

    /** Prints the figures. */
    public static void main(String[] arguments) throws IOException {
        double gigabytes = arguments.length > 0 ? Double.parseDouble(arguments[0]) : 10;
        Path parent =
                Path.of(arguments.length > 1 ? arguments[1] : System.getProperty("java.io.tmpdir"));
        Path folder = Files.createTempDirectory(parent, "corpus-benchmark");
        try {
            Path tokens = folder.resolve("tokens");
            prepare(folder, tokens, gigabytes, System.out);
            measure(tokens, System.out);
        } finally {
            delete(folder);
        }
    }

    private static void prepare(Path folder, Path tokens, double gigabytes, PrintStream out)
            throws IOException {
        Tokenizer tokenizer = Tokenizer.named("bytes"); // two bytes a token, one of text
        int names = (int) Math.ceil(gigabytes * GIGABYTE / 2 / TEXT_BYTES);
        Path text = folder.resolve("text-0.txt");
        Files.write(text, text());
        List<Path> files = new ArrayList<>(List.of(text));
        for (int i = 1; i < names; i++) {
            files.add(Files.createLink(folder.resolve("text-%d.txt".formatted(i)), text));
        }
        Corpus corpus = Corpus.find(files, Optional.of(DataFormat.TEXT), "text");
        long start = System.nanoTime();
        DataPreparation.Result result =
                new DataPreparation(corpus, tokenizer, tokens, SHARD_TOKENS)
                        .prepare(Runtime.getRuntime().availableProcessors(), _ -> {});
        out.printf(
                "%.1f GB of tokens in %d files, prepared in %.0f s%n",
                (double) result.bytes() / GIGABYTE, result.shards(), millis(start) / 1000);
    }

    private static byte[] text() {
        byte[] text = new byte[TEXT_BYTES];
        Random random = new Random(1);
        for (int i = 0; i < text.length; i++) {
            text[i] = (byte) (i % 80 == 79 ? '\n' : 'a' + random.nextInt(26));
        }
        return text;
    }

    private static void measure(Path tokens, PrintStream out) {
        Tokenizer tokenizer = Tokenizer.named("bytes");
        int[] batch = new int[SEQUENCES * (CONTEXT + 1)];
        long before = heap();
        long start = System.nanoTime();
        TrainingData data =
                TrainingData.open(
                        new DataSpec(
                                tokens,
                                DataFormat.TOKENS,
                                "text",
                                tokenizer,
                                tokenizer.vocabulary(),
                                0.01,
                                CONTEXT,
                                SEQUENCES,
                                1,
                                false,
                                BATCHES,
                                1));
        double opened = millis(start);
        start = System.nanoTime();
        data.read(StepKind.TRAIN, 1, 0, batch);
        double first = millis(start);
        List<Double> later = new ArrayList<>();
        for (int step = 2; step <= BATCHES; step++) {
            start = System.nanoTime();
            data.read(StepKind.TRAIN, step, 0, batch);
            later.add(millis(start));
        }
        later.sort(Comparator.naturalOrder());
        long grown = heap() - before;
        out.println(data.description());
        out.printf("opened in %.0f ms, %.1f MB of heap in use for it%n", opened, grown / 1e6);
        out.printf(
                "first batch of %d x %d: %.1f ms, the next %d: median %.2f ms, longest %.1f ms%n",
                SEQUENCES,
                CONTEXT,
                first,
                BATCHES - 1,
                later.get(later.size() / 2),
                later.getLast());
    }

    private static double millis(long start) {
        return (System.nanoTime() - start) / 1e6;
    }

    private static long heap() {
        System.gc();
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
